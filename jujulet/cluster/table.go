// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"mime"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// column is one column of the table that kubectl prints for a kind.
type column struct {
	name string
	// wide columns are shown with -o wide only.
	wide bool
	cell func(obj Object, now time.Time) any
}

// col makes a column from a function over the type of the kind.
func col[T Object](name string, f func(T) any) column {
	return column{name: name, cell: func(o Object, _ time.Time) any { return f(o.(T)) }}
}

func wide(c column) column {
	c.wide = true
	return c
}

func nameColumn() column {
	return column{name: "Name", cell: func(o Object, _ time.Time) any { return o.GetName() }}
}

func ageColumn() column {
	return column{name: "Age", cell: func(o Object, now time.Time) any { return since(o.GetCreationTimestamp(), now) }}
}

func since(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// wantsTable reports whether the client prefers the answer as a table.
func (c *call) wantsTable() bool {
	first, _, _ := strings.Cut(c.r.Header.Get("Accept"), ",")
	_, params, err := mime.ParseMediaType(strings.TrimSpace(first))
	return err == nil && params["as"] == "Table" && params["g"] == metav1.GroupName
}

// table renders objects as a metav1.Table.
func (c *call) table(objects []Object, version string) (*metav1.Table, error) {
	now := c.options.Clock()
	out := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()},
		ListMeta: metav1.ListMeta{ResourceVersion: version}, Rows: []metav1.TableRow{},
	}
	for _, k := range c.kind.columns {
		def := metav1.TableColumnDefinition{Name: k.name, Type: "string"}
		if k.name == "Name" {
			def.Format = "name"
		}
		if k.wide {
			def.Priority = 1
		}
		out.ColumnDefinitions = append(out.ColumnDefinitions, def)
	}
	for _, o := range objects {
		row := metav1.TableRow{}
		for _, k := range c.kind.columns {
			row.Cells = append(row.Cells, k.cell(o, now))
		}
		row.Object = runtime.RawExtension{Object: c.rowObject(o)}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// rowObject is what goes with a row: nothing, metadata, or all, as the client asked.
func (c *call) rowObject(o Object) runtime.Object {
	switch metav1.IncludeObjectPolicy(c.query.Get("includeObject")) {
	case metav1.IncludeNone:
		return nil
	case metav1.IncludeObject:
		return o
	}
	return partial(o)
}

// wantsMetadata reports whether the client prefers an object's metadata alone.
func (c *call) wantsMetadata() bool {
	first, _, _ := strings.Cut(c.r.Header.Get("Accept"), ",")
	_, params, err := mime.ParseMediaType(strings.TrimSpace(first))
	return err == nil && params["as"] == "PartialObjectMetadata" && params["g"] == metav1.GroupName
}

// partial is an object's metadata alone.
func partial(o Object) *metav1.PartialObjectMetadata {
	part := &metav1.PartialObjectMetadata{ObjectMeta: *objectMeta(o)}
	part.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return part
}

// partialList is the metadata of objects alone.
func partialList(objects []Object, version int64) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: metav1.SchemeGroupVersion.String()},
		ListMeta: metav1.ListMeta{ResourceVersion: formatVersion(version)}, Items: []metav1.PartialObjectMetadata{},
	}
	for _, o := range objects {
		part := partial(o)
		part.TypeMeta = metav1.TypeMeta{}
		list.Items = append(list.Items, *part)
	}
	return list
}
