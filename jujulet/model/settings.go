// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
)

// databag is one databag with its version, which grows with each real change. A
// databag that was never written has version 0.
type databag struct {
	version int64
	values  map[string]string
}

func bagKey(relation int, owner string) string { return idKey(uint64(relation)) + owner }

// bagVersion reads a databag's version only.
func (t *txn) bagVersion(relation int, owner string) int64 {
	raw := t.bucket(bucketSettings).Get([]byte(bagKey(relation, owner)))
	if len(raw) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(raw))
}

// bag reads a databag; ok says whether it was ever written.
func (t *txn) bag(relation int, owner string) (b databag, ok bool, err error) {
	raw := t.bucket(bucketSettings).Get([]byte(bagKey(relation, owner)))
	b.values = map[string]string{}
	if len(raw) < 8 {
		return b, false, nil
	}
	b.version = int64(binary.BigEndian.Uint64(raw))
	if err := json.Unmarshal(raw[8:], &b.values); err != nil {
		return b, true, fmt.Errorf("cannot read databag of %q: %w", owner, err)
	}
	return b, true, nil
}

// putBag writes a databag, in a relation across models into both halves.
func (t *txn) putBag(relation int, owner string, b databag) error {
	if err := t.storeBag(relation, owner, b); err != nil {
		return err
	}
	return t.mirrorBag(relation, owner, b)
}

func (t *txn) storeBag(relation int, owner string, b databag) error {
	text, err := json.Marshal(b.values)
	if err != nil {
		return fmt.Errorf("cannot write databag of %q: %w", owner, err)
	}
	raw := binary.BigEndian.AppendUint64(nil, uint64(b.version))
	return t.bucket(bucketSettings).Put([]byte(bagKey(relation, owner)), append(raw, text...))
}

// writeBag applies values ("" deletes) and returns the keys that really changed.
func (t *txn) writeBag(relation int, owner string, values map[string]string) (map[string]string, error) {
	b, _, err := t.bag(relation, owner)
	if err != nil {
		return nil, err
	}
	changed := map[string]string{}
	for k, v := range values {
		old, had := b.values[k]
		switch {
		case v == "" && had:
			delete(b.values, k)
		case v != "" && (!had || old != v):
			b.values[k] = v
		default:
			continue
		}
		changed[k] = v
	}
	if len(changed) == 0 {
		return nil, nil
	}
	b.version++
	return changed, t.putBag(relation, owner, b)
}

// networkKeys are what Juju itself puts into unit databags, once the Service of
// the application has an address.
func networkKeys(a *appDoc) map[string]string {
	if a.Address == "" {
		return nil
	}
	out := map[string]string{"ingress-address": a.Address, "private-address": a.Address}
	if ip, err := netip.ParseAddr(a.Address); err == nil {
		out["egress-subnets"] = netip.PrefixFrom(ip, ip.BitLen()).String()
	}
	return out
}

// enterScope puts a unit into a relation, with a fresh databag.
func (t *txn) enterScope(a *appDoc, unit string, r *relationDoc) error {
	if r.InScope[unit] {
		return nil
	}
	if r.InScope == nil {
		r.InScope = map[string]bool{}
	}
	r.InScope[unit] = true
	b := databag{version: t.bagVersion(r.ID, unit) + 1, values: map[string]string{}}
	maps.Copy(b.values, networkKeys(a))
	if err := t.putBag(r.ID, unit, b); err != nil {
		return err
	}
	if err := t.mirrorScope(r, unit, true); err != nil {
		return err
	}
	return t.putRelation(r)
}

// leaveScope takes a unit out of a relation; its databag stays.
func (t *txn) leaveScope(unit string, r *relationDoc) error {
	if !r.InScope[unit] {
		return nil
	}
	delete(r.InScope, unit)
	if err := t.putRelation(r); err != nil {
		return err
	}
	if err := t.mirrorScope(r, unit, false); err != nil {
		return err
	}
	return t.dropIfEmpty(r)
}
