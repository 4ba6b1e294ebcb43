// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setupTimeout bounds each step of a pod's start.
const setupTimeout = 20 * time.Second

// Manager runs pods. It belongs into the cluster process; its methods may be called concurrently.
type Manager struct {
	options Options
	log     *slog.Logger
	// rootless is set in a user namespace.
	rootless *rootlessSetup

	mu   sync.Mutex
	next int
	pods map[*Pod]struct{}
}

// NewManager prepares Options.Dir. [ClusterInit] must have run before.
func NewManager(o Options) (*Manager, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	dir, err := filepath.EvalSymlinks(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot use pod folder: %w", err)
	}
	o.Dir = dir
	if o.Quota == 0 {
		o.Quota = DefaultQuota
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NODEV, "mode=700"); err != nil {
		return nil, fmt.Errorf("cannot mount pod folder: %w", err)
	}
	hide := []string{dir}
	for _, h := range o.Hide {
		if real, err := filepath.EvalSymlinks(h); err == nil {
			hide = append(hide, real)
		}
	}
	o.Hide = hide
	m := &Manager{options: o, log: o.Logger, pods: map[*Pod]struct{}{}}
	if m.rootless, err = newRootless(dir, hide, o.Logger); err != nil {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		return nil, err
	}
	return m, nil
}

// Start makes a pod and starts its containers. It returns when all have their root and their main
// command has been started, which for Pebble does not mean yet that it answers. If that fails, nothing
// of the pod is left.
func (m *Manager) Start(ctx context.Context, s Spec) (*Pod, error) {
	if s.Hostname == "" {
		s.Hostname = s.Name
	}
	m.mu.Lock()
	m.next++
	base := filepath.Join(m.options.Dir, strconv.Itoa(m.next))
	m.mu.Unlock()
	p := &Pod{manager: m, spec: s, base: base, done: make(chan struct{}), containers: map[string]*container{}, exits: map[string]int{}}
	if err := p.start(ctx); err != nil {
		p.Kill()
		return nil, fmt.Errorf("cannot start pod %s: %w", s.Name, err)
	}
	return p, nil
}

// Close kills all pods, waits until they are gone, and unmounts the pod folder.
func (m *Manager) Close() error {
	m.mu.Lock()
	pods := make([]*Pod, 0, len(m.pods))
	for p := range m.pods {
		pods = append(pods, p)
	}
	m.mu.Unlock()
	for _, p := range pods {
		p.Kill()
	}
	if err := unix.Unmount(m.options.Dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("cannot unmount pod folder: %w", err)
	}
	return nil
}

// Pod is a running pod. Its methods may be called concurrently.
type Pod struct {
	manager *Manager
	spec    Spec
	base    string
	process *os.Process
	pid     int
	control *conn
	done    chan struct{}

	ask     sync.Mutex // one request to pod-init at a time
	answers chan initAnswer

	mu         sync.Mutex
	containers map[string]*container // nil when the pod has ended
	exits      map[string]int
	next       int
}

// Name returns the pod's name.
func (p *Pod) Name() string { return p.spec.Name }

// Spec returns what the pod was started with.
func (p *Pod) Spec() Spec { return p.spec }

// PID returns the process id of pod-init as the cluster process sees it.
func (p *Pod) PID() int { return p.pid }

// Done is closed when the pod has ended with all its processes and its folders are removed.
func (p *Pod) Done() <-chan struct{} { return p.done }

// ContainerDir returns the folder of the cluster process that the charm container sees as
// /charm/containers/<name>, and the workload container as /charm/container.
func (p *Pod) ContainerDir(name string) string { return filepath.Join(p.base, "c", name) }

// PebbleSocket returns the path, in the cluster process, of the socket of the Pebble of a workload container.
func (p *Pod) PebbleSocket(name string) string {
	return filepath.Join(p.ContainerDir(name), "pebble.socket")
}

// JujuDir returns the folder of the cluster process that the charm container sees as /var/lib/juju. It lives
// as long as the pod.
func (p *Pod) JujuDir() string { return filepath.Join(p.base, "juju") }

// HealthPort returns the port of the Pebble of a workload container, or 0 if there is no such container.
func (p *Pod) HealthPort(name string) int {
	names := p.workloads()
	i := sort.SearchStrings(names, name)
	if i == len(names) || names[i] != name {
		return 0
	}
	return FirstWorkloadPort + i
}

// workloads returns the sorted names of the workload containers.
func (p *Pod) workloads() []string {
	var names []string
	for _, c := range p.spec.Containers {
		if c.Workload {
			names = append(names, c.Name)
		}
	}
	sort.Strings(names)
	return names
}

