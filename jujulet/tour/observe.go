// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// observer collects what happens while the tour acts: commits, changes of the Service, answers. Whoever waits for
// something looks at it again after each change.
type observer struct {
	stage Stage

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	entries []model.JournalEntry
	service *corev1.Service
	named   map[string]time.Time // when an address was last given to the probers
	inside  map[string]time.Time // first answers since then, in the client's network
	outside map[string]time.Time // and outside the cluster
	failure error
}

func newObserver(stage Stage) *observer {
	return &observer{
		stage: stage, changed: make(chan struct{}),
		named: map[string]time.Time{}, inside: map[string]time.Time{}, outside: map[string]time.Time{},
	}
}

// update changes what is known and wakes whoever waits.
func (o *observer) update(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
	close(o.changed)
	o.changed = make(chan struct{})
}

// fail records that an observation ended although the tour goes on.
func (o *observer) fail(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	o.update(func() {
		if o.failure == nil {
			o.failure = fmt.Errorf("cannot follow %s: %w", what, err)
		}
	})
}

// await calls look now and after each change until it reports true. look may use what is guarded by the mutex.
func (o *observer) await(ctx context.Context, look func() bool) error {
	for {
		o.mu.Lock()
		done, failure, changed := look(), o.failure, o.changed
		o.mu.Unlock()
		if done || failure != nil {
			return failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// followJournal collects commits until ctx ends.
func (o *observer) followJournal(ctx context.Context) {
	err := o.stage.Journal(ctx, control.JournalRequest{Follow: true}, func(e model.JournalEntry) error {
		o.update(func() { o.entries = append(o.entries, e) })
		return nil
	})
	o.fail(ctx, "the journal", err)
}

// watchEvent is one event of a Kubernetes watch.
type watchEvent struct {
	Type   string         `json:"type"`
	Object corev1.Service `json:"object"`
}

// followService watches the Service of the charm until ctx ends.
func (o *observer) followService(ctx context.Context, namespace string) {
	transport, base := o.stage.Kubernetes()
	url := fmt.Sprintf("%s/api/v1/namespaces/%s/services?watch=true", base, namespace)
	for ctx.Err() == nil {
		err := watch(ctx, &http.Client{Transport: transport}, url, func(e watchEvent) {
			if e.Object.Name != serviceName {
				return
			}
			o.update(func() {
				o.service = &e.Object
				if e.Type == "DELETED" {
					o.service = nil
				}
			})
		})
		if err != nil {
			o.fail(ctx, "the Service", err)
			return
		}
	}
}

// watch reads one watch to its end; a server may end it at any time.
func watch(ctx context.Context, client *http.Client, url string, each func(watchEvent)) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", response.Status)
	}
	decoder := json.NewDecoder(response.Body)
	for {
		var e watchEvent
		if err := decoder.Decode(&e); err != nil {
			return nil
		}
		each(e)
	}
}

// pendingBefore is the flag of the charm as it was at a moment.
func pendingBefore(entries []model.JournalEntry, moment time.Time) bool {
	up := false
	for _, e := range entries {
		if !e.Time.After(moment) {
			up = flagAfter(e, up)
		}
	}
	return up
}

// since returns the commits after a moment.
func since(entries []model.JournalEntry, moment time.Time) []model.JournalEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e model.JournalEntry) bool { return !e.Time.After(moment) })
}

// answers returns the first answers in the client's network, none before a moment: what answered already answers then.
func (o *observer) answers(moment time.Time) map[string]time.Time {
	out := maps.Clone(o.inside)
	for address, at := range out {
		if at.Before(moment) {
			out[address] = moment
		}
	}
	return out
}

// probe is a prober that runs somewhere, with the orders it takes.
type probe struct {
	orders *io.PipeWriter
	done   chan struct{}
}

// startProbe runs a prober. Its first answers go into the map that answers selects.
func (o *observer) startProbe(ctx context.Context, where control.ShellRequest, l Login, answers map[string]time.Time) (*probe, error) {
	where.Command = []string{control.BinaryInPod, ProbeCommand}
	in, orders := io.Pipe()
	p := &probe{orders: orders, done: make(chan struct{})}
	lines := &lineWriter{each: func(line []byte) error {
		var l ProbeLine
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("cannot read %q: %w", line, err)
		}
		if l.First {
			o.update(func() {
				if at := time.Unix(0, l.At); !at.Before(o.named[l.Address]) {
					answers[l.Address] = at
				}
			})
		}
		return nil
	}}
	var stderr bytes.Buffer
	go func() {
		defer close(p.done)
		code, err := o.stage.Shell(ctx, where, control.Streams{Stdin: in, Stdout: lines, Stderr: &stderr})
		in.Close()
		if err == nil && code != 0 {
			err = fmt.Errorf("it exited with %d: %s", code, bytes.TrimSpace(stderr.Bytes()))
		}
		o.fail(ctx, "the prober", err)
	}()
	return p, p.order(ProbeOrder{Login: &l})
}

func (p *probe) order(order ProbeOrder) error {
	data, err := json.Marshal(order)
	if err != nil {
		return fmt.Errorf("cannot order a probe: %w", err)
	}
	if _, err := p.orders.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("cannot order a probe: %w", err)
	}
	return nil
}

// lineWriter calls each for every complete line written to it.
type lineWriter struct {
	each    func([]byte) error
	pending []byte
}

// Write takes any piece of the stream.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.pending = append(w.pending, p...)
	for {
		line, rest, found := bytes.Cut(w.pending, []byte{'\n'})
		if !found {
			return len(p), nil
		}
		if err := w.each(line); err != nil {
			return 0, err
		}
		w.pending = append([]byte(nil), rest...)
	}
}
