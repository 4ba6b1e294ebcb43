// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation

import (
	"slices"
	"strings"
)

// Address is one way to the database: a read-write and a read-only host:port pair on the same host. It answers only if
// both do.
type Address struct{ ReadWrite, ReadOnly string }

// Host returns the host of the address, without brackets.
func (a Address) Host() string {
	host := a.ReadWrite
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 {
		host = host[:colon]
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// String returns the read-write host:port.
func (a Address) String() string { return a.ReadWrite }

// compareAddress orders addresses as they are published.
func compareAddress(a, b Address) int {
	if c := strings.Compare(a.ReadWrite, b.ReadWrite); c != 0 {
		return c
	}
	return strings.Compare(a.ReadOnly, b.ReadOnly)
}

// PairAddresses makes addresses of two lists of host:port pairs, by host. An entry without a partner is left out: it can
// never answer on both ports. The result is sorted and has no duplicates.
func PairAddresses(readWrite, readOnly []string) []Address {
	partners := make(map[string]string, len(readOnly))
	for _, endpoint := range readOnly {
		partners[Address{ReadWrite: endpoint}.Host()] = endpoint
	}
	var addresses []Address
	for _, endpoint := range readWrite {
		address := Address{ReadWrite: endpoint}
		if partner, ok := partners[address.Host()]; ok {
			address.ReadOnly = partner
			addresses = append(addresses, address)
		}
	}
	slices.SortFunc(addresses, compareAddress)
	return slices.Compact(addresses)
}

// SplitAddresses is the inverse of PairAddresses.
func SplitAddresses(addresses []Address) (readWrite, readOnly []string) {
	for _, address := range addresses {
		readWrite = append(readWrite, address.ReadWrite)
		readOnly = append(readOnly, address.ReadOnly)
	}
	return readWrite, readOnly
}

// BagAddresses returns the addresses that a databag of ours (a client's, or the peer copies) holds. Garbled entries are
// left out.
func BagAddresses(bag map[string]string) []Address {
	bag = Given(bag)
	readWrite, err := parseEndpoints(keyEndpoints, bag[keyEndpoints])
	if err != nil {
		return nil
	}
	readOnly, err := parseEndpoints(keyReadOnlyEndpoints, bag[keyReadOnlyEndpoints])
	if err != nil {
		return nil
	}
	return PairAddresses(readWrite, readOnly)
}
