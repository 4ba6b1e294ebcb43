// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import (
	"context"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// User is the only user.
const User = "admin"

// Model describes a model.
type Model struct {
	Name         string            `json:"name"` // also the namespace
	UUID         string            `json:"uuid"`
	CloudRegion  string            `json:"cloud-region"`
	Version      string            `json:"version"`
	Life         model.Life        `json:"life"`
	Status       model.StatusValue `json:"status"`
	Applications int               `json:"applications"`
	Units        int               `json:"units"`
	Secrets      int               `json:"secrets"`
	// KubernetesVersion is that of the cluster.
	KubernetesVersion string `json:"kubernetes-version"`
}

// Models are all models of a controller.
type Models struct {
	Controller     string  `json:"controller"`
	ControllerUUID string  `json:"controller-uuid"`
	Version        string  `json:"version"`
	Cloud          string  `json:"cloud"`
	Region         string  `json:"region"`
	Current        string  `json:"current,omitempty"` // "" if there is none
	Models         []Model `json:"models"`            // by name
}

// AddModelRequest makes a model.
type AddModelRequest struct {
	Name     string            `json:"name"`
	Config   map[string]string `json:"config,omitempty"`
	NoSwitch bool              `json:"no-switch,omitempty"` // the current model stays
}

// DestroyModelRequest begins the end of a model, [controller:][user/]model. Force
// removes units that cannot end in order; NoWait all of them at once.
type DestroyModelRequest struct {
	Model   string        `json:"model"`
	Force   bool          `json:"force,omitempty"`
	NoWait  bool          `json:"no-wait,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"` // with Force; 0 is a minute
}

// SwitchRequest names the new current model; "" only asks.
type SwitchRequest struct {
	Target string `json:"target,omitempty"`
}

// SwitchResult names the current models before and after; "" is none.
type SwitchResult struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// ModelConfigChange resets keys of the model's configuration, then sets others.
type ModelConfigChange struct {
	Set   map[string]string `json:"set,omitempty"`
	Reset []string          `json:"reset,omitempty"`
}

// Models lists the models.
func (c *Client) Models(ctx context.Context) (Models, error) {
	var out Models
	return out, c.call(ctx, "models", nil, &out)
}

// AddModel makes a model.
func (c *Client) AddModel(ctx context.Context, r AddModelRequest) (Model, error) {
	var out Model
	return out, c.call(ctx, "add-model", r, &out)
}

// DestroyModel begins the end of a model; it has gone when Models does not list
// it any more.
func (c *Client) DestroyModel(ctx context.Context, r DestroyModelRequest) error {
	return c.call(ctx, "destroy-model", r, nil)
}

// Switch changes the current model, or only asks which it is.
func (c *Client) Switch(ctx context.Context, target string) (SwitchResult, error) {
	var out SwitchResult
	return out, c.call(ctx, "switch", SwitchRequest{target}, &out)
}

// ModelConfig returns the model's configuration by key.
func (c *Client) ModelConfig(ctx context.Context) (map[string]model.ModelConfigValue, error) {
	var out map[string]model.ModelConfigValue
	return out, c.call(ctx, "model-config", nil, &out)
}

// SetModelConfig changes the model's configuration and returns the keys that Juju
// does not know: they are kept, too.
func (c *Client) SetModelConfig(ctx context.Context, r ModelConfigChange) ([]string, error) {
	var out []string
	return out, c.call(ctx, "set-model-config", r, &out)
}
