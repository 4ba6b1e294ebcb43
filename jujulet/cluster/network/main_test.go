// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package network_test

import (
	"os"
	"testing"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod/podtest"
)

// The tests run in a cluster process; what they leave behind is seen from the host.
func TestMain(m *testing.M) { os.Exit(podtest.Main(m)) }
