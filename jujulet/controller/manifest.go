// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
)

// applyRequest is control's request to apply a manifest.
type applyRequest struct {
	Manifest string `json:"manifest"`
}

// applyManager is the field manager of the operator's manifests.
const applyManager = "jujulet"

// postObjects applies the ConfigMaps of a manifest. All are checked before the first is applied.
func (c *modelWorker) postObjects(_ context.Context, r applyRequest) ([]string, error) {
	maps, err := c.readManifest(r.Manifest)
	if err != nil {
		return nil, err
	}
	done := []string{}
	for _, m := range maps {
		before, err := c.admin.Get(cluster.ConfigMap, m.Namespace, m.Name)
		if err != nil && !isAbsent(err) {
			return done, err
		}
		after, err := c.admin.Apply(m, applyManager, true)
		if err != nil {
			return done, refusal(err)
		}
		word := "configured"
		switch {
		case before == nil:
			word = "created"
		case before.GetResourceVersion() == after.GetResourceVersion():
			word = "unchanged"
		}
		done = append(done, "configmap/"+m.Name+" "+word)
	}
	return done, nil
}

// readManifest reads the documents of a manifest.
func (c *modelWorker) readManifest(text string) ([]*corev1.ConfigMap, error) {
	var maps []*corev1.ConfigMap
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, invalid("cannot read the manifest: %v", err)
		}
		var empty any
		if yaml.Unmarshal(document, &empty) == nil && empty == nil {
			continue
		}
		m := &corev1.ConfigMap{}
		if err := yaml.UnmarshalStrict(document, m); m.Kind != "" && (m.Kind != "ConfigMap" || m.APIVersion != "v1") {
			return nil, invalid("cannot apply a %s of %s: only ConfigMaps of v1 can be applied", m.Kind, m.APIVersion)
		} else if err != nil {
			return nil, invalid("cannot read the manifest: %v", err)
		}
		switch {
		case m.Kind == "":
			return nil, invalid("cannot read the manifest: a document has no kind")
		case m.Name == "":
			return nil, invalid("cannot apply a ConfigMap without a name")
		case m.Namespace != "" && m.Namespace != c.info.Name:
			return nil, invalid("cannot apply to namespace %q: the model's is %q", m.Namespace, c.info.Name)
		}
		m.Namespace, m.ManagedFields, m.ResourceVersion, m.UID = c.info.Name, nil, "", ""
		maps = append(maps, m)
	}
	if len(maps) == 0 {
		return nil, invalid("no objects passed to apply")
	}
	return maps, nil
}

// deleteObject deletes a ConfigMap.
func (c *modelWorker) deleteObject(_ context.Context, r objectRequest) (none, error) {
	if !slices.Contains([]string{"configmap", "configmaps", "cm"}, strings.ToLower(r.Kind)) {
		return none{}, invalid("cannot delete a %s: only ConfigMaps can be deleted", r.Kind)
	}
	return none{}, refusal(c.admin.Delete(cluster.ConfigMap, c.info.Name, r.Name))
}

// refusal turns what the API says into what the operator did wrong.
func refusal(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return notFound("%v", err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsConflict(err):
		return invalid("%v", err)
	}
	return err
}
