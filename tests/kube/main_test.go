// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package kube

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// version is that of the module in servers/; the API says it of itself.
const version = "v1.36.3"

// servers are the ones that all tests of this package use.
var servers *Servers

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "drawbridge-kube-build-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if err := build(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	began := time.Now()
	if servers, err = Start(ctx, folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("kube-apiserver and kube-controller-manager %s, etcd %s: ready in %.1f s\n",
		servers.Version, servers.EtcdVersion, time.Since(began).Seconds())
	code := m.Run()
	if err := servers.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// build builds the servers; the first time takes minutes, later ones come from Go's cache.
func build(folder string) error {
	began := time.Now()
	fmt.Printf("building etcd, kube-apiserver and kube-controller-manager %s (some minutes when it is the first time)\n", version)
	stamp := "k8s.io/component-base/version."
	flags := fmt.Sprintf("-s -w -X %[1]sgitVersion=%[2]s -X %[1]sgitMajor=1 -X %[1]sgitMinor=36", stamp, version)
	for name, pkg := range map[string]string{
		"etcd": "go.etcd.io/etcd/server/v3", "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
		"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
	} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(folder, name), "-ldflags", flags, pkg)
		cmd.Dir = "servers"
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build %s: %w\n%s", name, err, out)
		}
	}
	fmt.Printf("built in %.0f s\n", time.Since(began).Seconds())
	return nil
}
