// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// rules are what all servers of a process share: the table of kinds with a field manager for each
// kind and subresource, and the decoders. They hold no state of any server.
type rules struct {
	kinds    []*kind
	byKind   map[Kind]*kind
	lenient  runtime.Decoder
	strict   runtime.Decoder
	protobuf runtime.Decoder
}

// sharedRules parses the schema of all Kubernetes types, which takes about 0.1 s, once per process.
var sharedRules = sync.OnceValues(loadRules)

func loadRules() (*rules, error) {
	r := &rules{
		kinds:    kindTable(),
		byKind:   map[Kind]*kind{},
		lenient:  json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{}),
		strict:   json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Strict: true}),
		protobuf: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme),
	}
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for _, k := range r.kinds {
		r.byKind[k.Kind] = k
		var err error
		if k.main, err = newFieldManager(converter, k, ""); err != nil {
			return nil, err
		}
		if !k.hasStatus {
			continue
		}
		if k.status, err = newFieldManager(converter, k, "status"); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// newFieldManager makes the keeper of metadata.managedFields for one kind and subresource. Whoever
// writes the main resource owns nothing of the status, and the other way round.
func newFieldManager(converter managedfields.TypeConverter, k *kind, subresource string) (*managedfields.FieldManager, error) {
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	version := fieldpath.APIVersion(k.gvk.GroupVersion().String())
	switch {
	case subresource == "status":
		reset[version] = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	case k.hasStatus:
		reset[version] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	}
	m, err := managedfields.NewDefaultFieldManager(converter, scheme.Scheme, defaulter{k}, scheme.Scheme,
		k.gvk, k.gvk.GroupVersion(), subresource, fieldpath.NewExcludeFilterSetMap(reset))
	if err != nil {
		return nil, fmt.Errorf("cannot make the field manager of %s: %v", k.Kind, err)
	}
	return m, nil
}

// defaulter lets the field manager set defaults inside an apply.
type defaulter struct{ kind *kind }

// Default sets the defaults of the kind.
func (d defaulter) Default(in runtime.Object) {
	if obj, ok := in.(Object); ok {
		d.kind.defaults(obj)
	}
}
