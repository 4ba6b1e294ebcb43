// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// ModelList is "juju models" in json and yaml.
type ModelList struct {
	Models  []ModelSummary `json:"models" yaml:"models"`
	Current string         `json:"current-model,omitempty" yaml:"current-model,omitempty"`
}

// ModelSummary is one model of a [ModelList].
type ModelSummary struct {
	Name           string      `json:"name" yaml:"name"`
	ShortName      string      `json:"short-name" yaml:"short-name"`
	UUID           string      `json:"model-uuid" yaml:"model-uuid"`
	Type           string      `json:"model-type" yaml:"model-type"`
	ControllerUUID string      `json:"controller-uuid" yaml:"controller-uuid"`
	ControllerName string      `json:"controller-name" yaml:"controller-name"`
	IsController   bool        `json:"is-controller" yaml:"is-controller"`
	Owner          string      `json:"owner" yaml:"owner"`
	Cloud          string      `json:"cloud" yaml:"cloud"`
	Region         string      `json:"region,omitempty" yaml:"region,omitempty"`
	Credential     *Credential `json:"credential,omitempty" yaml:"credential,omitempty"`
	ProviderType   string      `json:"type,omitempty" yaml:"type,omitempty"`
	Life           string      `json:"life" yaml:"life"`
	Status         ModelState  `json:"status" yaml:"status"`
	Access         string      `json:"access" yaml:"access"`
	LastConnection string      `json:"last-connection" yaml:"last-connection"`
	SLA            string      `json:"sla,omitempty" yaml:"sla,omitempty"`
	AgentVersion   string      `json:"agent-version,omitempty" yaml:"agent-version,omitempty"`
}

// Credential is what a model reaches its cloud with.
type Credential struct {
	Name     string `json:"name" yaml:"name"`
	Owner    string `json:"owner" yaml:"owner"`
	Cloud    string `json:"cloud" yaml:"cloud"`
	Validity string `json:"validity-check,omitempty" yaml:"validity-check,omitempty"`
}

// ModelState is the status of a model as its own verbs show it.
type ModelState struct {
	Current string `json:"current,omitempty" yaml:"current,omitempty"`
	Message string `json:"message,omitempty" yaml:"message,omitempty"`
	Since   string `json:"since,omitempty" yaml:"since,omitempty"`
}

// ShownModel is one model of "juju show-model".
type ShownModel struct {
	Name           string                   `json:"name" yaml:"name"`
	ShortName      string                   `json:"short-name" yaml:"short-name"`
	UUID           string                   `json:"model-uuid" yaml:"model-uuid"`
	Type           string                   `json:"model-type" yaml:"model-type"`
	ControllerUUID string                   `json:"controller-uuid" yaml:"controller-uuid"`
	ControllerName string                   `json:"controller-name" yaml:"controller-name"`
	IsController   bool                     `json:"is-controller" yaml:"is-controller"`
	Owner          string                   `json:"owner" yaml:"owner"`
	Cloud          string                   `json:"cloud" yaml:"cloud"`
	Region         string                   `json:"region,omitempty" yaml:"region,omitempty"`
	ProviderType   string                   `json:"type,omitempty" yaml:"type,omitempty"`
	Life           string                   `json:"life" yaml:"life"`
	Status         ModelState               `json:"status" yaml:"status"`
	Users          map[string]ModelUser     `json:"users,omitempty" yaml:"users,omitempty"`
	SecretBackends map[string]SecretBackend `json:"secret-backends,omitempty" yaml:"secret-backends,omitempty"`
	SLA            string                   `json:"sla,omitempty" yaml:"sla,omitempty"`
	AgentVersion   string                   `json:"agent-version,omitempty" yaml:"agent-version,omitempty"`
	Credential     *Credential              `json:"credential,omitempty" yaml:"credential,omitempty"`
	Features       []Feature                `json:"supported-features,omitempty" yaml:"supported-features,omitempty"`
}

// ModelUser is a user's access to a model.
type ModelUser struct {
	DisplayName    string `json:"display-name,omitempty" yaml:"display-name,omitempty"`
	Access         string `json:"access" yaml:"access"`
	LastConnection string `json:"last-connection" yaml:"last-connection"`
}

// SecretBackend is where secrets are.
type SecretBackend struct {
	Secrets int    `json:"num-secrets" yaml:"num-secrets"`
	Status  string `json:"status" yaml:"status"`
}

// Feature is what charms may assume of a model.
type Feature struct {
	Name        string `json:"name" yaml:"name"`
	Description string `json:"description" yaml:"description"`
	Version     string `json:"version,omitempty" yaml:"version,omitempty"`
}

