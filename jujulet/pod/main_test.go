// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pod_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod/podtest"
)

// checkOnly is an environment variable that makes this program say what pod.Check says.
const checkOnly = "POD_TEST_CHECK"

// The tests run in a cluster process; what they leave behind is seen from the host.
func TestMain(m *testing.M) {
	if os.Getenv(checkOnly) != "" {
		if err := pod.Check(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(podtest.Main(m))
}
