// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The OpenAPI documents are a skeleton: kubectl refuses to apply unless it finds that PATCH of a kind
// takes fieldValidation, and then leaves validation to the server. They hold no schemas.

// The media types of the documents in protobuf. Clients ask for them with an @, which is not allowed in a
// Content-Type, so that answers have a dot instead.
const (
	protoV2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	protoV3 = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
)

func (c *call) openAPI(path string) error {
	switch {
	case path == "/openapi/v2":
		return c.document(documentV2(c.rules), protoV2, func(data []byte) (proto.Message, error) { return openapi_v2.ParseDocument(data) })
	case path == "/openapi/v3":
		paths := map[string]any{}
		for _, gv := range c.rules.documented() {
			name := strings.TrimPrefix(groupPath(gv), "/")
			paths[name] = map[string]any{"serverRelativeURL": "/openapi/v3/" + name}
		}
		c.json(http.StatusOK, map[string]any{"paths": paths})
		return nil
	}
	for _, gv := range c.rules.documented() {
		if path == "/openapi/v3"+groupPath(gv) {
			return c.document(documentV3(c.rules, gv), protoV3, func(data []byte) (proto.Message, error) { return openapi_v3.ParseDocument(data) })
		}
	}
	return unknownPath(c.action)
}

// documented are the groups with kinds that can be patched.
func (r *rules) documented() []schema.GroupVersion {
	var out []schema.GroupVersion
	for _, k := range r.kinds {
		if gv := k.gvk.GroupVersion(); !slices.Contains(out, gv) {
			out = append(out, gv)
		}
	}
	return out
}

// document sends doc as JSON, or in protobuf where the client asks for that first.
func (c *call) document(doc map[string]any, media string, parse func([]byte) (proto.Message, error)) error {
	accept := c.r.Header.Get("Accept")
	if !strings.Contains(accept, "proto-openapi") || strings.Index(accept, "application/json") == 0 {
		c.json(http.StatusOK, doc)
		return nil
	}
	data, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	message, err := parse(data)
	if err != nil {
		return fmt.Errorf("cannot make the OpenAPI document: %w", err)
	}
	out, err := proto.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot encode the OpenAPI document: %w", err)
	}
	c.w.Header().Set("Content-Type", media)
	_, _ = c.w.Write(out)
	return nil
}

func documentV2(r *rules) map[string]any {
	paths := map[string]any{}
	for _, k := range r.kinds {
		paths[itemPath(k)] = patchOperation(k, map[string]any{"name": "fieldValidation", "in": "query", "type": "string", "uniqueItems": true})
	}
	return map[string]any{"swagger": "2.0", "info": apiInfo(), "paths": paths}
}

func documentV3(r *rules, gv schema.GroupVersion) map[string]any {
	paths := map[string]any{}
	for _, k := range r.kinds {
		if k.gvk.GroupVersion() == gv {
			paths[itemPath(k)] = patchOperation(k, map[string]any{
				"name": "fieldValidation", "in": "query", "schema": map[string]any{"type": "string", "uniqueItems": true}})
		}
	}
	return map[string]any{"openapi": "3.0.0", "info": apiInfo(), "paths": paths}
}

func apiInfo() map[string]any { return map[string]any{"title": "Kubernetes", "version": serverVersion} }

func itemPath(k *kind) string {
	if k.namespaced {
		return groupPath(k.gvk.GroupVersion()) + "/namespaces/{namespace}/" + k.plural + "/{name}"
	}
	return groupPath(k.gvk.GroupVersion()) + "/" + k.plural + "/{name}"
}

func patchOperation(k *kind, parameter map[string]any) map[string]any {
	return map[string]any{"patch": map[string]any{
		"operationId":         "patch" + string(k.Kind),
		"x-kubernetes-action": "patch",
		"x-kubernetes-group-version-kind": map[string]any{
			"group": k.gvk.Group, "version": k.gvk.Version, "kind": k.gvk.Kind,
		},
		"parameters": []any{parameter},
		"responses":  map[string]any{"200": map[string]any{"description": "OK"}},
	}}
}
