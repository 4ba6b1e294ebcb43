// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"context"
	"net/http"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Stage is the runner as the tour uses it; *control.Client is one.
type Stage interface {
	Deploy(ctx context.Context, r control.DeployRequest) (control.DeployResult, error)
	Integrate(ctx context.Context, a, b string) (control.Relation, error)
	SetConfig(ctx context.Context, r control.ConfigChange) error
	Status(ctx context.Context) (model.Status, error)
	Wait(ctx context.Context, check func(context.Context) (bool, error)) error
	Run(ctx context.Context, r control.RunRequest) (control.Operation, error)
	WaitTask(ctx context.Context, id string, seen int) (model.Action, error)
	Journal(ctx context.Context, r control.JournalRequest, each func(model.JournalEntry) error) error
	ShowSecret(ctx context.Context, ref string, reveal bool) (control.Secret, error)
	Cluster(ctx context.Context) (control.Cluster, error)
	SetLoadBalancer(ctx context.Context, r control.LBChange) (control.LBSettings, error)
	ApplyObjects(ctx context.Context, manifest string) ([]string, error)
	DeleteObject(ctx context.Context, kind, name string) error
	Events(ctx context.Context, object string) ([]control.Event, error)
	Kill(ctx context.Context, target control.KillTarget, unit string) error
	Shell(ctx context.Context, r control.ShellRequest, s control.Streams) (int, error)
	Kubernetes() (http.RoundTripper, string)
}

// What the tour deploys, and the names that it knows of the charms.
const (
	backendApp = "mariadb-k8s"
	bridgeApp  = "drawbridge-k8s"
	clientApp  = "client-k8s"
	clientUnit = clientApp + "/0"

	backendCharm = "mariadb-k8s_amd64.charm"
	bridgeCharm  = "drawbridge-k8s_amd64.charm"
	clientCharm  = "client-k8s_amd64.charm"

	clientEndpoint = "database"
	peerEndpoint   = "drawbridge-peers"
	serviceName    = bridgeApp + "-service"
	readWritePort  = 6446

	modeOption   = "expose-external"
	modeOff      = "false"
	modeNodePort = "nodeport"
	modeBalancer = "loadbalancer"
)

// Hidden commands of jujulet that run inside pods and on the outside host.
const (
	// ProbeCommand runs LoginProbe on its standard streams.
	ProbeCommand = "__login-probe"
	// QueryCommand runs Query on its standard streams.
	QueryCommand = "__query"
)
