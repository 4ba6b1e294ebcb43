// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// Bounds on how soon a watch of an object is opened again.
const (
	reopenFirst = 500 * time.Millisecond
	reopenLast  = 15 * time.Second
	reopenEnded = 2 * time.Second  // the longest after one that the server ended
	goodStream  = 30 * time.Second // one that lasted so long did not fail
)

// follower keeps what it is told of the Service and, while that is a NodePort,
// of the pods and of the nodes that ready pods run on. For each it reads,
// watches from the present state, and whatever ends the watch reads again.
type follower struct {
	connect func() (*k8sservice.Client, error)
	app     string
	service string
	log     *slog.Logger
	changed chan struct{} // holds one; told after each change
	again   chan struct{} // holds one; asks for the Service to be read again
	base    context.Context
	client  *k8sservice.Client

	running sync.WaitGroup

	mu       sync.Mutex
	read     bool // the Service has been read
	live     *corev1.Service
	pods     map[string]podState // nil: not read
	nodes    map[string]*nodeState
	podsStop context.CancelFunc
}

type podState struct {
	node    string
	ready   bool
	version string
}

type nodeState struct {
	node *corev1.Node // nil until read, and when it is not there
	read bool
	stop context.CancelFunc
}

func newFollower(connect func() (*k8sservice.Client, error), app, service string, log *slog.Logger) *follower {
	return &follower{
		connect: connect, app: app, service: service, log: log,
		changed: make(chan struct{}, 1), again: make(chan struct{}, 1),
		nodes: map[string]*nodeState{},
	}
}

// run follows until ctx ends; it is called once.
func (f *follower) run(ctx context.Context) {
	f.base = ctx
	keep(ctx, f.log, f.again, func(ctx context.Context) error {
		if f.client == nil {
			client, err := f.connect()
			if err != nil {
				return err
			}
			f.client = client
		}
		live, err := f.client.Service(ctx, f.service)
		if err != nil {
			return err
		}
		f.setService(live, false)
		return f.client.WatchService(ctx, f.service, func(s *corev1.Service) { f.setService(s, true) })
	})
	f.running.Wait()
	if f.client != nil {
		f.client.Close()
	}
}

// changes tells of changes.
func (f *follower) changes() <-chan struct{} { return f.changed }

// reread asks for the Service to be read again at once.
func (f *follower) reread() { poke(f.again) }

// keep calls follow again and again, more and more slowly while it fails.
func keep(ctx context.Context, log *slog.Logger, again <-chan struct{}, follow func(context.Context) error) {
	for failures := 0; ctx.Err() == nil; {
		begin := time.Now()
		stream, cancel := context.WithCancel(ctx)
		interrupted := make(chan struct{})
		asked := false
		go func() {
			defer close(interrupted)
			select {
			case <-again:
				asked = true
				cancel()
			case <-stream.Done():
			}
		}()
		err := follow(stream)
		cancel()
		<-interrupted
		switch {
		case asked:
			continue
		case time.Since(begin) > goodStream:
			failures = 0
		case err != nil:
			log.Debug("cannot follow", "error", err)
		}
		last := reopenLast
		if err == nil {
			last = reopenEnded
		}
		pause(ctx, again, backoff(reopenFirst, last, failures))
		failures++
	}
}

// pause waits for d, or until it is asked to go on.
func pause(ctx context.Context, again <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-again:
	case <-timer.C:
	}
}

// setService takes the Service in. What a stream says may be older than what
// was read just before.
func (f *follower) setService(live *corev1.Service, streamed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if streamed && live != nil && f.live != nil && live.UID == f.live.UID &&
		k8sservice.Older(live.ResourceVersion, f.live.ResourceVersion) {
		return
	}
	f.read, f.live = true, live
	wanted := live != nil && live.Spec.Type == corev1.ServiceTypeNodePort
	switch {
	case wanted && f.podsStop == nil:
		f.followPods()
	case !wanted && f.podsStop != nil:
		f.podsStop()
		f.podsStop, f.pods = nil, nil
		f.keepNodes(nil)
	}
	poke(f.changed)
}

// followPods starts to follow the pods; f.mu is held.
func (f *follower) followPods() {
	ctx, stop := context.WithCancel(f.base) // the Service's own stream may end before
	f.podsStop = stop
	f.running.Go(func() {
		defer stop()
		keep(ctx, f.log, nil, func(ctx context.Context) error {
			pods, err := f.client.Pods(ctx, f.app)
			if err != nil {
				return err
			}
			f.setPods(pods)
			return f.client.WatchPods(ctx, f.app, f.setPod)
		})
	})
}

func (f *follower) setPods(pods []corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods = map[string]podState{}
	for i := range pods {
		f.pods[pods[i].Name] = podStateOf(&pods[i])
	}
	f.podsChanged()
}

func (f *follower) setPod(pod *corev1.Pod, gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods == nil || k8sservice.Older(pod.ResourceVersion, f.pods[pod.Name].version) {
		return
	}
	if gone {
		delete(f.pods, pod.Name)
	} else {
		f.pods[pod.Name] = podStateOf(pod)
	}
	f.podsChanged()
}

func podStateOf(pod *corev1.Pod) podState {
	return podState{node: pod.Spec.NodeName, ready: k8sservice.PodReady(pod), version: pod.ResourceVersion}
}

// podsChanged follows the nodes of ready pods, and no others; f.mu is held.
func (f *follower) podsChanged() {
	wanted := map[string]bool{}
	for _, p := range f.pods {
		if p.ready && p.node != "" {
			wanted[p.node] = true
		}
	}
	f.keepNodes(wanted)
	poke(f.changed)
}

// keepNodes starts and stops to follow nodes; f.mu is held.
func (f *follower) keepNodes(wanted map[string]bool) {
	for name, n := range f.nodes {
		if !wanted[name] {
			n.stop()
			delete(f.nodes, name)
		}
	}
	for name := range wanted {
		if f.nodes[name] != nil {
			continue
		}
		ctx, stop := context.WithCancel(f.base)
		n := &nodeState{stop: stop}
		f.nodes[name] = n
		f.running.Go(func() {
			defer stop()
			keep(ctx, f.log, nil, func(ctx context.Context) error {
				node, err := f.client.Node(ctx, name)
				if err != nil {
					return err
				}
				f.setNode(n, node)
				return f.client.WatchNode(ctx, name, func(node *corev1.Node) { f.setNode(n, node) })
			})
		})
	}
}

// setNode keeps the addresses of a node, which is all that is needed of it.
func (f *follower) setNode(n *nodeState, node *corev1.Node) {
	var kept *corev1.Node
	if node != nil {
		kept = &corev1.Node{Status: corev1.NodeStatus{Addresses: node.Status.Addresses}}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n.node, n.read = kept, true
	poke(f.changed)
}

// look returns what has been read; false until the Service was.
func (f *follower) look() (look, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := look{live: f.live, complete: true}
	if f.live != nil && f.live.Spec.Type == corev1.ServiceTypeNodePort {
		l.complete = f.pods != nil
		for _, n := range f.nodes {
			l.nodes = append(l.nodes, n.node)
			l.complete = l.complete && n.read
		}
	}
	return l, f.read
}

// poke leaves a token in a channel that holds one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
