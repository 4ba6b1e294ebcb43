// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation

import (
	"strings"
	"time"
)

// Keys of the peer databags.
const (
	keySchema       = "schema"
	keyPending      = "service-pending"
	keyServiceHash  = "service-hash"
	keyPendingSince = "service-pending-since"
	keyBackend      = "backend"
	keyLeader       = "leader"
	keyNode         = "node"

	schemaVersion = "1"
)

// Peer is the application databag of the peer relation. The leader writes it, every unit reads it.
type Peer struct {
	// Schema is the version of this layout; empty before the first write. A newer one is kept.
	Schema string
	// Pending is the flag: an exposure was asked for and has not answered yet.
	Pending bool
	// ServiceHash is the content hash of the desired Service that the flag is about.
	ServiceHash string
	// PendingSince is the moment the flag rose, or ServiceHash changed under it; zero while the flag is down, or if what
	// was written there cannot be read.
	PendingSince time.Time
	// Backend is the id of the backend relation that the clients' users were made on; empty while no client holds
	// credentials. It is text so that a garbled value simply names another relation.
	Backend string
	// Verified are the addresses that answered last.
	Verified []Address
	// Leader is the name of the unit that wrote this.
	Leader string
}

// ParsePeer reads the application databag of the peer relation. Every text is a defined state: a flag that is not
// `false` is up, a moment that cannot be read is zero, an address that cannot be read is not there.
func ParsePeer(bag map[string]string) Peer {
	peer := Peer{
		Schema:      bag[keySchema],
		Pending:     bag[keyPending] != "" && bag[keyPending] != "false",
		ServiceHash: bag[keyServiceHash],
		Backend:     bag[keyBackend],
		Verified:    BagAddresses(bag),
		Leader:      bag[keyLeader],
	}
	if since, err := time.Parse(time.RFC3339, bag[keyPendingSince]); err == nil && peer.Pending {
		peer.PendingSince = since.UTC()
	}
	return peer
}

// Bag returns every key that we know, "" for those to be deleted; give it to Diff. Keys of a newer revision are not in it
// and so stay.
func (p Peer) Bag() map[string]string {
	readWrite, readOnly := SplitAddresses(p.Verified)
	bag := map[string]string{
		keySchema:            p.Schema,
		keyPending:           "",
		keyServiceHash:       p.ServiceHash,
		keyPendingSince:      "",
		keyBackend:           p.Backend,
		keyEndpoints:         strings.Join(readWrite, ","),
		keyReadOnlyEndpoints: strings.Join(readOnly, ","),
		keyLeader:            p.Leader,
	}
	if p.Schema == "" {
		bag[keySchema] = schemaVersion
	}
	if p.Pending {
		bag[keyPending] = "true"
		bag[keyPendingSince] = p.PendingSince.UTC().Format(time.RFC3339)
	}
	return bag
}

// raise puts the flag up for the Service with this hash; an empty hash keeps the one before.
func (p Peer) raise(hash string, now time.Time) Peer {
	if hash == "" {
		hash = p.ServiceHash
	}
	if !p.Pending || p.ServiceHash != hash || p.PendingSince.IsZero() {
		p.PendingSince = now.UTC().Truncate(time.Second)
	}
	p.Pending, p.ServiceHash = true, hash
	return p
}

// lower takes the flag down.
func (p Peer) lower() Peer {
	p.Pending, p.PendingSince = false, time.Time{}
	return p
}

// UnitPeer is the databag of one unit in the peer relation.
type UnitPeer struct {
	// Node is the name of the Kubernetes node that the unit's pod runs on; a change wakes the leader.
	Node string
}

// ParseUnitPeer reads a unit's databag.
func ParseUnitPeer(bag map[string]string) UnitPeer { return UnitPeer{Node: bag[keyNode]} }

// Bag returns the keys that a unit writes.
func (u UnitPeer) Bag() map[string]string { return map[string]string{keyNode: u.Node} }
