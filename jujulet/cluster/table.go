// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

// column is one column of the table that kubectl prints for a kind.
type column struct {
	name, format, about string
	// wide columns are shown with -o wide only.
	wide bool
	cell func(s *Server, obj Object) any
}

func configMapColumns() []column     { return nil }
func eventColumns() []column         { return nil }
func namespaceColumns() []column     { return nil }
func nodeColumns() []column          { return nil }
func secretColumns() []column        { return nil }
func serviceColumns() []column       { return nil }
func podColumns() []column           { return nil }
func statefulSetColumns() []column   { return nil }
func endpointSliceColumns() []column { return nil }

func (c *call) wantsTable() bool { return false }

func (c *call) table(objects []Object, version string) (any, error) { return nil, nil }
