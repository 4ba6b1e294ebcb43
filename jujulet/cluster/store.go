// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
)

// store holds all objects, the global version, and the recent changes. Its methods expect the lock
// that the Server holds for the whole of a write.
type store struct {
	mu      sync.RWMutex
	version int64
	objects map[Kind]map[string]Object
	// history has the changes after floor, oldest first.
	history  []record
	floor    int64
	limit    int
	watchers map[*watcher]struct{}
	disk     *disk
}

// record is one committed change. before is the state that it replaced: nil for Added.
type record struct {
	version        int64
	kind           Kind
	object, before Object
	typ            EventType
}

func newStore(limit int, d *disk) *store {
	return &store{objects: map[Kind]map[string]Object{}, limit: limit, watchers: map[*watcher]struct{}{}, disk: d}
}

func storeKey(namespace, name string) string { return namespace + "/" + name }

func keyOf(o Object) string { return storeKey(o.GetNamespace(), o.GetName()) }

func (s *store) get(k Kind, namespace, name string) Object {
	return s.objects[k][storeKey(namespace, name)]
}

// list gives the objects of a kind by namespace and name; namespace "" is all.
func (s *store) list(k Kind, namespace string) []Object {
	var out []Object
	for _, key := range slices.Sorted(maps.Keys(s.objects[k])) {
		if o := s.objects[k][key]; namespace == "" || o.GetNamespace() == namespace {
			out = append(out, o)
		}
	}
	return out
}

// commit makes obj the state of its name (for Deleted: its last state), under a new version.
func (s *store) commit(k *kind, typ EventType, obj Object) error {
	next := s.version + 1
	obj.SetResourceVersion(strconv.FormatInt(next, 10))
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	if s.disk != nil {
		if err := s.disk.write(k, typ, obj, next); err != nil {
			return fmt.Errorf("cannot store %s %q: %w", k.Kind, keyOf(obj), err)
		}
	}
	s.version = next
	key := keyOf(obj)
	before := s.objects[k.Kind][key]
	if typ == Deleted {
		delete(s.objects[k.Kind], key)
	} else {
		s.put(k.Kind, obj)
	}
	s.publish(record{version: next, kind: k.Kind, object: obj, before: before, typ: typ})
	return nil
}

func (s *store) put(k Kind, obj Object) {
	if s.objects[k] == nil {
		s.objects[k] = map[string]Object{}
	}
	s.objects[k][keyOf(obj)] = obj
}

func (s *store) publish(r record) {
	s.history = append(s.history, r)
	if len(s.history) >= 2*s.limit {
		cut := len(s.history) - s.limit
		s.floor = s.history[cut-1].version
		s.history = slices.Clone(s.history[cut:])
	}
	for w := range s.watchers {
		w.push(r)
	}
}

// oldest is the first version that a watch may start after.
func (s *store) oldest() int64 {
	if extra := len(s.history) - s.limit; extra > 0 {
		return s.history[extra-1].version
	}
	return s.floor
}

// since gives the changes after version, which must not be below oldest.
func (s *store) since(version int64) []record {
	i, _ := slices.BinarySearchFunc(s.history, version+1, func(r record, v int64) int { return int(r.version - v) })
	return s.history[i:]
}

// watcher is a queue of changes that grows as long as its reader lags.
type watcher struct {
	kinds map[Kind]bool
	mu    sync.Mutex
	queue []record
	// wake holds a token while the queue may be non-empty.
	wake chan struct{}
}

func (s *store) watch(kinds ...Kind) *watcher {
	w := &watcher{kinds: map[Kind]bool{}, wake: make(chan struct{}, 1)}
	for _, k := range kinds {
		w.kinds[k] = true
	}
	s.watchers[w] = struct{}{}
	return w
}

func (w *watcher) push(r record) {
	if len(w.kinds) > 0 && !w.kinds[r.kind] {
		return
	}
	w.mu.Lock()
	w.queue = append(w.queue, r)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) take() []record {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queue
	w.queue = nil
	return q
}
