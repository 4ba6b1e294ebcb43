# Copyright 2026 The Drawbridge authors.
# SPDX-License-Identifier: GPL-3.0-only

# One set of build flags for everything, so that everything shares one cache.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

ARCH ?= amd64
VERSION ?= $(shell git describe --tags --always 2>/dev/null || echo dev)
OUT := out
STATICCHECK := go tool -modfile=go.tool.mod staticcheck

.PHONY: help run test test-conformance test-interop test-kube build charm charms lint race update tidy clean preflight

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: preflight build charms ## Deploy, expose and break a database on this machine: the tour
	$(OUT)/bin/jujulet tour --charms $(OUT)/charms --out $(OUT)

test: preflight build charms ## Run every check and test
	sh tools/test.sh

test-interop: preflight ## Run others' charms and tools, from PyPI, on jujulet
	go test -count=1 -v -timeout 25m ./tests/interop

test-kube: ## Hold the embedded Kubernetes API and a real one to the same table
	go test -count=1 -v -timeout 40m ./tests/kube

test-conformance: ## Hold jujulet against Juju's own hook tool and charm library
	cd tests/conformance && go test -mod=mod -count=1 -timeout 15m

preflight:
	@sh tools/preflight.sh $(MAKECMDGOALS)

build: ## Build jujulet and the Pebble it runs
	go build -ldflags "-X main.buildVersion=$(VERSION)" -o $(OUT)/bin/jujulet ./cmd/jujulet
	go build -o $(OUT)/bin/pebble github.com/canonical/pebble/cmd/pebble

charm: ## Pack drawbridge-k8s_$(ARCH).charm (ARCH=arm64 for the other)
	go run ./tools/packcharm -arch $(ARCH) -version $(VERSION) -program ./cmd/connq -out . . ./cmd/drawbridge

charms:
	go run ./tools/packcharm -version $(VERSION) -program ./cmd/connq -out $(OUT)/charms . ./cmd/drawbridge
	go run ./tools/packcharm -out $(OUT)/charms examples/mariadb-k8s ./examples/mariadb-k8s
	go run ./tools/packcharm -program ./cmd/connq -out $(OUT)/charms examples/client-k8s ./examples/client-k8s

lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l .)" || { gofmt -d . ; exit 1; }
	go vet ./...
	$(STATICCHECK) ./...

race: ## Run the tests that start no pods under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race ./charm/... ./hooks/... ./k8sservice/... ./probe/... ./relation/... ./jujulet/cluster ./jujulet/model/... ./jujulet/agent/...

update: ## Rewrite the golden files
	go test ./... -update

tidy: ## Tidy go.mod and fail if that changed it
	go mod tidy
	git diff --exit-code go.mod go.sum

clean: ## Remove what was built
	rm -rf $(OUT) drawbridge-k8s_*.charm
