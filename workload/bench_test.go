// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package workload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/workload/workloadtest"
)

// BenchmarkEnsure_Settled is the gateway's share of a hook that changes nothing.
func BenchmarkEnsure_Settled(b *testing.B) {
	r := newRig(b, workloadtest.Options{})
	r.g.ReadWrite = []string{"127.0.0.1:3306"}
	r.up(b)
	for b.Loop() {
		require.False(b, r.up(b))
	}
}
