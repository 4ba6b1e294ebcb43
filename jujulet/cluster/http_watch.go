// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bookmarkEvery is how often a watch that asks for bookmarks gets one while nothing happens.
const bookmarkEvery = time.Minute

// stream sends the events of one watch.
type stream struct {
	*call
	sel     selection
	encoder *json.Encoder
	flush   func()
	last    int64
}

// watch answers a watch until the client leaves, timeoutSeconds are over, or the server closes.
func (c *call) watch() error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	if c.action.name != "" && sel.fields.Empty() {
		sel.name = c.action.name
	}
	start, err := c.watchStart()
	if err != nil {
		return err
	}
	w, initial, begin, problem := c.open(sel, start)
	if w != nil {
		defer c.close(w)
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	st := &stream{call: c, sel: sel, encoder: json.NewEncoder(c.w), flush: func() {}, last: begin}
	if f, ok := c.w.(http.Flusher); ok {
		st.flush = f.Flush
	}
	st.flush()
	if problem != nil {
		return st.problem(problem)
	}
	ctx := c.r.Context()
	if seconds, err := strconv.Atoi(c.query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	if !st.initial(initial, start) {
		return nil
	}
	st.run(ctx, w)
	return nil
}

// start says where a watch begins: with the present state, or after a version.
type start struct {
	state   bool
	marked  bool // a bookmark ends the initial state
	version int64
}

func (c *call) watchStart() (start, error) {
	text := c.query.Get("resourceVersion")
	if send := c.query.Get("sendInitialEvents"); send != "" {
		if c.query.Get("resourceVersionMatch") != string(metav1.ResourceVersionMatchNotOlderThan) {
			return start{}, apierrors.NewBadRequest("sendInitialEvents requires resourceVersionMatch=NotOlderThan")
		}
		if isTrue(send) {
			return start{state: true, marked: isTrue(c.query.Get("allowWatchBookmarks"))}, nil
		}
		if text == "" {
			text = "now"
		}
	}
	switch text {
	case "", "0":
		return start{state: true}, nil
	case "now":
		return start{version: -1}, nil
	}
	v, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return start{}, apierrors.NewInternalError(err)
	}
	return start{version: int64(v)}, nil
}

// open registers a watcher, and reads under the same lock what it begins with. A start that is too old
// or not there yet is a problem to be sent as an event.
func (s *Server) open(sel selection, from start) (w *watcher, initial []record, begin int64, problem error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	begin = s.store.version
	switch {
	case from.state:
		for _, o := range s.selected(sel) {
			initial = append(initial, record{kind: sel.kind.Kind, object: o, typ: Added})
		}
	case from.version < 0:
	case from.version > s.store.version:
		return nil, nil, begin, tooLarge(from.version, s.store.version)
	case from.version < s.store.oldest():
		return nil, nil, begin, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from.version, s.store.oldest()+1))
	default:
		for _, r := range s.store.since(from.version) {
			if r.kind == sel.kind.Kind {
				initial = append(initial, r)
			}
		}
	}
	return s.store.watch(sel.kind.Kind), initial, begin, nil
}

func (s *Server) close(w *watcher) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	delete(s.store.watchers, w)
}

// initial sends what the watch begins with; false means that the client is gone.
func (st *stream) initial(records []record, from start) bool {
	for _, r := range records {
		if !st.record(r) {
			return false
		}
	}
	if from.marked && !st.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"}) {
		return false
	}
	st.flush()
	return true
}

func (st *stream) run(ctx context.Context, w *watcher) {
	var ticks <-chan time.Time
	if isTrue(st.query.Get("allowWatchBookmarks")) {
		t := time.NewTicker(bookmarkEvery)
		defer t.Stop()
		ticks = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-st.closed:
			return
		case <-ticks:
			if !st.bookmark(nil) {
				return
			}
			st.flush()
		case <-w.wake:
			for _, r := range w.take() {
				if !st.record(r) {
					return
				}
			}
			st.flush()
		}
	}
}

// record sends one change as this watch sees it: an object that begins to match is ADDED, one that
// stops is DELETED.
func (st *stream) record(r record) bool {
	if r.version > 0 {
		st.last = r.version
	}
	typ, obj := transition(st.sel, r)
	if typ == "" {
		return true
	}
	return st.send(typ, obj)
}

// transition gives the event that a change is for a selection; "" is none.
func transition(sel selection, r record) (EventType, Object) {
	was, is := sel.matches(r.before), r.typ != Deleted && sel.matches(r.object)
	switch {
	case is && was:
		return Modified, r.object
	case is:
		return Added, r.object
	case was && r.typ == Deleted:
		return Deleted, r.object
	case was:
		gone := r.before.DeepCopyObject().(Object)
		gone.SetResourceVersion(r.object.GetResourceVersion())
		return Deleted, gone
	}
	return "", nil
}

// wireEvent is an event as it goes over the wire.
type wireEvent struct {
	Type   EventType `json:"type"`
	Object any       `json:"object"`
}

func (st *stream) send(typ EventType, obj Object) bool {
	var body any = obj
	if st.wantsMetadata() {
		body = partial(obj)
	}
	if st.wantsTable() {
		table, err := st.table([]Object{obj}, obj.GetResourceVersion())
		if err != nil {
			return false
		}
		body = table
	}
	return st.encoder.Encode(wireEvent{typ, body}) == nil
}

func (st *stream) bookmark(annotations map[string]string) bool {
	obj := st.kind.empty()
	obj.GetObjectKind().SetGroupVersionKind(st.kind.gvk)
	obj.SetResourceVersion(formatVersion(st.last))
	obj.SetAnnotations(annotations)
	if st.wantsTable() {
		return true
	}
	return st.encoder.Encode(wireEvent{"BOOKMARK", obj}) == nil
}

// problem sends an error as an event, which ends the watch.
func (st *stream) problem(err error) error {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return err
	}
	body := status.Status()
	body.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	_ = st.encoder.Encode(wireEvent{"ERROR", body})
	st.flush()
	return nil
}
