// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package kube runs what is written against the embedded Kubernetes API on the real one: etcd,
// kube-apiserver and kube-controller-manager as processes on loopback. The servers are built from
// the module in servers/, so that their dependencies stay out of the product's.
package kube

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// readyWithin is how long each server may take to be ready.
const readyWithin = 90 * time.Second

// Servers is a control plane on loopback. It ends with Close.
type Servers struct {
	// URL is the address of the API, "https://127.0.0.1:PORT".
	URL string
	// Token belongs to a user of the group system:masters.
	Token string
	// CAFile holds the authority of the API's certificate, as PEM.
	CAFile string
	// Version is what /version says, such as "v1.36.3".
	Version string
	// EtcdVersion is what etcd says of itself.
	EtcdVersion string

	folder    string
	binaries  string
	client    *http.Client
	etcd      string // client URL
	processes []*process
}

// process is a server that was started.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error
}

// Start starts etcd, kube-apiserver and kube-controller-manager of the folder binaries; all they write goes
// to a folder of their own. ctx bounds the start alone.
func Start(ctx context.Context, binaries string) (s *Servers, err error) {
	folder, err := os.MkdirTemp("", "drawbridge-kube-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for the servers: %w", err)
	}
	s = &Servers{folder: folder, binaries: binaries}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.startEtcd(ctx); err != nil {
		return s, err
	}
	if err := s.startAPI(ctx); err != nil {
		return s, err
	}
	if err := s.startControllers(ctx); err != nil {
		return s, err
	}
	return s, nil
}

// Close ends the servers and removes what they wrote.
func (s *Servers) Close() error {
	for i := len(s.processes) - 1; i >= 0; i-- {
		s.processes[i].end()
	}
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	return os.RemoveAll(s.folder)
}

// path is a file in the servers' folder.
func (s *Servers) path(name string) string { return filepath.Join(s.folder, name) }

func (s *Servers) startEtcd(ctx context.Context) error {
	client, err := freePort()
	if err != nil {
		return err
	}
	peer, err := freePort()
	if err != nil {
		return err
	}
	s.etcd = "http://127.0.0.1:" + client
	if err := s.spawn("etcd",
		"--data-dir", s.path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", s.etcd, "--advertise-client-urls", s.etcd,
		"--listen-peer-urls", "http://127.0.0.1:"+peer, "--initial-advertise-peer-urls", "http://127.0.0.1:"+peer,
		"--initial-cluster", "default=http://127.0.0.1:"+peer, "--log-level", "error"); err != nil {
		return err
	}
	if err := s.await(ctx, "etcd", http.DefaultClient, s.etcd+"/health"); err != nil {
		return err
	}
	var version struct {
		Server string `json:"etcdserver"`
	}
	err = s.get(ctx, http.DefaultClient, s.etcd+"/version", &version)
	s.EtcdVersion = version.Server
	return err
}

func (s *Servers) startAPI(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return err
	}
	s.Token, s.URL, s.CAFile = hex.EncodeToString(token), "https://127.0.0.1:"+port, s.path("apiserver.crt")
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n", s.Token)
	if err := os.WriteFile(s.path("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return err
	}
	if err := writeKey(s.path("accounts.key")); err != nil {
		return err
	}
	if err := s.spawn("kube-apiserver",
		"--etcd-servers", s.etcd, "--secure-port", port, "--bind-address", "127.0.0.1", "--cert-dir", s.folder,
		"--endpoint-reconciler-type", "none", // there is no address of it that pods could reach
		"--service-cluster-ip-range", "10.152.183.0/24", "--service-node-port-range", "30000-32767",
		"--authorization-mode", "RBAC", "--token-auth-file", s.path("tokens.csv"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", s.path("accounts.key"),
		"--service-account-signing-key-file", s.path("accounts.key"), "--profiling=false", "-v", "0"); err != nil {
		return err
	}
	// The certificate is made by the server when it starts.
	if err := s.poll(ctx, "kube-apiserver", func(context.Context) error { return s.trust() }); err != nil {
		return err
	}
	if err := s.await(ctx, "kube-apiserver", s.client, s.URL+"/readyz"); err != nil {
		return err
	}
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	err = s.get(ctx, s.client, s.URL+"/version", &version)
	s.Version = version.GitVersion
	return err
}

// trust makes the client that knows the API's certificate.
func (s *Servers) trust() error {
	raw, err := os.ReadFile(s.CAFile)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return errors.New("no certificate yet")
	}
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	return nil
}

func (s *Servers) startControllers(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path("kubeconfig"), s.Kubeconfig(), 0o600); err != nil {
		return err
	}
	if err := s.spawn("kube-controller-manager",
		"--kubeconfig", s.path("kubeconfig"), "--secure-port", port, "--bind-address", "127.0.0.1", "--cert-dir", s.path("controllers"),
		"--leader-elect=false", "--use-service-account-credentials=false",
		"--service-account-private-key-file", s.path("accounts.key"), "--root-ca-file", s.CAFile, "-v", "0"); err != nil {
		return err
	}
	// Ready is when a new namespace gets its service account, which the controllers make.
	return s.poll(ctx, "kube-controller-manager", func(ctx context.Context) error {
		var account struct{}
		return s.get(ctx, s.client, s.URL+"/api/v1/namespaces/default/serviceaccounts/default", &account)
	})
}

// Kubeconfig is the administrator's, as kubectl reads it.
func (s *Servers) Kubeconfig() []byte {
	config := map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "kube",
		"clusters": []any{map[string]any{"name": "kube", "cluster": map[string]any{"server": s.URL, "certificate-authority": s.CAFile}}},
		"users":    []any{map[string]any{"name": "admin", "user": map[string]any{"token": s.Token}}},
		"contexts": []any{map[string]any{"name": "kube", "context": map[string]any{"cluster": "kube", "user": "admin"}}},
	}
	raw, err := json.Marshal(config) // JSON is YAML
	if err != nil {
		panic(err) // strings and maps
	}
	return raw
}

// spawn starts a server whose output goes to a file; it dies with this process.
func (s *Servers) spawn(name string, args ...string) error {
	log, err := os.Create(s.path(name + ".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p := &process{name: name, cmd: exec.Command(filepath.Join(s.binaries, name), args...), log: log.Name(), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.folder, log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", name, err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	s.processes = append(s.processes, p)
	return nil
}

// end asks the server to end, and makes it.
func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(3 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// tail is the end of the server's log.
func (p *process) tail() string {
	raw, _ := os.ReadFile(p.log)
	return string(raw[max(0, len(raw)-3000):])
}

// await polls until url answers 200.
func (s *Servers) await(ctx context.Context, name string, client *http.Client, url string) error {
	return s.poll(ctx, name, func(ctx context.Context) error { return s.get(ctx, client, url, nil) })
}

// poll calls ready until it has no error, the newest process has ended, or the time is over.
func (s *Servers) poll(ctx context.Context, name string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	p := s.processes[len(s.processes)-1]
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("cannot start %s: it ended: %w\n%s", name, p.err, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("cannot start %s: not ready in time: %w\n%s", name, err, p.tail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// get reads one JSON document as the administrator; into may be nil.
func (s *Servers) get(ctx context.Context, client *http.Client, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if s.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.Token)
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, resp.Status, bytes.TrimSpace(raw[:min(len(raw), 300)]))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// freePort is a port of loopback that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// writeKey makes the key that service accounts' tokens are signed with.
func writeKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}
