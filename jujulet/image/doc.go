// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package image turns container images into root filesystems for pods.
//
// An image comes from a "docker save" archive, an OCI archive, an OCI layout folder or a registry.
// [Store.Add] reads it, checks its digests and unpacks its layers into one folder of the store, which is
// named by the digest of the image's configuration: what was added once needs its source no more.
// Layers of a registry are cached by digest too, so that stores share them.
//
// Whatever an image holds is taken for hostile. Its layers are unpacked below an [os.Root], with the rules
// of unpack.go: nothing leaves the root, nothing is written through a link, sizes and numbers are bounded.
// What breaks a rule is refused with the name of the entry.
package image
