// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/drawbridge-k8s/drawbridge/connections"
)

// What the code calls options, actions and endpoints is what Juju reads, with the same defaults, and the other way round.
func TestConnections_NamesAgree(t *testing.T) {
	t.Parallel()
	read := func(name string, into any) {
		text, err := os.ReadFile("../" + name)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, into))
	}
	t.Run("conn-T73", func(t *testing.T) {
		var config struct {
			Options map[string]struct{ Default any }
		}
		read("config.yaml", &config)
		raw := map[string]any{}
		for name, option := range config.Options {
			raw[name] = option.Default
			if number, ok := option.Default.(int); ok {
				raw[name] = float64(number)
			}
		}
		known := []string{optExposeExternal, optAnnotations, optSourceRanges, optClass, optTrafficPolicy, optNodePort, optReadOnlyNodePort,
			optExternalHostname, optProbeMode, optPendingTimeout, optBackendRole,
			connections.OptConfigMaps, connections.OptConnectable, connections.OptCategory, connections.OptHook, connections.OptHookTimeout}
		require.ElementsMatch(t, known, sortedKeys(config.Options))
		o := connections.ParseOptions(raw, "another")
		require.Equal(t, connections.ParseOptions(nil, defaultCategory), o, "the defaults are those of the code")
		require.Equal(t, connections.DefaultHookTimeout, o.HookTimeout)

		var actions map[string]any
		read("actions.yaml", &actions)
		require.ElementsMatch(t, []string{actionEndpoints, actionExplain, actionReconcile, connections.ActionGet, connections.ActionQuery,
			connections.ActionResync}, sortedKeys(actions))

		var metadata struct {
			Peers, Provides, Requires map[string]struct{ Interface string }
			Containers                map[string]any
		}
		read("metadata.yaml", &metadata)
		require.ElementsMatch(t, []string{endpointPeers}, sortedKeys(metadata.Peers))
		require.ElementsMatch(t, []string{endpointClients, connections.EndpointProvided}, sortedKeys(metadata.Provides))
		require.ElementsMatch(t, []string{endpointBackend, connections.EndpointRequired}, sortedKeys(metadata.Requires))
		require.Equal(t, connections.Interface, metadata.Provides[connections.EndpointProvided].Interface)
		require.Equal(t, connections.Interface, metadata.Requires[connections.EndpointRequired].Interface)
		require.True(t, slices.Equal([]string{Container}, sortedKeys(metadata.Containers)))
	})
}
