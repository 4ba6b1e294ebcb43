// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// How long a ConfigMap has to be left alone before the charm is woken: many changes are told as few.
const (
	mapQuiet = 250 * time.Millisecond
	// mapGone is that for one that is not there: it may be about to be made again.
	mapGone = 1100 * time.Millisecond
	// mapLatest is how long changes that do not end may put it off.
	mapLatest = time.Second
)

// mapFollower follows ConfigMaps: of each it keeps the digest of its content, and nothing else. The streams tell versions
// only; the content is read one at a time, so that however many change, one is in memory.
type mapFollower struct {
	connect func() (*k8sservice.Client, error)
	log     *slog.Logger
	changed chan struct{} // holds one; told after each change
	base    context.Context

	running sync.WaitGroup
	reading sync.Mutex // one content at a time

	mu      sync.Mutex
	client  *k8sservice.Client
	streams map[string]context.CancelFunc
	digests map[string]string // "" for one that is not there; no key while it was not read
	refused bool              // said once
}

func newMapFollower(ctx context.Context, connect func() (*k8sservice.Client, error), log *slog.Logger) *mapFollower {
	return &mapFollower{
		connect: connect, log: log, base: ctx, changed: make(chan struct{}, 1),
		streams: map[string]context.CancelFunc{}, digests: map[string]string{},
	}
}

// follow makes these names the ones that are followed.
func (f *mapFollower) follow(names map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, stop := range f.streams {
		if _, wanted := names[name]; !wanted {
			stop()
			delete(f.streams, name)
			delete(f.digests, name)
		}
	}
	for name := range names {
		if f.streams[name] != nil {
			continue
		}
		ctx, stop := context.WithCancel(f.base)
		f.streams[name] = stop
		f.running.Go(func() {
			defer stop()
			keep(ctx, f.log, nil, func(ctx context.Context) error { return f.one(ctx, name) })
		})
	}
}

// close waits for the end of all streams, once base has ended.
func (f *mapFollower) close() {
	f.running.Wait()
	if f.client != nil {
		f.client.Close()
	}
}

// one reads a ConfigMap and follows it until its stream ends.
func (f *mapFollower) one(ctx context.Context, name string) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	client, err := f.open()
	if err != nil {
		return err
	}
	last, err := f.read(ctx, client, name)
	if err != nil {
		return f.noRights(err)
	}
	return f.noRights(client.WatchConfigMap(ctx, name, func(version string) {
		switch {
		case version == last:
		case version == "":
			last = ""
			f.set(name, "")
		default:
			if last, err = f.read(ctx, client, name); err != nil {
				end(err)
			}
		}
	}))
}

// noRights says once that rights are missing. Then the content is read again now and then, as after every stream that ends.
func (f *mapFollower) noRights(err error) error {
	if k8sservice.Classify(err).Kind != k8sservice.Forbidden {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.refused {
		f.refused = true
		f.log.Warn("cannot follow connected ConfigMaps; they are read now and then", "error", err)
	}
	return err
}

func (f *mapFollower) open() (*k8sservice.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.client == nil {
		client, err := f.connect()
		if err != nil {
			return nil, err
		}
		f.client = client
	}
	return f.client, nil
}

// read reads the content, keeps its digest and returns its version.
func (f *mapFollower) read(ctx context.Context, client *k8sservice.Client, name string) (version string, err error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	m, err := client.ConfigMap(ctx, name)
	if err != nil {
		return "", err
	}
	if m == nil {
		f.set(name, "")
		return "", nil
	}
	content := connections.ConfigMap{Name: name, Labels: m.Labels, Data: m.Data, Binary: m.BinaryData}
	f.set(name, content.Digest())
	return m.ResourceVersion, nil
}

func (f *mapFollower) set(name, digest string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams[name] == nil {
		return
	}
	f.digests[name] = digest
	poke(f.changed)
}

// look returns the digests of those that were read.
func (f *mapFollower) look() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.digests)
}

// mapLooker shows ConfigMaps; mapFollower does.
type mapLooker interface {
	follow(names map[string]string)
	look() map[string]string
}

// mapWatch is the part of the watch's loop that is about ConfigMaps. It has a pacer of its own, so that neither they nor
// the exposure put off what is to be told of the other.
type mapWatch struct {
	looker   mapLooker
	changes  <-chan struct{}
	notifier Notifier

	order   map[string]string
	seen    map[string]string
	differs map[string]mapChange
	pacer   pacer
	telling bool
	told    chan told
}

// mapChange is since when a ConfigMap differs from the order, and when it changed last.
type mapChange struct{ first, last time.Time }

// adopt takes an order.
func (w *mapWatch) adopt(order map[string]string, now time.Time) {
	if w.looker == nil {
		return
	}
	if !maps.Equal(order, w.order) {
		w.pacer.news()
	}
	w.order = maps.Clone(order)
	w.looker.follow(w.order)
	w.compare(now)
}

// look takes in what the looker shows.
func (w *mapWatch) look(now time.Time) {
	before := w.seen
	w.seen = w.looker.look()
	w.compare(now)
	for name, c := range w.differs {
		if before[name] != w.seen[name] {
			c.last = now
			w.differs[name] = c
		}
	}
}

// compare notes since when what is seen differs from the order.
func (w *mapWatch) compare(now time.Time) {
	differs := map[string]mapChange{}
	for name, want := range w.order {
		got, read := w.seen[name]
		if !read || got == want {
			continue
		}
		c, known := w.differs[name]
		if !known {
			c = mapChange{now, now}
		}
		differs[name] = c
	}
	w.differs = differs
}

// due is when a difference is to be told.
func (w *mapWatch) due(name string) time.Time {
	c := w.differs[name]
	if w.seen[name] == "" {
		return c.last.Add(mapGone)
	}
	if quiet, latest := c.last.Add(mapQuiet), c.first.Add(mapLatest); quiet.Before(latest) {
		return quiet
	}
	return c.first.Add(mapLatest)
}

// items is what is to be told now, and next when there will be more; zero for never.
func (w *mapWatch) items(now time.Time) (items []item, next time.Time) {
	for _, name := range slices.Sorted(maps.Keys(w.differs)) {
		if due := w.due(name); due.After(now) {
			if next.IsZero() || due.Before(next) {
				next = due
			}
			continue
		}
		items = append(items, item{key: "configmap " + name + " " + w.seen[name], fast: true})
	}
	return items, next
}
