// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package k8sservice_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// Whatever the options and other people do in whatever order: after one pass
// there is nothing left to do, what is theirs has survived, and of what is
// ours there is exactly what is wanted.
func TestApply_Converges(t *testing.T) {
	t.Parallel()
	pick := func(rt *rapid.T, name string, values ...string) string {
		return rapid.SampledFrom(values).Draw(rt, name)
	}
	rapid.Check(t, func(rt *rapid.T) {
		a := newAPI()
		c := a.client(t)
		theirs := map[string]string{}
		var ours map[string]string
		var d k8sservice.Desired
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			if a.live != nil && rapid.Bool().Draw(rt, "somebody else") {
				key := pick(rt, "key", "f0", "f1", "o0", "o1")
				value := pick(rt, "value", "x", "y")
				text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
				require.NoError(t, err)
				a.edit(t, "kubectl-edit", string(text))
				if _, isOurs := ours[key]; !isOurs {
					theirs[key] = value
				}
			} else {
				d = desired(k8sservice.Mode(pick(rt, "mode", "false", "nodeport", "loadbalancer")), func(d *k8sservice.Desired) {
					d.Annotations = map[string]string{}
					for _, key := range []string{"o0", "o1"} {
						if rapid.Bool().Draw(rt, key) {
							d.Annotations[key] = pick(rt, "wanted", "1", "2", "")
						}
					}
					d.Class = pick(rt, "class", "", "example.com/a", "example.com/b")
					d.TrafficPolicy = pick(rt, "policy", "", "Local", "Cluster")
					if rapid.Bool().Draw(rt, "ranges") {
						d.SourceRanges = []string{"10.0.0.0/8"}
					}
				})
			}
			if d.Name == "" || rapid.Bool().Draw(rt, "no hook in between") {
				continue
			}
			s, _ := reconcile(t, c, d)
			ours = nil
			if d.Mode == k8sservice.LoadBalancer {
				ours = maps.Clone(d.Annotations)
			}
			want := maps.Clone(theirs)
			maps.Copy(want, ours)
			for key := range ours { // the option has taken it over
				delete(theirs, key)
			}
			got := maps.Clone(s.Annotations)
			delete(got, k8sservice.AnnotationKeys)
			if len(got) == 0 {
				got = map[string]string{}
			}
			require.Equal(t, want, got)
			require.Equal(t, d.Mode.ServiceType(), s.Spec.Type)

			before := c.Requests()
			reconcile(t, c, d)
			require.Equal(t, before+1, c.Requests(), "settled: one request")
		}
	})
}
