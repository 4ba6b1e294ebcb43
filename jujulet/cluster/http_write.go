// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// body reads the body of a request, up to the limit.
func (c *call) body() ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, largestBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", largestBody))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot read the body: %v", err))
	}
	return data, nil
}

func (c *call) mediaType() string {
	t, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// target names what the request writes, and checks the options that all writes share.
func (c *call) target() (target, error) {
	t := target{kind: c.kind, namespace: c.namespace, name: c.action.name, status: c.subresource == "status", manager: c.query.Get("fieldManager")}
	if !c.kind.namespaced {
		t.namespace = ""
	}
	if c.query.Has("dryRun") {
		if errs := metavalidation.ValidateDryRun(field.NewPath("dryRun"), c.query["dryRun"]); len(errs) > 0 {
			return t, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: optionsKind(c.verb)}, "", errs)
		}
		t.dryRun = true
	}
	if errs := metavalidation.ValidateFieldManager(t.manager, field.NewPath("fieldManager")); len(errs) > 0 {
		return t, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: optionsKind(c.verb)}, "", errs)
	}
	if t.manager == "" {
		t.manager = agentName(c.r.UserAgent())
	}
	return t, nil
}

func optionsKind(verb string) string {
	switch verb {
	case "create":
		return "CreateOptions"
	case "update":
		return "UpdateOptions"
	case "delete", "deletecollection":
		return "DeleteOptions"
	}
	return "PatchOptions"
}

// agentName is the field manager of who names none: the client's name up to the slash.
func agentName(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	if len(name) > metavalidation.FieldManagerMaxLength {
		name = name[:metavalidation.FieldManagerMaxLength]
	}
	if name == "" {
		return "unknown"
	}
	return name
}

// decode reads an object of the kind of the request. Unknown fields are an error or a warning, as the
// client asked.
func (c *call) decode(data []byte, mediaType string) (Object, error) {
	decoder := c.rules.strict
	switch mediaType {
	case "application/vnd.kubernetes.protobuf":
		decoder = c.rules.protobuf
	case "application/yaml":
		j, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
		}
		data = j
	case "application/json", "":
	default:
		return nil, unsupportedMedia("application/json, application/yaml, application/vnd.kubernetes.protobuf")
	}
	if c.query.Get("fieldValidation") == metav1.FieldValidationIgnore && mediaType != "application/vnd.kubernetes.protobuf" {
		decoder = c.rules.lenient
	}
	gvk := c.kind.gvk
	out, got, err := decoder.Decode(data, &gvk, c.kind.empty())
	if strict, ok := runtime.AsStrictDecodingError(err); ok && out != nil {
		if c.query.Get("fieldValidation") == metav1.FieldValidationStrict {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		for _, e := range strict.Errors() {
			c.w.Header().Add("Warning", fmt.Sprintf("299 - %q", e.Error()))
		}
		err = nil
	}
	if err != nil {
		if got != nil && !got.Empty() {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.GroupVersion(), c.kind.Kind, err))
		}
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v", c.kind.Kind, err))
	}
	obj, ok := out.(Object)
	if !ok || *got != c.kind.gvk {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s", got.Kind, got.GroupVersion(), c.kind.Kind))
	}
	obj.GetObjectKind().SetGroupVersionKind(c.kind.gvk)
	return obj, nil
}

func unsupportedMedia(accepted string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + accepted,
	}}
}

func (c *call) create() error {
	if c.action.name != "" {
		return methodNotAllowed(c.action)
	}
	t, err := c.target()
	if err != nil {
		return err
	}
	data, err := c.body()
	if err != nil {
		return err
	}
	obj, err := c.decode(data, c.mediaType())
	if err != nil {
		return err
	}
	out, err := c.Server.create(t, obj)
	if err != nil {
		return err
	}
	return c.object(http.StatusCreated, out)
}

func (c *call) put() error {
	if c.action.name == "" {
		return methodNotAllowed(c.action)
	}
	t, err := c.target()
	if err != nil {
		return err
	}
	data, err := c.body()
	if err != nil {
		return err
	}
	obj, err := c.decode(data, c.mediaType())
	if err != nil {
		return err
	}
	// Whether there is such an object comes after whether the request makes sense.
	if n := obj.GetName(); n != "" && n != t.name {
		return nameMismatch(n, t.name)
	}
	out, err := c.update(t, true, func(Object) (Object, error) { return obj, nil })
	if err != nil {
		return err
	}
	return c.object(http.StatusOK, out)
}

// deleteOptions reads the options of a DELETE, from the body or else from the query.
func (c *call) deleteOptions() (*metav1.DeleteOptions, error) {
	o := &metav1.DeleteOptions{}
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	if len(data) > 0 {
		if c.mediaType() == "application/vnd.kubernetes.protobuf" {
			gvk := corev1.SchemeGroupVersion.WithKind("DeleteOptions")
			_, _, err = c.rules.protobuf.Decode(data, &gvk, o)
		} else {
			err = yaml.Unmarshal(data, o)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if p := c.query.Get("propagationPolicy"); p != "" && o.PropagationPolicy == nil {
		policy := metav1.DeletionPropagation(p)
		o.PropagationPolicy = &policy
	}
	if isTrue(c.query.Get("orphanDependents")) && o.PropagationPolicy == nil {
		policy := metav1.DeletePropagationOrphan
		o.PropagationPolicy = &policy
	}
	if errs := metavalidation.ValidateDeleteOptions(o); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "DeleteOptions"}, "", errs)
	}
	return o, nil
}

func (c *call) remove() error {
	if c.subresource != "" {
		return methodNotAllowed(c.action)
	}
	o, err := c.deleteOptions()
	if err != nil {
		return err
	}
	t, err := c.target()
	if err != nil {
		return err
	}
	t.dryRun = t.dryRun || len(o.DryRun) > 0
	obj, err := c.delete(t, o)
	if err != nil {
		return err
	}
	if c.kind.echoes || obj.GetDeletionTimestamp() != nil {
		return c.object(http.StatusOK, obj)
	}
	c.json(http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: obj.GetName(), Group: c.group, Kind: c.resource, UID: types.UID(obj.GetUID())},
	})
	return nil
}

// removeAll deletes what a list would show.
func (c *call) removeAll() error {
	if c.kind.Kind == Service || c.kind.Kind == Namespace {
		return methodNotAllowed(c.action)
	}
	o, err := c.deleteOptions()
	if err != nil {
		return err
	}
	t, err := c.target()
	if err != nil {
		return err
	}
	t.dryRun = t.dryRun || len(o.DryRun) > 0
	sel, err := c.selection()
	if err != nil {
		return err
	}
	items, version := c.snapshot(sel)
	for _, obj := range items {
		t.namespace, t.name = obj.GetNamespace(), obj.GetName()
		if _, err := c.delete(t, o); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	c.json(http.StatusOK, c.asList(items, version))
	return nil
}
