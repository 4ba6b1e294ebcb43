// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package world

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/connections/carry"
	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

// Box is a unit's workload container as connections use it: files in memory.
type Box struct {
	mu    sync.Mutex
	files map[string][]byte
	modes map[string]fs.FileMode
	// pushes and execs count what was written and run.
	pushes []string
	execs  []workload.Command
	// FailPushes is how many pushes fail from now on.
	FailPushes int
	// Hook is what the workload's hook does; nil ends it with 0.
	Hook func(workload.Command) workload.Outcome
	down func() bool
}

// BoxOf returns the container of a unit; it is new with each pod.
func (w *World) BoxOf(unit string) *Box {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.boxes[unit] == nil {
		w.boxes[unit] = &Box{
			files: map[string][]byte{}, modes: map[string]fs.FileMode{},
			down: func() bool { return w.WorkloadOf(unit).Down },
		}
	}
	return w.boxes[unit]
}

// RestartContainer gives a unit's workload container an empty disk, and tells the unit that it is up.
func (w *World) RestartContainer(unit string) []string {
	w.T.Helper()
	w.mu.Lock()
	delete(w.boxes, unit)
	w.mu.Unlock()
	return w.Ready(unit, "gateway")
}

// openBox is the charm's way to a unit's container. It is never a real one: a Pebble of tests has the root of this machine.
func (w *World) openBox(unit string) func(context.Context) (carry.Box, error) {
	return func(context.Context) (carry.Box, error) {
		box := w.BoxOf(unit)
		if box.down() {
			return nil, workload.ErrNotReady
		}
		return box, nil
	}
}

// ReadFile is the charm's call.
func (b *Box) ReadFile(_ context.Context, name string) ([]byte, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, found := b.files[name]
	return slices.Clone(text), found, nil
}

// Size is the charm's call.
func (b *Box) Size(_ context.Context, name string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text, found := b.files[name]; found {
		return int64(len(text)), nil
	}
	return -1, nil
}

// Push is the charm's call.
func (b *Box) Push(_ context.Context, name string, content []byte, mode fs.FileMode) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.FailPushes > 0 {
		b.FailPushes--
		return errors.New("cannot write " + name + ": no space left on device")
	}
	if b.modes[path.Dir(name)]&fs.ModeDir == 0 {
		return errors.New("cannot write " + name + ": no such folder")
	}
	b.files[name], b.modes[name] = slices.Clone(content), mode
	b.pushes = append(b.pushes, name)
	return nil
}

// MakeDir is the charm's call.
func (b *Box) MakeDir(_ context.Context, name string, mode fs.FileMode) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.modes[name] == 0 {
		b.modes[name] = mode | fs.ModeDir
	}
	return nil
}

// Execute is the charm's call.
func (b *Box) Execute(_ context.Context, command workload.Command) (workload.Outcome, error) {
	b.mu.Lock()
	b.execs = append(b.execs, command)
	hook := b.Hook
	b.mu.Unlock()
	if hook == nil {
		return workload.Outcome{}, nil
	}
	return hook(command), nil
}

// Close is the charm's call.
func (b *Box) Close() {}

// Mode is that of a file or folder.
func (b *Box) Mode(name string) fs.FileMode {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.modes[name]
}

// Write changes a file behind the charm's back; nil removes it.
func (b *Box) Write(name string, text []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files[name] = text
	if text == nil {
		delete(b.files, name)
	}
}

// Pushes returns how often the document was written since the last call.
func (b *Box) Pushes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	count := 0
	for _, name := range b.pushes {
		if name == connections.Path {
			count++
		}
	}
	b.pushes = nil
	return count
}

// Execs returns the arguments of what was run since the last call.
func (b *Box) Execs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, c := range b.execs {
		all = append(all, strings.Join(c.Args, " "))
	}
	b.execs = nil
	return all
}

// Text is the document of a unit, nil without one.
func (w *World) Text(unit string) []byte {
	w.T.Helper()
	text, _, err := w.BoxOf(unit).ReadFile(w.T.Context(), connections.Path)
	require.NoError(w.T, err)
	return text
}

// Document is the document in a unit's workload.
func (w *World) Document(unit string) connections.Document {
	w.T.Helper()
	text := w.Text(unit)
	require.NotNil(w.T, text, "%s has no document", unit)
	d, err := connections.ParseDocument(text)
	require.NoError(w.T, err)
	return *d
}

// ConfigMap makes a ConfigMap of a type, or changes it: data as name, value pairs.
func (w *World) ConfigMap(name, typ string, pairs ...string) {
	w.T.Helper()
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Model, Name: name}, Data: map[string]string{}}
	if typ != "" {
		wanted.Labels = map[string]string{connections.LabelType: typ}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		wanted.Data[pairs[i]] = pairs[i+1]
	}
	_, err := w.Admin.Create(wanted)
	if apierrors.IsAlreadyExists(err) {
		_, err = cluster.Change(w.Admin, Model, name, func(m *corev1.ConfigMap) error {
			m.Data, m.Labels = wanted.Data, wanted.Labels
			return nil
		})
	}
	require.NoError(w.T, err)
}

// ChangeConfigMap changes one as it likes.
func (w *World) ChangeConfigMap(name string, change func(*corev1.ConfigMap)) {
	w.T.Helper()
	_, err := cluster.Change(w.Admin, Model, name, func(m *corev1.ConfigMap) error {
		change(m)
		return nil
	})
	require.NoError(w.T, err)
}

// DeleteConfigMap deletes one.
func (w *World) DeleteConfigMap(name string) {
	w.T.Helper()
	require.NoError(w.T, w.Admin.Delete(cluster.ConfigMap, Model, name))
}

// ConfigMapChanged gives a unit the notice of the watch about a ConfigMap, and settles.
func (w *World) ConfigMapChanged(unit string) []string {
	w.T.Helper()
	w.agent(unit).Post(model.HookInfo{
		Kind: "pebble-custom-notice", Workload: "gateway", NoticeID: "2", NoticeType: "custom", NoticeKey: connections.NoticeKey,
	})
	return w.Settle()
}

// Told lists the Events of an application: "Kind/name type reason: message", sorted.
func (w *World) Told(app string) []string {
	w.T.Helper()
	objects, err := w.Admin.List(cluster.EventKind, cluster.ListOptions{Namespace: Model})
	require.NoError(w.T, err)
	var told []string
	for _, o := range objects {
		e := o.(*corev1.Event)
		if e.Source.Component == app {
			told = append(told, e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name+" "+e.Type+" "+e.Reason+": "+e.Message)
		}
	}
	slices.Sort(told)
	return told
}

// UnitBag is a unit's own databag in the peer relation.
func (w *World) UnitBag(unit string) map[string]string {
	w.T.Helper()
	return w.bag(Gateway, "drawbridge-peers", "", unit)
}

// Bag finds the databag of owner in the relation of app's endpoint with remote.
func (w *World) Bag(app, endpoint, remote, owner string) map[string]string {
	w.T.Helper()
	return maps.Clone(w.bag(app, endpoint, remote, owner))
}