// start brings the pod up.
func (p *Pod) start(ctx context.Context) error {
	if err := p.folders(); err != nil {
		return err
	}
	if err := p.run(); err != nil {
		return err
	}
	if p.manager.options.Attach != nil {
		if err := p.manager.options.Attach(p.pid, p.spec); err != nil {
			return err
		}
	}
	if err := p.request(ctx, initRequest{Hostname: p.spec.Hostname}); err != nil {
		return err
	}
	for _, c := range p.spec.Containers {
		if err := p.StartContainer(ctx, c.Name); err != nil {
			return err
		}
	}
	return nil
}

// folders makes the folders that the pod's containers share, on a file system of the pod's own: one that fills it
// takes nothing from other pods.
func (p *Pod) folders() error {
	if err := mkdir(p.base, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", p.base, "tmpfs", unix.MS_NODEV, sized(p.manager.options.Quota)); err != nil {
		return fmt.Errorf("cannot mount the pod's layer: %w", err)
	}
	for _, folder := range []string{p.JujuDir(), filepath.Join(p.base, "c")} {
		if err := mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	for _, name := range p.workloads() {
		if err := mkdir(p.ContainerDir(name), 0o755); err != nil {
			return err
		}
	}
	if len(p.spec.Token) == 0 {
		return nil
	}
	account := p.accountDir()
	if err := mkdir(account, 0o755); err != nil {
		return err
	}
	files := map[string][]byte{"token": p.spec.Token, "ca.crt": p.spec.CA, "namespace": []byte(p.spec.Namespace)}
	for name, content := range files {
		if err := replaceFile(filepath.Join(account, name), string(content)); err != nil {
			return err
		}
	}
	return nil
}

// accountDir is the service account folder.
func (p *Pod) accountDir() string { return filepath.Join(p.base, "account") }

// SetToken replaces the service account token that the containers see.
func (p *Pod) SetToken(token []byte) error {
	return replaceFile(filepath.Join(p.accountDir(), "token"), string(token))
}

// run starts pod-init and the goroutines that follow it.
func (p *Pod) run() error {
	control, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	cmd := newCommand(InitCommand, p.spec.Name)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Setsid:     true,
	}
	if err := cmd.Start(); err != nil {
		control.Close()
		return fmt.Errorf("cannot make namespaces: %w", err)
	}
	p.process, p.pid, p.control, p.answers = cmd.Process, cmd.Process.Pid, control, make(chan initAnswer, 1)
	p.manager.mu.Lock()
	p.manager.pods[p] = struct{}{}
	p.manager.mu.Unlock()
	ended := make(chan struct{})
	go p.follow(ended)
	go func() {
		_ = cmd.Wait() // killed, or out of work; the containers' ends have been told apart
		<-ended
		p.clean()
	}()
	return nil
}

// follow reads what pod-init says until it has gone.
func (p *Pod) follow(ended chan<- struct{}) {
	defer close(ended)
	defer close(p.answers)
	for {
		var a initAnswer
		if _, err := p.control.receive(&a); err != nil {
			return
		}
		if a.Ended == "" {
			p.answers <- a
			continue
		}
		p.mu.Lock()
		c := p.containers[a.Ended]
		delete(p.containers, a.Ended)
		p.mu.Unlock()
		if c != nil {
			p.end(c)
		}
	}
}

// removeFolders undoes folders, as far as that came.
func (p *Pod) removeFolders() error {
	if err := unix.Unmount(p.base, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return os.RemoveAll(p.base)
}

// clean removes what is left of a pod that has ended.
func (p *Pod) clean() {
	p.control.Close()
	p.mu.Lock()
	left := p.containers
	p.containers = nil
	p.mu.Unlock()
	for _, c := range left {
		p.end(c)
	}
	if p.manager.options.Detach != nil {
		p.manager.options.Detach(p.spec)
	}
	if err := p.removeFolders(); err != nil {
		p.manager.log.Warn("cannot remove the folder of a pod", "pod", p.spec.Name, "error", err)
	}
	p.manager.mu.Lock()
	delete(p.manager.pods, p)
	p.manager.mu.Unlock()
	close(p.done)
}

// Kill ends the pod with all its processes at once and returns when it has gone.
func (p *Pod) Kill() {
	if p.pid == 0 {
		_ = p.removeFolders()
		return
	}
	select {
	case <-p.done:
		return
	default:
	}
	_ = p.process.Kill() // an error says that it has ended already
	<-p.done
}

// errPodEnded says that the pod is no longer there.
var errPodEnded = errors.New("the pod has ended")

// request asks pod-init for something and waits for the answer.
func (p *Pod) request(ctx context.Context, r initRequest, files ...*os.File) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	p.ask.Lock()
	defer p.ask.Unlock()
	if err := p.control.send(r, files...); err != nil {
		return errPodEnded
	}
	select {
	case a, ok := <-p.answers:
		if !ok {
			return errPodEnded
		}
		if a.Error != "" {
			return errors.New(a.Error)
		}
		return nil
	case <-ctx.Done():
		// The answer would be taken for that to another request.
		_ = p.process.Kill()
		return fmt.Errorf("cannot wait for the pod: %w", ctx.Err())
	}
}
