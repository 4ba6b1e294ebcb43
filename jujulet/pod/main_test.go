// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod/podtest"
)

// clusterOnly is an environment variable that makes this program a cluster process with pods, which waits to be killed. Its
// value is the folder of the pods.
const clusterOnly = "POD_TEST_CLUSTER"

// inner is the life of such a process.
func inner(dir string) error {
	if err := pod.ClusterInit(0); err != nil {
		return err
	}
	m, err := pod.NewManager(pod.Options{Dir: dir})
	if err != nil {
		return err
	}
	for i := range 3 {
		_, err := m.Start(context.Background(), pod.Spec{Name: fmt.Sprintf("app-%d", i), Containers: []pod.Container{
			{Name: pod.CharmContainer}, {Name: "work", Command: []string{"sleep", "967"}},
		}})
		if err != nil {
			return err
		}
	}
	fmt.Println("ready")
	select {}
}

// The tests run in a cluster process, of root and of an ordinary user; what they leave behind is seen from the host.
func TestMain(m *testing.M) {
	if dir := os.Getenv(clusterOnly); dir != "" && !(len(os.Args) > 1 && pod.IsCommand(os.Args[1])) {
		fmt.Println(inner(dir))
		os.Exit(1)
	}
	if built, err := filepath.Abs("../../out/bin/pebble"); err == nil && os.Getenv("JUJULET_PEBBLE") == "" {
		if _, err := os.Stat(built); err == nil {
			_ = os.Setenv("JUJULET_PEBBLE", built)
		}
	}
	os.Exit(podtest.MainTwice(m))
}
