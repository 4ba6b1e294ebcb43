// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package controller is the cluster process of jujulet: it owns the model, the
// embedded Kubernetes API, the network and all pods, and answers the command
// line on the control socket.
//
// On the host, [Up] checks what is needed and starts that process in
// namespaces of its own; [Down] ends it. In the process, [Main] opens the store
// and runs the parts. Everything lives inside the process: when it dies,
// however it dies, the kernel removes every pod, mount and link, and the
// store alone remains. The next Up finds each unit without a pod and makes one,
// which is for the unit a replaced pod.
//
// The middle of the package is what a kubelet and Juju's controllers do: for
// each application of the model Kubernetes objects (objects.go), for each unit
// a pod with the unit agent in its charm container (unit.go), its readiness
// from Pebble (health.go), what it says of all that (podstatus.go). The leases of
// leaders are the model's.
package controller
