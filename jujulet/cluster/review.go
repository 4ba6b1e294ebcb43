// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// accessReview answers a SelfSubjectAccessReview, which any account may ask for.
func (c *call) accessReview() error {
	if c.user.account == nil {
		return c.authorize(c.action)
	}
	if c.verb != "create" {
		return methodNotAllowed(c.action)
	}
	data, err := c.body()
	if err != nil {
		return err
	}
	review := &authorizationv1.SelfSubjectAccessReview{}
	gvk := authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview")
	decoder := c.rules.lenient
	if c.mediaType() == "application/vnd.kubernetes.protobuf" {
		decoder = c.rules.protobuf
	}
	if _, _, err := decoder.Decode(data, &gvk, review); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	resource, path := review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes
	if (resource == nil) == (path == nil) {
		return apierrors.NewInvalid(gvk.GroupKind(), "", field.ErrorList{field.Invalid(field.NewPath("spec", "resourceAttributes"), resource,
			"exactly one of nonResourceAttributes or resourceAttributes must be specified")})
	}
	review.SetGroupVersionKind(gvk)
	review.Status = authorizationv1.SubjectAccessReviewStatus{}
	if path != nil {
		review.Status.Allowed = c.user.allowsPath(path.Path)
	} else {
		review.Status.Reason, review.Status.Allowed = c.user.allows(action{
			verb: resource.Verb, group: resource.Group, resource: resource.Resource, subresource: resource.Subresource,
			namespace: resource.Namespace, name: resource.Name,
		})
	}
	c.json(http.StatusCreated, review)
	return nil
}
