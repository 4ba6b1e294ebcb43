// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

func TestParseConfig_Defaults(t *testing.T) {
	t.Parallel()
	config, errs := ParseConfig(map[string]any{})
	require.Empty(t, errs)
	require.Equal(t, Config{Mode: k8sservice.False, Annotations: map[string]string{}, PendingTimeout: 15 * time.Minute,
		BackendRole: "mysqlrouter"}, config)
}

func TestParseConfig_Everything(t *testing.T) {
	t.Parallel()
	config, errs := ParseConfig(map[string]any{
		"expose-external": "loadbalancer", "loadbalancer-extra-annotations": `{"a": "1", "b.c/d": "https://x/?q={}"}`,
		"loadbalancer-source-ranges": " 10.0.0.0/8,fd00::/8 ", "loadbalancer-class": "example.com/internal",
		"external-traffic-policy": "Local", "node-port": float64(30001), "read-only-node-port": float64(30002),
		"external-hostname": "DB.example.com", "probe-mode": "none", "pending-timeout": "1h30m", "backend-role": "charmed_router",
	})
	require.Empty(t, errs)
	require.Equal(t, Config{
		Mode: k8sservice.LoadBalancer, Annotations: map[string]string{"a": "1", "b.c/d": "https://x/?q={}"},
		SourceRanges: []string{"10.0.0.0/8", "fd00::/8"}, Class: "example.com/internal", TrafficPolicy: "Local",
		NodePort: 30001, ReadOnlyNodePort: 30002, ExternalHostname: "DB.example.com", ProbeNone: true,
		PendingTimeout: 90 * time.Minute, BackendRole: "charmed_router",
	}, config)
}

// Each option with wrong values: one message that names the option, its value and what is allowed.
func TestParseConfig_Wrong(t *testing.T) {
	t.Parallel()
	cases := map[string][]any{
		"expose-external": {"", "NodePort", "LOADBALANCER", " nodeport", "true", true},
		"loadbalancer-extra-annotations": {"null", "[]", `"x"`, "1", `{"a":1}`, `{"a":null}`, `{"a":{}}`, `{"a":"1","a":"2"}`, `{"a":"1"`,
			`{"a":"1"} x`, `{"a b":"1"}`, `{"":"1"}`, "{a:1", `{"drawbridge-k8s.charm/annotations":"x"}`,
			fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 300<<10))},
		"loadbalancer-source-ranges": {"10.0.0.0", "10.0.0.0/33", "a/8", "10.0.0.0/8,", ",", "10.0.0.0/8 192.0.2.0/24"},
		"loadbalancer-class":         {"a b", "a/b/c", "-a", strings.Repeat("a", 64)},
		"external-traffic-policy":    {"local", "cluster", "None"},
		"node-port":                  {float64(-1), float64(65536), 0.5, "30000"},
		"read-only-node-port":        {float64(-1), float64(65536)},
		"external-hostname":          {"a_b", "a b", "http://x", "x:6446", "x.", "-x", strings.Repeat("a.", 200)},
		"probe-mode":                 {"", "tcp", "None"},
		"pending-timeout":            {"", "15", "0s", "-1m", "soon"},
		"backend-role":               {"", "a b", "a,b", "1", strings.Repeat("a", 65)},
	}
	for option, values := range cases {
		for i, value := range values {
			t.Run(fmt.Sprint(option, i), func(t *testing.T) {
				t.Parallel()
				_, errs := ParseConfig(map[string]any{option: value})
				require.Len(t, errs, 1)
				require.Equal(t, option, errs[0].Option)
				message := errs[0].Error()
				require.True(t, strings.HasPrefix(message, "cannot use "+option+"="), message)
				require.Contains(t, message, "allowed: ")
				require.Less(t, len(message), 400)
			})
		}
	}
}

func TestParseConfig_AnnotationsAccepted(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "  ", "{}", `{"a":""}`, `{"a":"{\"json\": [1]}"}`, fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 250<<10))} {
		_, errs := ParseConfig(map[string]any{"loadbalancer-extra-annotations": text})
		require.Empty(t, errs)
	}
}

func TestParseConfig_EqualNodePorts(t *testing.T) {
	t.Parallel()
	_, errs := ParseConfig(map[string]any{"node-port": float64(30001), "read-only-node-port": float64(30001)})
	require.Len(t, errs, 1)
	require.Equal(t, "read-only-node-port", errs[0].Option)
}

func TestState_RoundTripAndGarbled(t *testing.T) {
	t.Parallel()
	require.Empty(t, state{}.text())
	s := state{Deferred: &deferral{Hook: "start", Since: time.Unix(1e9, 0).UTC()}, Made: []int{1},
		Silent: map[string]time.Time{"a:1": time.Unix(1e9, 0).UTC()}}
	require.Equal(t, s, parseState(s.text()))
	require.Equal(t, state{Sweep: true}, parseState("{"), "a new beginning")
	require.Equal(t, state{}, parseState(""))
}

func TestRefusal_DoublesWithEachDeadlinePassed(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0).UTC()
	var r refusal
	var waits []time.Duration
	for range 7 {
		r = r.next(now)
		require.Equal(t, r, r.next(now.Add(time.Second)), "nothing moves before the deadline")
		waits = append(waits, r.At.Sub(now))
		now = r.At
	}
	require.Equal(t, []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute,
		10 * time.Minute, 10 * time.Minute}, waits)
}
