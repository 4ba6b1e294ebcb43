// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"regexp"
	"slices"
)

// HostImage is what stands for this machine's own files where a container needs an image.
const HostImage = "host"

// pinned is a resource that an image was made of: what was given, and the image's id.
var pinned = regexp.MustCompile(`^(.*)#(sha256:[0-9a-f]{64})$`)

// PinImage returns the value of a resource for which the image with an id was made of what was given.
func PinImage(given, id string) string { return given + "#" + id }

// SplitImage returns what was given for a resource of type oci-image, HostImage if nothing was, and the id of the
// image that was made of it, which is empty for this machine's files and for a root filesystem folder.
func SplitImage(value string) (given, id string) {
	if parts := pinned.FindStringSubmatch(value); parts != nil {
		return parts[1], parts[2]
	}
	if value == "" {
		return HostImage, ""
	}
	return value, ""
}

// DefaultImages returns the sorted names of the resources of containers for which nothing was given: these run
// on this machine's files.
func (a ApplicationStatus) DefaultImages() []string {
	var names []string
	for _, c := range a.Containers {
		if c.Resource != "" && a.Resources[c.Resource] == "" {
			names = append(names, c.Resource)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
