// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package probe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/drawbridge-k8s/drawbridge/k8sservice"
)

// Login is what a session needs. It is never logged.
type Login struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

// Seen is what a hook, or the watch, has seen.
type Seen struct {
	// Exists, UID, Deleting and Fields (k8sservice.Fingerprint) are the Service.
	Exists   bool   `json:"exists,omitempty"`
	UID      string `json:"uid,omitempty"`
	Deleting bool   `json:"deleting,omitempty"`
	Fields   string `json:"fields,omitempty"`
	// Addresses is the address set.
	Addresses k8sservice.AddressSet `json:"addresses"`
	// Answers has a verdict for each address (host:port) that was probed.
	Answers map[string]bool `json:"answers,omitempty"`
	// Backend is the verdict of the direct session, nil when none was opened.
	Backend *bool `json:"backend,omitempty"`
}

// Order tells the watch what the last hook saw and how to look.
type Order struct {
	Build     string `json:"build"` // id of the build that gave the order
	App       string `json:"app"`
	Namespace string `json:"namespace"`
	Service   string `json:"service"`
	Domain    string `json:"domain"` // of the cluster
	// ExternalHostname is the option of that name.
	ExternalHostname string `json:"external-hostname,omitempty"`

	Seen Seen `json:"seen"`
	// ConfigMaps are those to look at, with the digest of each as the hook saw it, "" for one that was not there.
	ConfigMaps map[string]string `json:"configmaps,omitempty"`
	// Pending: the exposure is not settled; look more often.
	Pending bool `json:"pending,omitempty"`
	// WakeAt is the earliest moment at which a hook wants to run in any case;
	// zero for never.
	WakeAt time.Time `json:"wake-at,omitzero"`

	// Backend are addresses of which one is asked directly, in turn until one
	// answers, before the address set is probed; empty together with Login
	// when the backend is incomplete: then nothing is probed.
	Backend []string `json:"backend,omitempty"`
	Login   Login    `json:"login,omitzero"`
	// SecretID and SecretRevision stand for Login in the digest. With plain
	// credentials (no secret) leave them empty: a hash of them is used then.
	SecretID       string `json:"secret-id,omitempty"`
	SecretRevision int    `json:"secret-revision,omitempty"`
	// NotVerifiable: an assigned address cannot be tried from inside; it counts
	// when the cluster IP answers.
	NotVerifiable bool `json:"not-verifiable,omitempty"`
}

// Digest is the same for orders that ask for the same. The login goes into it
// by the secret's id and revision; plain credentials only as a part of what
// is hashed.
func (o Order) Digest() string {
	if o.SecretID != "" {
		o.Login = Login{}
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic("internal error: cannot encode an order: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// wakeMoves is by how much WakeAt must move to be news: a hook that is to be
// woken at once, and says so again and again, says nothing new.
const wakeMoves = 5 * time.Second

// isNews reports whether the order o says anything that the one before it
// did not.
func (o Order) isNews(before Order) bool {
	if moved := o.WakeAt.Sub(before.WakeAt); moved < wakeMoves && moved > -wakeMoves {
		o.WakeAt = before.WakeAt
	}
	o.ConfigMaps = before.ConfigMaps // they are told on their own
	return o.Digest() != before.Digest()
}
