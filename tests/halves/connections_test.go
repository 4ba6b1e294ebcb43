// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package halves

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// What is connected at most, and what it may cost (memory in KiB).
const (
	manyMaps       = 64
	largeMap       = 900 << 10
	mapsHookMemory = 128 << 10
	mapsWatchPeak  = 64 << 10
)

// TestManyConfigMaps measures the packed program, in processes as Juju starts them, with 64 connected ConfigMaps of 900 KB
// each on the API over TLS, that all change at once.
func TestManyConfigMaps(t *testing.T) {
	inNamespaces(t, "the watch of 64 ConfigMaps:", func(t *testing.T, program string) {
		h := newHost(t, program)
		h.settle()
		var names []string
		put := func(fill string) {
			for i := range manyMaps {
				name := fmt.Sprintf("big-%02d", i)
				data := map[string]string{"k": strings.Repeat(fill, largeMap)}
				if fill == "a" {
					names = append(names, name)
					_, err := h.server.Admin().Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data})
					require.NoError(t, err)
					continue
				}
				_, err := cluster.Change(h.server.Admin(), namespace, name, func(m *corev1.ConfigMap) error { m.Data = data; return nil })
				require.NoError(t, err)
			}
		}
		put("a")
		h.config("connected-configmaps", strings.Join(names, ","))
		h.settle()
		hook := h.last[leader]
		t.Logf("a hook that reads 64 ConfigMaps of 900 KB: %.1f ms, %.1f MiB, %d Kubernetes requests", ms(hook.wall), float64(hook.memory)/1024, hook.requests)
		require.GreaterOrEqual(t, hook.requests, 5, "as many as are too much together, at least")
		require.LessOrEqual(t, hook.memory, mapsHookMemory, "KiB")
		require.Positive(t, hook.memory)
		status, err := h.model.Status()
		require.NoError(t, err)
		require.Contains(t, status.Applications["drawbridge-k8s"].Units[leader].Workload.Message, "connections: the configmaps are too large together")

		pid := h.watchPID(t)
		before := h.requests.Load()
		put("b")
		deadline := time.Now().Add(60 * time.Second)
		for h.requests.Load() < before+manyMaps {
			require.True(t, time.Now().Before(deadline), "the watch has read %d of %d", h.requests.Load()-before, manyMaps)
			time.Sleep(20 * time.Millisecond)
		}
		require.Equal(t, pid, h.watchPID(t), "it lives")
		resident, peak := statusKiB(pid, "VmRSS"), statusKiB(pid, "VmHWM")
		t.Logf("the watch of 64 ConfigMaps: %.1f MiB (peak %.1f MiB)", float64(resident)/1024, float64(peak)/1024)
		require.Positive(t, peak)
		require.LessOrEqual(t, peak, mapsWatchPeak, "KiB")
	})
}
