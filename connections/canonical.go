// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package connections

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// canonical writes a value as canonical JSON: keys sorted, no HTML escapes, no spaces, no newline. Structs that are given
// to it have their fields in the order of their keys.
func canonical(v any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic("internal error: a value of ours does not encode as JSON: " + err.Error())
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}

// digestOf is the digest of a value.
func digestOf(v any) string {
	sum := sha256.Sum256(canonical(v))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// orEmpty returns an empty map for nil, which JSON would show as null.
func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

// ConfigMap is the content of a ConfigMap.
type ConfigMap struct {
	Name   string
	Labels map[string]string
	Data   map[string]string
	Binary map[string][]byte
}

// Type is what the ConfigMap is for: the value of our label, else of KubeDirector's, else Untyped.
func (c ConfigMap) Type() string {
	return cmp.Or(c.Labels[LabelType], c.Labels[LabelKubeDirector], Untyped)
}

// Size is what Kubernetes counts against its own bound, in bytes: keys and values.
func (c ConfigMap) Size() int {
	size := 0
	for key, value := range c.Data {
		size += len(key) + len(value)
	}
	for key, value := range c.Binary {
		size += len(key) + len(value)
	}
	return size
}

// Digest is the digest of the content.
func (c ConfigMap) Digest() string { return configMapDigest(c, c.Type()) }

func configMapDigest(c ConfigMap, typ string) string {
	return digestOf(struct {
		Binary map[string][]byte `json:"binaryData"`
		Data   map[string]string `json:"data"`
		Kind   Kind              `json:"kind"`
		Labels map[string]string `json:"labels"`
		Name   string            `json:"name"`
		Type   string            `json:"type"`
	}{orEmpty(c.Binary), orEmpty(c.Data), KindConfigMap, orEmpty(c.Labels), c.Name, typ})
}

// clusterDigest is the digest of what an application, known here by that name, says about itself.
func clusterDigest(name string, c Cluster) string {
	c.Digest = ""
	return digestOf(struct {
		Kind     Kind    `json:"kind"`
		Metadata Cluster `json:"metadata"`
		Name     string  `json:"name"`
	}{KindCluster, c.normal(), name})
}

// Item is one connection as the peer databag keeps it: what it is and how it stands, never its content.
type Item struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name"`
	Type   string `json:"type,omitempty"`
	Digest string `json:"digest,omitempty"`
	State  State  `json:"state,omitempty"`
}

// Key names the item: "configmap/model-prediction".
func (i Item) Key() string { return string(i.Kind) + "/" + i.Name }

func compareItems(a, b Item) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// HashOf is the hash of items: of those that have content. Their order is irrelevant.
func HashOf(items []Item) string {
	type entry struct {
		Digest string `json:"digest"`
		Kind   Kind   `json:"kind"`
		Name   string `json:"name"`
	}
	sorted := slices.SortedFunc(slices.Values(items), compareItems)
	entries := []entry{}
	for _, item := range sorted {
		if item.Digest != "" {
			entries = append(entries, entry{item.Digest, item.Kind, item.Name})
		}
	}
	return digestOf(struct {
		Items  []entry `json:"items"`
		Schema int     `json:"schema"`
	}{entries, Schema})
}

// Short is a digest as people read it: 12 characters, without the name of the algorithm.
func Short(digest string) string {
	const prefix = len("sha256:")
	if len(digest) < prefix+12 {
		return digest
	}
	return digest[prefix : prefix+12]
}
