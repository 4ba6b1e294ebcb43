// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package connections

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// KeyMetadata is the key of the provider's application databag.
const KeyMetadata = "metadata"

// Service is something that an application offers.
type Service struct {
	// Exported names what is offered, for those who look for it in all applications.
	Exported  string   `json:"exported-service,omitempty"`
	Endpoints []string `json:"endpoints"`
}

// Unit is one unit of an application.
type Unit struct {
	Name string `json:"name"`
	FQDN string `json:"fqdn,omitempty"`
}

// Metadata is what an application says about itself in a relation. It never has the application's own connections, so
// that two applications may be connected to one another, and never a credential.
type Metadata struct {
	Schema   int                `json:"schema"`
	Name     string             `json:"name"`
	Category string             `json:"category"`
	DistroID string             `json:"distro-id"`
	Version  string             `json:"version"`
	Services map[string]Service `json:"services"`
	Units    []Unit             `json:"units"`
	// Digest is for people: nobody trusts it.
	Digest string `json:"digest"`
}

// Cluster is a connected application as the document shows it.
type Cluster struct {
	Category string             `json:"category"`
	DistroID string             `json:"distro-id"`
	Version  string             `json:"version"`
	Services map[string]Service `json:"services"`
	Units    []Unit             `json:"units"`
	Digest   string             `json:"digest"`
}

// normal shows what is not there as empty.
func (c Cluster) normal() Cluster {
	c.Services = normalServices(c.Services)
	c.Units = append([]Unit{}, c.Units...)
	return c
}

func normalServices(services map[string]Service) map[string]Service {
	out := map[string]Service{}
	for name, s := range services {
		s.Endpoints = append([]string{}, s.Endpoints...)
		out[name] = s
	}
	return out
}

// cluster is what the document shows of it, under the name by which the application is known here.
func (m Metadata) cluster(name string) Cluster {
	c := Cluster{Category: m.Category, DistroID: m.DistroID, Version: m.Version, Services: m.Services, Units: m.Units}.normal()
	c.Digest = clusterDigest(name, c)
	return c
}

// Text is the value for the databag. It fails when it is larger than MaxMetadata.
func (m Metadata) Text() (string, error) {
	m.Schema = Schema
	m.Services = normalServices(m.Services)
	m.Units = slices.SortedFunc(slices.Values(append([]Unit{}, m.Units...)), compareUnits)
	if m.Units == nil {
		m.Units = []Unit{}
	}
	m.Digest = ""
	m.Digest = digestOf(m)
	text := canonical(m)
	if len(text) > MaxMetadata {
		return "", fmt.Errorf("the metadata is too large: %d > %d bytes", len(text), MaxMetadata)
	}
	return string(text), nil
}

// compareUnits orders app/2 before app/10.
func compareUnits(a, b Unit) int {
	if d := len(a.Name) - len(b.Name); d != 0 {
		return d
	}
	return bytes.Compare([]byte(a.Name), []byte(b.Name))
}

// ParseMetadata reads the value of another application's databag. Keys that are not known are ignored.
func ParseMetadata(text string) (Metadata, error) {
	var m Metadata
	if len(text) > MaxMetadata {
		return m, fmt.Errorf("its metadata is too large: %d > %d bytes", len(text), MaxMetadata)
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return Metadata{}, errors.New("its metadata is not the JSON expected")
	}
	if m.Schema != Schema {
		return Metadata{}, fmt.Errorf("its metadata has the unknown schema %d", m.Schema)
	}
	m.Digest = ""
	return m, nil
}

// Answer is what the requirer writes into its own application databag of the relation, so that the provider's operator
// sees the other side.
type Answer struct {
	Status  string // "accepted" or "rejected"; "" for not yet
	Reason  string
	Applied string // digest of the metadata that was applied
}

// Bag returns the keys, "" for those to be deleted.
func (a Answer) Bag() map[string]string {
	return map[string]string{"status": a.Status, "reason": a.Reason, "applied": a.Applied}
}
