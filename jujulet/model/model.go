// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// JujuVersion is the version of Juju whose rules the model follows and that is
// shown to charms as JUJU_VERSION.
const JujuVersion = "3.6.11"

// DefaultCloudRegion is the cloud and region that statuses show.
const DefaultCloudRegion = "jujulet/localhost"

// LeaseDuration is how long leadership lasts after its last renewal.
const LeaseDuration = 60 * time.Second

// Options configures Open. The zero value is usable.
type Options struct {
	// Name of the model, and of its Kubernetes namespace. Default "dev".
	Name string
	// Controller is the controller's name. Default "jujulet".
	Controller string
	// CloudRegion is shown by status. Default DefaultCloudRegion.
	CloudRegion string
	// CharmDir is the folder that keeps charm archives by their hash. Default:
	// "charms" beside the database.
	CharmDir string
	// NoSync skips fsync: for tests only, a machine crash may lose data.
	NoSync bool
	// Clock is time.Now unless a test sets it.
	Clock func() time.Time
	// Logger receives the model's own diagnostics. Default: discarded.
	Logger *slog.Logger
	// LogLines bounds the in-memory debug log. Default 10000.
	LogLines int
	// LogLevel is the lowest level that the debug log keeps. Default "INFO".
	LogLevel string
	// Domain is the cluster domain. Default "cluster.local".
	Domain string
	// KubernetesVersion is shown to charms as CLOUD_API_VERSION. Default "1.35.0".
	KubernetesVersion string
	// APIAddresses is shown to charms as JUJU_API_ADDRESSES. Default
	// "10.1.0.1:17070".
	APIAddresses string
}

// Model is one open model. Its methods may be called concurrently.
type Model struct {
	store   *Store
	options Options
	logs    *logRing
	info    Info

	charms sync.Map // hash -> *Charm, of what was committed

	mu      sync.Mutex
	changes map[string]*topic
	base    uint64
	levels  []logLevel // of the debug log, as configured
	closed  chan struct{}
}

// Info names a model.
type Info struct {
	Name              string `json:"name"`
	UUID              string `json:"uuid"`
	Controller        string `json:"controller"`
	CloudRegion       string `json:"cloud-region"`
	Version           string `json:"version"`
	Domain            string `json:"domain"`
	KubernetesVersion string `json:"kubernetes-version"`
	APIAddresses      string `json:"api-addresses"`
}

// Info returns the names of the model.
func (m *Model) Info() Info { return m.info }

// Store is the store that the model is in.
func (m *Model) Store() *Store { return m.store }

// DB is the database of the model's store.
func (m *Model) DB() *bbolt.DB { return m.store.db }

// now is the model's clock in UTC.
func (m *Model) now() time.Time { return m.options.Clock().UTC() }
