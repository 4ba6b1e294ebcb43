// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package carry does for one unit what package connections decides: it reads the connected ConfigMaps and the databags of
// connected applications, keeps the document in the workload container, runs the workload's hook, tells what has changed,
// and records it. Any charm can take it in: Start at the beginning of a hook, Run once the charm's own work is done.
//
// Nothing of it is an error of the hook unless the hook tools themselves fail: every trouble is a Cause. Every step is
// safe to repeat, and a pass that finds nothing changed writes nothing.
package carry

import (
	"context"
	"io/fs"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

// Kube is what is needed of Kubernetes; *k8sservice.Client is one.
type Kube interface {
	ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error)
	CreateEvent(ctx context.Context, event *corev1.Event) error
	Pod(ctx context.Context, name string) (*corev1.Pod, error)
}

// Box is the workload container; *workload.Container is one. Its calls give workload.ErrNotReady while nothing answers.
type Box interface {
	ReadFile(ctx context.Context, path string) (content []byte, found bool, err error)
	Size(ctx context.Context, path string) (int64, error)
	Push(ctx context.Context, path string, content []byte, mode fs.FileMode) error
	MakeDir(ctx context.Context, path string, mode fs.FileMode) error
	Execute(ctx context.Context, command workload.Command) (workload.Outcome, error)
	Close()
}

// Host is what the charm hands in: what it has read already, and how to reach the rest.
type Host struct {
	Event hooks.Event
	Tools *hooktool.Client
	Log   *slog.Logger
	Now   time.Time
	// Config is what config-get printed, Category the charm's default for connection-category.
	Config   map[string]any
	Category string
	Leader   bool
	Goal     hooktool.GoalState
	// PeerID is the peer relation, "" while there is none; PeerBag and UnitBag are its databags.
	PeerID           string
	PeerBag, UnitBag map[string]string
	// Dry keeps a pass from writing anything; Resync makes it do everything again.
	Dry, Resync bool

	// Kube opens the Kubernetes API. It is called once, and only if something is asked for.
	Kube func() (kube Kube, namespace string, err error)
	// Open opens the workload container.
	Open func(ctx context.Context) (Box, error)
	// Tool is the path of connq on this side; "" means that there is none.
	Tool string
	// Domain is the cluster's domain.
	Domain string
}

// Own is what the application says about itself.
type Own struct {
	DistroID, Version string
	Services          map[string]connections.Service
	// Hurry puts what takes long off to the next pass: something waits for the end of this one.
	Hurry bool
}

// Cause is something that a person should know, as a status.
type Cause struct {
	Status hooktool.Status
	Text   string
}

// Report is what came of a pass.
type Report struct {
	// Active says that anything is connected, or was.
	Active bool
	// Causes come in the order in which they matter.
	Causes []Cause
	Notes  []string
	// Down says that the container does not answer.
	Down bool
	// Watch has the digest of each ConfigMap that is listed, "" for one that is not there: what the watch compares with.
	Watch map[string]string
	// WakeAt is when the next pass is due in any case; zero for never.
	WakeAt time.Time

	Plan    connections.Plan
	Desired connections.Desired
	Units   []connections.UnitRecord
	// File is the document as it is in the container after the pass.
	File []byte
}

// Bounds.
const (
	// readWithin bounds reading all ConfigMaps: what is not read then is as it was.
	readWithin = 5 * time.Second
	// tellWithin bounds making Events.
	tellWithin = 5 * time.Second
	// hurryWithin bounds either where something waits for the end of the hook.
	hurryWithin = 500 * time.Millisecond
	// reserve is what is left of a hook's time after the workload's hook.
	reserve = 2 * time.Second

	modeDir  = 0o700
	modeFile = 0o640
	modeTool = 0o755
)

// Pass is one hook's work on connections.
type Pass struct {
	h       Host
	options connections.Options
	report  Report

	kube      Kube
	namespace string
	kubeErr   error
	reading   chan map[string]connections.Seen

	required []required
	provided []string // relations in which others read our metadata
	file     *connections.Document
	applied  connections.Applied
	set      *corev1.ObjectReference // the application's StatefulSet, once it was asked for
}

// required is one relation on the endpoint `connections`.
type required struct {
	id, app  string
	metadata string
	own      map[string]string
}

// Start begins a pass: ConfigMaps are read while the charm goes on with its own work. Run has to follow; ctx ends both.
func Start(ctx context.Context, h Host) *Pass {
	p := &Pass{h: h, options: connections.ParseOptions(h.Config, h.Category)}
	p.applied = connections.ParseApplied(h.UnitBag[connections.KeyApplied])
	p.reading = make(chan map[string]connections.Seen, 1)
	if len(p.options.ConfigMaps) == 0 {
		p.reading <- nil
		return p
	}
	p.openKube()
	go func() { p.reading <- p.read(ctx) }()
	return p
}

func (p *Pass) openKube() {
	if p.kube == nil && p.kubeErr == nil {
		p.kube, p.namespace, p.kubeErr = p.h.Kube()
	}
}

// Close waits for what Start has begun; Run does so itself.
func (p *Pass) Close() {
	if p.reading != nil {
		<-p.reading
		p.reading = nil
	}
}
