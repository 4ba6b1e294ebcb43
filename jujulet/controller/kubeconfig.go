// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// getKubeconfig returns a kubeconfig with the operator's token.
func (c *Controller) getKubeconfig(context.Context, none) (string, error) {
	token, err := c.adminToken()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = kubeconfigText.Execute(&out, map[string]string{
		"Server": c.plan.APIServer.String(), "CA": base64.StdEncoding.EncodeToString(c.ca),
		"Token": token, "Namespace": c.info.Name,
	})
	return out.String(), err
}

// eventTime is when an event was last seen.
func eventTime(e *corev1.Event) time.Time {
	switch {
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.CreationTimestamp.Time
	}
}
