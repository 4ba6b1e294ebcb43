// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drawbridge-k8s/drawbridge/jujulet/controller"
	"github.com/drawbridge-k8s/drawbridge/jujulet/hooktools"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// TestMain makes the test binary what jujulet's is: the hook tools and all
// hidden commands.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); hooktools.IsTool(name) {
		os.Exit(hooktools.ClientMain(os.Args))
	}
	if len(os.Args) > 1 {
		switch name := os.Args[1]; {
		case pod.IsCommand(name):
			os.Exit(pod.Main(os.Args[1:]))
		case name == controller.ClusterCommand:
			os.Exit(controller.Main(os.Args[1:]))
		case name == controller.AgentCommand:
			os.Exit(controller.AgentMain(os.Args[1:]))
		}
	}
	os.Exit(m.Run())
}
