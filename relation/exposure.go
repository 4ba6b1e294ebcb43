// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation

import (
	"slices"
	"time"
)

// This file is the exposure state machine: what a pass may do (A), what becomes of the Service (B), what becomes of the
// flag and of the verified addresses (C), and what one client gets. All of it are pure functions over plain values; the
// effects between them are the charm's. In each table the first row that fits counts.
//
// A. Rights
//
//	A1  no peer relation, not the leader, or dying          observe; own databag, workload and status, nothing else
//	A2  backend gone, or `backend` names another            withdraw from every client, clear the copies, lower the flag;
//	                                                        skip C unless the backend is gone
//	A3  else                                                everything
//
// B. Service
//
//	B0  the Service cannot be read                          nothing is applied; the exposure is incomplete
//	B1  no unit planned                                     nothing is applied
//	B2  configuration invalid                               nothing is applied; blocked
//	B3  terminating                                         nothing is applied; it counts as no address
//	B4  missing, or different in what is ours               apply, in every hook
//	B4a different, as remembered after an accepted apply    nothing is applied; the field is named
//	B5  as desired                                          nothing is applied
//
// C. Exposure (L listed addresses, R those of L that answer, V the verified ones)
//
//	C1  backend gone                                        flag down
//	C1i backend incomplete or unknown                       flag and databags as they are
//	C2  L empty                                             flag up; deferred
//	C3  R not empty                                         flag down; V := R + those of V in L not silent for long; publish
//	C4  R empty, and flag up, or another Service than that
//	    of `service-hash`, or no address of V in L          flag up; deferred
//	C5  R empty                                             databags untouched; silence remembered; deferred
//
// Flag: down -> up by C2 and C4; up -> down by C1, C3 and A2; every other row leaves it.
//
// Client (one relation, only where A3 holds)
//
//	D1  holds credentials that are not the current ones,
//	    or not of the request that it makes now (v1),
//	    or one of its units' mirrors shows others           withdraw
//	D2  holds credentials                                   endpoints follow C3
//	D3  nothing asked                                       nothing is written
//	D4  the request cannot be served                        nothing is written; blocked by relation id
//	D5  a mirror still shows credentials                    wait for it to go
//	D6  else                                                credentials and endpoints, in one flush, with C3

// DropAfter is how long a verified address that is still listed may be silent before it is dropped.
const DropAfter = 30 * time.Second

// BackendState says what is known of the backend relation.
type BackendState string

// The states of the backend.
const (
	BackendReady      BackendState = "ready"      // related, readable, and a direct session opens
	BackendIncomplete BackendState = "incomplete" // related, but not that
	BackendUnknown    BackendState = "unknown"    // Juju knows a relation that this unit does not see: touch nothing
	BackendGone       BackendState = "gone"       // being broken, or not there and none to come
)

// Right is a row of table A.
type Right string

// The rows of table A.
const (
	RightObserve  Right = "A1"
	RightWithdraw Right = "A2"
	RightFull     Right = "A3"
)

// Situation is what the rights depend on.
type Situation struct {
	// Peer says whether the peer relation is there; Dying whether Juju lists this unit as dying.
	Peer, Leader, Dying bool
	Backend             BackendState
	// BackendID is the id of the backend relation that counts, "" when there is none; PeerBackend the key `backend`.
	BackendID, PeerBackend string
}

// DecideRight is table A.
func DecideRight(s Situation) Right {
	switch {
	case !s.Peer || !s.Leader || s.Dying:
		return RightObserve
	case s.Backend == BackendGone:
		return RightWithdraw
	case s.PeerBackend != "" && s.BackendID != "" && s.PeerBackend != s.BackendID:
		return RightWithdraw
	}
	return RightFull
}

// ServiceStep is a row of table B.
type ServiceStep string

// The rows of table B.
const (
	ServiceUnread      ServiceStep = "B0"
	ServiceNoUnit      ServiceStep = "B1"
	ServiceInvalid     ServiceStep = "B2"
	ServiceTerminating ServiceStep = "B3"
	ServiceApply       ServiceStep = "B4"
	ServiceAltered     ServiceStep = "B4a"
	ServiceAsDesired   ServiceStep = "B5"
)

// ServiceView is what the step for the Service depends on.
type ServiceView struct {
	Unread      bool
	Planned     int
	Invalid     bool
	Terminating bool
	// Differs says that the live Service is missing or differs in what is ours; Remembered that it differs exactly as it
	// did after an apply that was accepted.
	Differs, Remembered bool
}

// DecideService is table B.
func DecideService(v ServiceView) ServiceStep {
	switch {
	case v.Unread:
		return ServiceUnread
	case v.Planned == 0:
		return ServiceNoUnit
	case v.Invalid:
		return ServiceInvalid
	case v.Terminating:
		return ServiceTerminating
	case v.Differs && v.Remembered:
		return ServiceAltered
	case v.Differs:
		return ServiceApply
	}
	return ServiceAsDesired
}

// Row is a row of table C.
type Row string

