// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// A module of its own: what it builds and links is Juju's (AGPL-3.0), for this
// test alone, and the product's module stays clean of it.
module github.com/drawbridge-k8s/drawbridge/tests/conformance

go 1.26.5

require (
	github.com/drawbridge-k8s/drawbridge v0.0.0
	github.com/juju/charm/v12 v12.1.1
	github.com/juju/juju v0.0.0-20251015133347-17876b918429
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/canonical/pebble v1.32.1 // indirect
	github.com/gobwas/glob v0.2.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/gorilla/websocket v1.5.4-0.20250319132907-e064f32e3674 // indirect
	github.com/juju/clock v1.1.1 // indirect
	github.com/juju/collections v1.0.4 // indirect
	github.com/juju/errors v1.0.0 // indirect
	github.com/juju/gojsonpointer v0.0.0-20150204194629-afe8b77aa08f // indirect
	github.com/juju/gojsonreference v0.0.0-20150204194633-f0d24ac5ee33 // indirect
	github.com/juju/gojsonschema v1.0.0 // indirect
	github.com/juju/loggo v1.0.0 // indirect
	github.com/juju/mgo/v3 v3.0.5 // indirect
	github.com/juju/names/v5 v5.0.0 // indirect
	github.com/juju/os/v2 v2.2.5 // indirect
	github.com/juju/schema v1.2.0 // indirect
	github.com/juju/utils/v3 v3.2.3 // indirect
	github.com/juju/version/v2 v2.0.1 // indirect
	github.com/mohae/deepcopy v0.0.0-20170929034955-c48cc78d4826 // indirect
	github.com/rs/xid v1.6.0 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/net v0.58.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	gopkg.in/gobwas/glob.v0 v0.2.3 // indirect
	gopkg.in/yaml.v2 v2.4.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)

replace github.com/drawbridge-k8s/drawbridge => ../..

// The two replacements of Juju's own go.mod.
replace gopkg.in/yaml.v2 => github.com/juju/yaml/v2 v2.0.0

replace go.uber.org/mock => go.uber.org/mock v0.4.0
