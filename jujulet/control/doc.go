// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package control is the language that the jujulet command line and the
// cluster process speak: requests, answers and a client.
//
// The transport is HTTP with JSON bodies over a unix socket that only its
// owner may open. Three kinds of call exist: plain ones (one request, one
// answer), streams of JSON lines (debug-log, journal) and sessions, which
// upgrade the connection to frames for standard input, output, error, the
// terminal's size and the exit code (shell). Embedded Kubernetes is reachable
// below [KubernetesPrefix] with full rights.
package control

import "path/filepath"

// SocketName is the name of the control socket inside a runtime folder.
const SocketName = "control.sock"

// KubernetesPrefix is the path below which the control socket passes requests
// on to the embedded Kubernetes API, with the rights of an administrator.
const KubernetesPrefix = "/kubernetes"

// BinaryInPod is where a unit's charm container shows the jujulet binary.
const BinaryInPod = "/charm/bin/jujulet"

// SocketPath returns the control socket of a runtime folder.
func SocketPath(runtime string) string { return filepath.Join(runtime, SocketName) }
