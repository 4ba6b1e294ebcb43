// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster_test

// difference is what a real server answers where the embedded one answers something else, and why that
// is accepted.
type difference struct{ want, why string }

// differences are all the accepted ones, by test and step. A row that is not needed any more fails on a real server.
var differences = map[string]difference{
	"TestParity_Errors/outside_the_table step 2": {
		want: "200",
		why:  "a collection is not deleted in one request by the embedded server: charms delete by name, and Juju gives them no such right",
	},
	"TestParity_Errors/bad_names step 2": {
		want: "422 field=spec.clusterIPs",
		why: "Kubernetes 1.36 allocates the cluster address before it misses the name, so that its own IPAddress object is what is invalid;" +
			" the embedded server names the field that is missing",
	},
}