// What every model has in common: one cloud, and one user who may do all.
const (
	modelType    = "caas"
	providerType = "kubernetes"
	access       = "admin"
	lastSeen     = "just now"
)

// Models is the list of models for json and yaml.
func Models(all control.Models, now time.Time, exact bool) ModelList {
	out := ModelList{Models: []ModelSummary{}, Current: all.Current}
	for _, m := range all.Models {
		cloud, region, _ := strings.Cut(m.CloudRegion, "/")
		out.Models = append(out.Models, ModelSummary{
			Name: control.User + "/" + m.Name, ShortName: m.Name, UUID: m.UUID, Type: modelType,
			ControllerUUID: all.ControllerUUID, ControllerName: all.Controller, Owner: control.User, Cloud: cloud, Region: region,
			Credential: &Credential{Name: cloud, Owner: control.User, Cloud: cloud}, ProviderType: providerType,
			Life: string(m.Life), Status: state(m, now, exact), Access: access, LastConnection: lastSeen,
			SLA: sla, AgentVersion: m.Version,
		})
	}
	return out
}

// ShowModel is one model for json and yaml, by its short name.
func ShowModel(all control.Models, m control.Model, now time.Time) map[string]ShownModel {
	cloud, region, _ := strings.Cut(m.CloudRegion, "/")
	return map[string]ShownModel{m.Name: {
		Name: control.User + "/" + m.Name, ShortName: m.Name, UUID: m.UUID, Type: modelType,
		ControllerUUID: all.ControllerUUID, ControllerName: all.Controller, Owner: control.User, Cloud: cloud, Region: region,
		ProviderType: providerType, Life: string(m.Life), Status: state(m, now, false),
		Users:          map[string]ModelUser{control.User: {DisplayName: control.User, Access: access, LastConnection: lastSeen}},
		SecretBackends: map[string]SecretBackend{"internal": {Secrets: m.Secrets, Status: "active"}},
		SLA:            sla, AgentVersion: m.Version,
		Credential: &Credential{Name: cloud, Owner: control.User, Cloud: cloud, Validity: "valid"},
		Features: []Feature{
			{Name: "juju", Description: "the version of Juju used by the model", Version: m.Version},
			{Name: "k8s-api", Description: "the Kubernetes API lets charms query and access the state of the cluster", Version: m.KubernetesVersion},
		},
	}}
}

func state(m control.Model, now time.Time, exact bool) ModelState {
	since := Friendly(m.Status.Since, now)
	if exact {
		since = m.Status.Since.String()
	}
	return ModelState{Current: m.Status.Status, Message: m.Status.Message, Since: since}
}

// Friendly is how long ago something was, in juju's words.
func Friendly(when, now time.Time) string {
	ago := func(n int, unit string) string {
		if n != 1 {
			unit += "s"
		}
		return fmt.Sprintf("%d %s ago", n, unit)
	}
	switch since := now.Sub(when); {
	case since >= 24*time.Hour:
		return when.Format("2006-01-02")
	case since >= time.Hour:
		return ago(int(since.Hours()), "hour")
	case since >= time.Minute:
		return ago(int(since.Minutes()), "minute")
	case since >= 2*time.Second:
		return ago(int(since.Seconds()), "second")
	default:
		return "just now"
	}
}

// ModelsTable is the list of models as a table.
func ModelsTable(w io.Writer, all control.Models, uuid, coloured bool) error {
	header := []string{"Model", "Cloud/Region", "Type", "Status", "Units", "Access", "Last connection"}
	units := 4
	if uuid {
		header = append([]string{"Model", "UUID"}, header[1:]...)
		units++
	}
	t := newTable(header...)
	t.right[units] = true
	for _, m := range all.Models {
		name := plain(m.Name)
		if m.Name == all.Current {
			name = cell{m.Name + "*", green}
		}
		row := []cell{name}
		if uuid {
			row = append(row, plain(m.UUID))
		}
		count := "-"
		if m.Units > 0 {
			count = strconv.Itoa(m.Units)
		}
		t.add(append(row, plain(m.CloudRegion), plain(providerType), plain(m.Status.Status), plain(count), plain(access), plain(lastSeen))...)
	}
	if _, err := fmt.Fprintf(w, "Controller: %s\n\n", all.Controller); err != nil {
		return err
	}
	return t.write(w, coloured)
}

// Table writes rows below a header, as juju's tables are.
func Table(w io.Writer, header []string, rows [][]string, coloured bool) error {
	t := newTable(header...)
	for _, row := range rows {
		cells := make([]cell, len(row))
		for i, text := range row {
			cells[i] = plain(text)
		}
		t.add(cells...)
	}
	return t.write(w, coloured)
}
