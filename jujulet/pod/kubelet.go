// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// container is a running container as the Manager sees it.
type container struct {
	name    string
	base    string
	control *conn
	started chan containerAnswer
	done    chan struct{}
	streams streams
	exit    int
	ended   sync.Once
}

// end marks a container as ended, after all that container-init said has been read.
func (p *Pod) end(c *container) {
	c.ended.Do(func() {
		for range c.started {
			continue
		}
		c.streams.finish()
		p.mu.Lock()
		p.exits[c.name] = c.exit
		p.mu.Unlock()
		c.control.Close()
		_ = os.RemoveAll(c.base) // it is on a tmpfs; what stays goes with the pod
		close(c.done)
	})
}

// follow reads what container-init says.
func (c *container) follow() {
	defer close(c.started)
	for {
		var a containerAnswer
		if _, err := c.control.receive(&a); err != nil {
			return
		}
		if a.Exit != nil {
			c.exit = *a.Exit
			return
		}
		c.started <- a
	}
}

// container returns a running container.
func (p *Pod) container(name string) (*container, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.containers == nil {
		return nil, fmt.Errorf("cannot use pod %s: %w", p.spec.Name, errPodEnded)
	}
	c := p.containers[name]
	if c == nil {
		return nil, fmt.Errorf("cannot use container %s of pod %s: it does not run", name, p.spec.Name)
	}
	return c, nil
}

// Running returns the sorted names of the containers that run.
func (p *Pod) Running() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for name := range p.containers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ContainerDone returns a channel that is closed when the container, as it runs now, has ended with all its
// processes, and its output has been copied. It is closed already if the container does not run.
func (p *Pod) ContainerDone(name string) <-chan struct{} {
	c, err := p.container(name)
	if err != nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return c.done
}

// LastExit returns the exit code of the main command when the container of that name last ended; -1 if it was killed or had no
// main command. The second result is false if it has not ended yet.
func (p *Pod) LastExit(name string) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	code, ok := p.exits[name]
	return code, ok
}

// StartContainer starts a container of the pod's Spec that does not run, with a fresh root; the folders that the
// pod's containers share stay as they are.
func (p *Pod) StartContainer(ctx context.Context, name string) error {
	i := slices.IndexFunc(p.spec.Containers, func(c Container) bool { return c.Name == name })
	if i < 0 {
		return fmt.Errorf("cannot start container %s: pod %s has none of that name", name, p.spec.Name)
	}
	spec := p.spec.Containers[i]
	if err := p.launch(ctx, spec); err != nil {
		return fmt.Errorf("cannot start container %s: %w", name, err)
	}
	return nil
}

// launch starts container-init, hands it its setup and starts the main command.
func (p *Pod) launch(ctx context.Context, spec Container) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	main, err := p.mainCommand(spec)
	if err != nil {
		return err
	}
	setup, err := p.setup(spec)
	if err != nil {
		return err
	}
	c, err := p.startInit(ctx, spec, setup.Base)
	if err != nil {
		_ = os.RemoveAll(setup.Base)
		return err
	}
	if err := p.bringUp(ctx, c, setup, main); err != nil {
		p.stop(c)
		return err
	}
	return nil
}

// bringUp gives container-init its setup and starts the main command.
func (p *Pod) bringUp(ctx context.Context, c *container, setup containerSetup, main *execRequest) error {
	if err := c.control.send(setup); err != nil {
		return err
	}
	answer, err := c.answer(ctx)
	if err != nil {
		return err
	}
	for _, w := range answer.Warnings {
		p.manager.log.Warn("a folder is missing in a pod", "pod", p.spec.Name, "container", c.name, "error", w)
	}
	if main == nil {
		return nil
	}
	if err := c.control.send(containerMessage{Main: main}); err != nil {
		return err
	}
	_, err = c.answer(ctx)
	return err
}

// answer waits for an answer of container-init.
func (c *container) answer(ctx context.Context) (containerAnswer, error) {
	select {
	case a, ok := <-c.started:
		if !ok {
			return a, errors.New("it ended while it was set up")
		}
		if a.Error != "" {
			return a, errors.New(a.Error)
		}
		return a, nil
	case <-ctx.Done():
		return containerAnswer{}, ctx.Err()
	}
}

// startInit has pod-init start the container and enters it in the table.
func (p *Pod) startInit(ctx context.Context, spec Container, base string) (*container, error) {
	control, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	c := &container{
		name: spec.Name, base: base, control: control,
		started: make(chan containerAnswer, 4), done: make(chan struct{}), exit: -1,
	}
	p.mu.Lock()
	switch {
	case p.containers == nil:
		err = errPodEnded
	case p.containers[spec.Name] != nil:
		err = errors.New("it runs already")
	default:
		p.containers[spec.Name] = c
	}
	p.mu.Unlock()
	if err != nil {
		control.Close()
		return nil, err
	}
	go c.follow()
	s := &c.streams
	stdout, err := s.output(spec.Stdout)
	if err == nil {
		var stderr *os.File
		if stderr, err = s.output(spec.Stderr); err == nil {
			err = p.request(ctx, initRequest{Start: spec.Name}, theirs, stdout, stderr)
		}
	}
	s.started()
	if err != nil {
		p.mu.Lock()
		delete(p.containers, spec.Name)
		p.mu.Unlock()
		control.Close()
		p.end(c)
		return nil, err
	}
	return c, nil
}

// StopContainer ends a container. Its main command gets SIGTERM and the grace to end by itself; then all its
// processes are killed. It returns when they have gone; a container that does not run is not an error.
func (p *Pod) StopContainer(ctx context.Context, name string, grace time.Duration) error {
	c, err := p.container(name)
	if err != nil {
		return nil
	}
	if grace > 0 {
		_ = c.control.send(containerMessage{Signal: int(unix.SIGTERM)})
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.done:
			return nil
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	p.stop(c)
	return nil
}

// stop ends a container at once and waits until it has gone. The end of its connection makes container-init leave; if it
// does not come to that, it is killed.
func (p *Pod) stop(c *container) {
	_ = c.control.c.CloseWrite()
	timer := time.NewTimer(stopDelay)
	defer timer.Stop()
	select {
	case <-c.done:
		return
	case <-timer.C:
	}
	_ = p.request(context.Background(), initRequest{Kill: c.name})
	<-c.done
}

// stopDelay is how long container-init has to leave by itself.
const stopDelay = 2 * time.Second

// Signal sends a signal to the main command of a container.
func (p *Pod) Signal(name string, sig unix.Signal) error {
	c, err := p.container(name)
	if err != nil {
		return err
	}
	if err := c.control.send(containerMessage{Signal: int(sig)}); err != nil {
		return fmt.Errorf("cannot signal container %s: %w", name, err)
	}
	return nil
}

// copyTo copies a stream until it ends.
func copyTo(w io.Writer, r io.ReadCloser, done chan<- struct{}) {
	_, _ = io.Copy(w, r)
	r.Close()
	done <- struct{}{}
}
