// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// longestPatch is how many operations a JSON patch may have.
const longestPatch = 10000

// patch answers PATCH, by the four types of patches.
func (c *call) patch() error {
	if c.action.name == "" {
		return methodNotAllowed(c.action)
	}
	kind := types.PatchType(c.mediaType())
	switch kind {
	case types.ApplyPatchType, types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType:
	default:
		return unsupportedMedia("application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, application/strategic-merge-patch+json")
	}
	data, err := c.body()
	if err != nil {
		return err
	}
	if err := c.patchOptions(kind); err != nil {
		return err
	}
	t, err := c.target()
	if err != nil {
		return err
	}
	if kind == types.ApplyPatchType {
		return c.applyPatch(t, data)
	}
	out, err := c.update(t, false, func(live Object) (Object, error) {
		patched, err := patchObject(t, live, kind, data)
		if err != nil {
			return nil, err
		}
		return c.decode(patched, "application/json")
	})
	if err != nil {
		return err
	}
	return c.object(http.StatusOK, out)
}

// patchOptions checks the options that only patches have.
func (c *call) patchOptions(kind types.PatchType) error {
	o := &metav1.PatchOptions{FieldManager: c.query.Get("fieldManager"), DryRun: c.query["dryRun"], FieldValidation: c.query.Get("fieldValidation")}
	if c.query.Has("force") {
		force := isTrue(c.query.Get("force"))
		o.Force = &force
	}
	if errs := metavalidation.ValidatePatchOptions(o, kind); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "", errs)
	}
	return nil
}

func (c *call) applyPatch(t target, data []byte) error {
	patch, err := decodeApply(data)
	if err != nil {
		return err
	}
	mayCreate := func() error {
		a := c.action
		a.verb = "create"
		return c.authorize(a)
	}
	out, created, err := c.apply(t, patch, isTrue(c.query.Get("force")), mayCreate)
	if err != nil {
		return err
	}
	if created {
		return c.object(http.StatusCreated, out)
	}
	return c.object(http.StatusOK, out)
}

// decodeApply reads the body of an apply: YAML 1.1, of which JSON is a part.
func decodeApply(data []byte) (*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	out := &unstructured.Unstructured{}
	if err := kjson.Unmarshal(raw, &out.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if out.Object == nil {
		return nil, apierrors.NewBadRequest("error decoding YAML: the body is empty")
	}
	return out, nil
}

// patchObject applies a patch other than an apply to the JSON of live.
func patchObject(t target, live Object, kind types.PatchType, data []byte) ([]byte, error) {
	current, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	switch kind {
	case types.JSONPatchType:
		return applyJSONPatch(current, data)
	case types.MergePatchType:
		out, err := jsonpatch.MergePatch(current, data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return out, nil
	}
	out, err := strategicpatch.StrategicMergePatch(current, data, t.kind.empty())
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}

func applyJSONPatch(current, data []byte) ([]byte, error) {
	p, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(p) > longestPatch {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", longestPatch, len(p)))
	}
	out, err := p.Apply(current)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return out, nil
}

// errNoPatch is for callers in this process that ask for an apply where a patch is meant.
var errNoPatch = errors.New("cannot patch: use Apply for an apply patch")
