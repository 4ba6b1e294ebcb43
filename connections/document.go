// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package connections

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// App says which application the document is for.
type App struct {
	Name      string `json:"name"`
	Model     string `json:"model"`
	ModelUUID string `json:"model-uuid"`
	Category  string `json:"category"`
}

// Document is what the workload reads. Readers ignore keys that they do not know; a change of meaning raises Schema.
type Document struct {
	Schema int `json:"schema"`
	App    App `json:"app"`
	// Unit is the only part that differs from unit to unit. It is not hashed.
	Unit Unit `json:"unit"`
	// Services are the application's own, as its metadata shows them to others.
	Services    map[string]Service `json:"services"`
	Connections Connections        `json:"connections"`
}

// Connections is the part of the document that is hashed.
type Connections struct {
	Hash string `json:"hash"`
	// ConfigMaps is by type and name.
	ConfigMaps map[string]map[string]Entry `json:"configmaps"`
	Clusters   map[string]Cluster          `json:"clusters"`
	Problems   []Problem                   `json:"problems"`
}

// Entry is a connected ConfigMap in the document. Values of binaryData are base64, as in Kubernetes' API.
type Entry struct {
	Data   map[string]string `json:"data"`
	Binary map[string][]byte `json:"binaryData"`
	Labels map[string]string `json:"labels"`
	Digest string            `json:"digest"`
}

// Problem is an item that the document lacks, or shows as it was.
type Problem struct {
	Kind  Kind   `json:"kind"`
	Name  string `json:"name"`
	State State  `json:"state"`
}

// maxDocument bounds what is read as a document, in bytes: the largest one that we write is smaller.
const maxDocument = 64 << 20

// Text is the file's content.
func (d Document) Text() []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(d); err != nil {
		panic("internal error: the document does not encode: " + err.Error())
	}
	return buffer.Bytes()
}

// ParseDocument reads a file that was written by Text. What it says about digests is checked against the content, since
// anybody in the container may have changed it: an item that is not what its digest says is not taken over.
func ParseDocument(text []byte) (*Document, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("cannot read the document: it is larger than %d bytes", maxDocument)
	}
	var d Document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("cannot read the document: %w", err)
	}
	if d.Schema != Schema {
		return nil, fmt.Errorf("cannot read the document: schema %d is not known", d.Schema)
	}
	d.verify()
	return &d, nil
}

// verify drops what is not what its digest says, and makes the hash that of the rest.
func (d *Document) verify() {
	c := &d.Connections
	for typ, entries := range c.ConfigMaps {
		for name, e := range entries {
			if configMapDigest(e.configMap(name), typ) != e.Digest {
				delete(entries, name)
			}
		}
	}
	for name, cluster := range c.Clusters {
		if clusterDigest(name, cluster) != cluster.Digest {
			delete(c.Clusters, name)
		}
	}
	c.Hash = HashOf(c.Items())
}

func (e Entry) configMap(name string) ConfigMap {
	return ConfigMap{Name: name, Labels: e.Labels, Data: e.Data, Binary: e.Binary}
}

// Items lists what the document has content of, sorted.
func (c Connections) Items() []Item {
	var items []Item
	for typ, entries := range c.ConfigMaps {
		for name, e := range entries {
			items = append(items, Item{Kind: KindConfigMap, Name: name, Type: typ, Digest: e.Digest, State: OK})
		}
	}
	for name, cluster := range c.Clusters {
		items = append(items, Item{Kind: KindCluster, Name: name, Digest: cluster.Digest, State: OK})
	}
	slices.SortFunc(items, compareItems)
	return items
}

// add puts a ConfigMap into the document.
func (c *Connections) add(typ, name string, e Entry) {
	if c.ConfigMaps[typ] == nil {
		c.ConfigMaps[typ] = map[string]Entry{}
	}
	e.Data, e.Binary, e.Labels = orEmpty(e.Data), orEmpty(e.Binary), orEmpty(e.Labels)
	c.ConfigMaps[typ][name] = e
}

// find returns a ConfigMap of the document, whatever its type.
func (c Connections) find(name string) (typ string, e Entry, found bool) {
	for typ, entries := range c.ConfigMaps {
		if e, ok := entries[name]; ok {
			return typ, e, true
		}
	}
	return "", Entry{}, false
}