// The rows of table C.
const (
	RowGone       Row = "C1"
	RowIncomplete Row = "C1i"
	RowNoAddress  Row = "C2"
	RowAnswers    Row = "C3"
	RowPending    Row = "C4"
	RowSilent     Row = "C5"
)

// Observation is what the exposure depends on.
type Observation struct {
	Backend BackendState
	Peer    Peer
	// Hash is the content hash of the desired Service; "" while the configuration is invalid, and then no difference.
	Hash string
	// Listed is the address set that Kubernetes reports, Answered what of it answered in this hook.
	Listed   []Address
	Answered map[Address]bool
	// Rechecked are the addresses of Suspects that were probed again in this hook.
	Rechecked map[Address]bool
	// InClients are the addresses that stand in some client's databag.
	InClients map[Address]bool
	// Silent says since when an address has been silent, by the read-write host:port.
	Silent map[string]time.Time
	Now    time.Time
}

// Exposure is what becomes of it.
type Exposure struct {
	Row  Row
	Peer Peer
	// Publish says that clients may be written; Addresses are what each of them gets then.
	Publish   bool
	Addresses []Address
	// Deferred says that the exposure is left pending.
	Deferred bool
	// Silent is the silence to remember; nil if the pass did not probe and the memory stays as it is.
	Silent map[string]time.Time
}

// Probes reports whether the pass has anything to probe: a ready backend and a listed address.
func (o Observation) Probes() bool { return o.Backend == BackendReady && len(o.Listed) > 0 }

// Suspects returns the verified addresses that are about to be dropped for silence while another answers. They are to be
// probed again, a few times, before Decide is asked; one answer keeps them.
func (o Observation) Suspects() []Address {
	if !o.Probes() || !o.anyAnswer() {
		return nil
	}
	var suspects []Address
	for _, address := range o.Peer.Verified {
		if slices.Contains(o.Listed, address) && !o.Answered[address] && o.silentFor(address) >= DropAfter {
			suspects = append(suspects, address)
		}
	}
	return suspects
}

// Decide is table C.
func (o Observation) Decide() Exposure {
	switch {
	case o.Backend == BackendGone:
		return Exposure{Row: RowGone, Peer: o.Peer.lower()}
	case o.Backend != BackendReady:
		return Exposure{Row: RowIncomplete, Peer: o.Peer, Deferred: o.Peer.Pending}
	case len(o.Listed) == 0:
		return Exposure{Row: RowNoAddress, Peer: o.Peer.raise(o.Hash, o.Now), Deferred: true, Silent: o.silence()}
	case o.anyAnswer():
		return o.publish()
	case o.Peer.Pending || o.Hash != "" && o.Hash != o.Peer.ServiceHash || !o.verifiedListed():
		return Exposure{Row: RowPending, Peer: o.Peer.raise(o.Hash, o.Now), Deferred: true, Silent: o.silence()}
	}
	return Exposure{Row: RowSilent, Peer: o.Peer, Deferred: true, Silent: o.silence()}
}

// publish is row C3.
func (o Observation) publish() Exposure {
	var verified, addresses []Address
	for _, address := range o.Listed {
		keep := slices.Contains(o.Peer.Verified, address) && (o.silentFor(address) < DropAfter || !o.Rechecked[address])
		if !o.Answered[address] && !keep {
			continue
		}
		verified = append(verified, address)
		if o.Answered[address] || o.InClients[address] {
			addresses = append(addresses, address)
		}
	}
	peer := o.Peer.lower()
	peer.Verified = verified
	if o.Hash != "" {
		peer.ServiceHash = o.Hash
	}
	return Exposure{Row: RowAnswers, Peer: peer, Publish: true, Addresses: addresses, Silent: o.silence()}
}

// anyAnswer reports whether one of the listed addresses answers.
func (o Observation) anyAnswer() bool {
	return slices.ContainsFunc(o.Listed, func(a Address) bool { return o.Answered[a] })
}

// verifiedListed reports whether one of the verified addresses is listed still.
func (o Observation) verifiedListed() bool {
	return slices.ContainsFunc(o.Peer.Verified, func(a Address) bool { return slices.Contains(o.Listed, a) })
}

// silentFor is how long an address that does not answer now has been silent.
func (o Observation) silentFor(address Address) time.Duration {
	since, ok := o.Silent[address.String()]
	if !ok {
		return 0
	}
	return o.Now.Sub(since)
}

// silence is the memory after this pass: listed addresses only, those that answered taken out, those that fell silent
// now put in.
func (o Observation) silence() map[string]time.Time {
	silent := map[string]time.Time{}
	for _, address := range o.Listed {
		if o.Answered[address] {
			continue
		}
		since, ok := o.Silent[address.String()]
		if !ok {
			since = o.Now.UTC().Truncate(time.Second)
		}
		silent[address.String()] = since
	}
	return silent
}

// Withdraw is what row A2 makes of the peer databag. Backend stays as long as some client holds credentials.
func (p Peer) Withdraw(credentialsLeft bool) Peer {
	p = p.lower()
	p.Verified = nil
	if !credentialsLeft {
		p.Backend = ""
	}
	return p
}
