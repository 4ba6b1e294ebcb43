#!/bin/sh
# Copyright 2026 The Drawbridge authors.
# SPDX-License-Identifier: GPL-3.0-only
#
# All checks and tests, in the order in which a mistake shows soonest; prints
# how long each part took.
set -eu

start=$(date +%s)
part() { # name command...
	name=$1
	shift
	began=$(date +%s)
	printf '== %s\n' "$name"
	"$@"
	printf '== %s: %s s\n' "$name" "$(($(date +%s) - began))"
}

formatted() {
	unformatted=$(gofmt -l .)
	[ -z "$unformatted" ] || {
		printf 'gofmt would change:\n%s\n' "$unformatted"
		return 1
	}
}

part gofmt formatted
part vet go vet ./...
part staticcheck go tool -modfile=go.tool.mod staticcheck ./...
# The tests with pods come alone: they hold a promise in seconds, and compilers
# of other packages would take the processors from them.
# shellcheck disable=SC2046 # a list of packages
part tests go test -count=1 -timeout 20m $(go list ./... | grep -v '/tests/pods$\|/tests/interop$\|/tests/kube$')
# A module of its own, for what it builds is Juju's; it prints what it has run.
part conformance make --no-print-directory test-conformance
part pods go test -count=1 -timeout 15m ./tests/pods
part interop make --no-print-directory test-interop
part kube make --no-print-directory test-kube
printf '== all: %s s\n' "$(($(date +%s) - start))"
