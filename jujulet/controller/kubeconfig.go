// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"encoding/base64"
	"strings"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// kubeconfigText is a kubeconfig for use inside the cluster.
var kubeconfigText = template.Must(template.New("kubeconfig").Parse(`apiVersion: v1
kind: Config
clusters:
- name: jujulet
  cluster:
    server: https://{{.Server}}:443
    certificate-authority-data: {{.CA}}
users:
- name: jujulet
  user:
    token: {{.Token}}
contexts:
- name: jujulet
  context:
    cluster: jujulet
    user: jujulet
    namespace: {{.Namespace}}
current-context: jujulet
`))

// getKubeconfig returns a kubeconfig with the operator's token.
func (c *modelWorker) getKubeconfig(context.Context, none) (string, error) {
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
