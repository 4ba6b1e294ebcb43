// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/probe"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

// cluster is what the core needs of Kubernetes; *k8sservice.Client is it.
type cluster interface {
	Service(ctx context.Context, name string) (*corev1.Service, error)
	Apply(ctx context.Context, live *corev1.Service, d k8sservice.Desired, owner k8sservice.Owner) (*corev1.Service, []string, error)
	Pod(ctx context.Context, name string) (*corev1.Pod, error)
	Pods(ctx context.Context, app string) ([]corev1.Pod, error)
	Node(ctx context.Context, name string) (*corev1.Node, error)
	Events(ctx context.Context, service, uid string) ([]corev1.Event, error)
	ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error)
	CreateEvent(ctx context.Context, event *corev1.Event) error
}

// Gateway is the workload; *workload.Workload is it.
type Gateway interface {
	Ensure(ctx context.Context, g workload.Gateway) (workload.Report, error)
	Stop(ctx context.Context) error
}

// Admin makes users on the backend; *database.Admin is it.
type Admin interface {
	EnsureDatabase(ctx context.Context, name string) error
	EnsureUser(ctx context.Context, user, password, database string) error
	DropUser(ctx context.Context, user string) error
	ClientUsers(ctx context.Context, backendUser string) (map[int]string, error)
	Close() error
}

// watch is the background process of a leader.
type watch interface {
	Ensure(ctx context.Context, order probe.Order) error
	Stop(ctx context.Context) error
	Hanging(ctx context.Context) []string
}

// processWatch is the real watch: this program, with the argument `watch`.
type processWatch struct {
	dir   string
	start probe.Starter
}

// Ensure makes a watch run with the order.
func (w *processWatch) Ensure(ctx context.Context, order probe.Order) error {
	start := w.start
	if start == nil {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		start = probe.ExecStarter(program, os.Environ())
	}
	_, err := probe.EnsureWatch(ctx, w.dir, order, start)
	return err
}

// Stop ends it.
func (w *processWatch) Stop(ctx context.Context) error { return probe.StopWatch(ctx, w.dir) }

// Hanging asks it which addresses hang.
func (w *processWatch) Hanging(ctx context.Context) []string { return probe.Hanging(ctx, w.dir) }
