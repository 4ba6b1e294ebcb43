// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/drawbridge-k8s/drawbridge/relation"
)

var (
	noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	a1   = Address{"10.0.0.1:6446", "10.0.0.1:6447"}
	a2   = Address{"10.0.0.2:6446", "10.0.0.2:6447"}
	a3   = Address{"10.0.0.3:6446", "10.0.0.3:6447"}
)

// Every row of table A.
func TestRight_Rows(t *testing.T) {
	t.Parallel()
	full := Situation{Peer: true, Leader: true, Backend: BackendReady, BackendID: "4", PeerBackend: "4"}
	cases := map[string]struct {
		change func(*Situation)
		want   Right
	}{
		"A1 no peer relation":           {func(s *Situation) { s.Peer = false }, RightObserve},
		"A1 not leader":                 {func(s *Situation) { s.Leader = false }, RightObserve},
		"A1 dying":                      {func(s *Situation) { s.Dying = true }, RightObserve},
		"A1 dying, backend seems gone":  {func(s *Situation) { s.Dying, s.Backend, s.BackendID = true, BackendGone, "" }, RightObserve},
		"A2 gone":                       {func(s *Situation) { s.Backend, s.BackendID = BackendGone, "" }, RightWithdraw},
		"A2 gone, nothing published":    {func(s *Situation) { s.Backend, s.BackendID, s.PeerBackend = BackendGone, "", "" }, RightWithdraw},
		"A2 names another":              {func(s *Situation) { s.BackendID = "9" }, RightWithdraw},
		"A2 names another, incomplete":  {func(s *Situation) { s.BackendID, s.Backend = "9", BackendIncomplete }, RightWithdraw},
		"A2 garbled":                    {func(s *Situation) { s.PeerBackend = "?" }, RightWithdraw},
		"A3":                            {func(*Situation) {}, RightFull},
		"A3 nothing published yet":      {func(s *Situation) { s.PeerBackend = "" }, RightFull},
		"A3 incomplete":                 {func(s *Situation) { s.Backend = BackendIncomplete }, RightFull},
		"A3 unknown: touch nothing":     {func(s *Situation) { s.Backend, s.BackendID = BackendUnknown, "" }, RightFull},
		"A3 unknown, nothing published": {func(s *Situation) { s.Backend, s.BackendID, s.PeerBackend = BackendUnknown, "", "" }, RightFull},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			situation := full
			c.change(&situation)
			require.Equal(t, c.want, DecideRight(situation))
		})
	}
}

// Every row of table B, and that the order of rows counts.
func TestService_Rows(t *testing.T) {
	t.Parallel()
	all := ServiceView{Unread: true, Planned: 0, Invalid: true, Terminating: true, Differs: true, Remembered: true}
	steps := []struct {
		want   ServiceStep
		remove func(*ServiceView)
	}{
		{ServiceUnread, func(v *ServiceView) { v.Unread = false }},
		{ServiceNoUnit, func(v *ServiceView) { v.Planned = 1 }},
		{ServiceInvalid, func(v *ServiceView) { v.Invalid = false }},
		{ServiceTerminating, func(v *ServiceView) { v.Terminating = false }},
		{ServiceAltered, func(v *ServiceView) { v.Remembered = false }},
		{ServiceApply, func(v *ServiceView) { v.Differs = false }},
		{ServiceAsDesired, func(*ServiceView) {}},
	}
	for _, step := range steps {
		require.Equal(t, step.want, DecideService(all))
		step.remove(&all)
	}
}

// observation is a ready backend, settled on a1 with Service hash h1, in which a1 answers.
func observation() Observation {
	return Observation{
		Backend: BackendReady, Peer: Peer{Schema: "1", ServiceHash: "h1", Verified: []Address{a1}, Backend: "4"},
		Hash: "h1", Listed: []Address{a1}, Answered: map[Address]bool{a1: true}, Now: noon,
	}
}

// pending raises the flag of an observation.
func pending(o *Observation) {
	o.Peer.Pending, o.Peer.PendingSince = true, noon.Add(-time.Minute)
}

// Every row of table C from both states of the flag: every edge of the flag.
func TestExposure_RowsAndEdges(t *testing.T) {
	t.Parallel()
	noAnswer := func(o *Observation) { o.Answered = nil }
	cases := []struct {
		name      string
		up        bool // the flag before
		change    func(*Observation)
		row       Row
		flag      bool // the flag after
		deferred  bool
		publishes bool
	}{
		{"C1 gone", false, func(o *Observation) { o.Backend = BackendGone }, RowGone, false, false, false},
		{"C1 gone", true, func(o *Observation) { o.Backend = BackendGone }, RowGone, false, false, false},
		{"C1i incomplete", false, func(o *Observation) { o.Backend = BackendIncomplete }, RowIncomplete, false, false, false},
		{"C1i incomplete", true, func(o *Observation) { o.Backend = BackendIncomplete }, RowIncomplete, true, true, false},
		{"C1i unknown", false, func(o *Observation) { o.Backend = BackendUnknown }, RowIncomplete, false, false, false},
		{"C1i unknown", true, func(o *Observation) { o.Backend = BackendUnknown }, RowIncomplete, true, true, false},
		{"C1i before C2", false, func(o *Observation) { o.Backend, o.Listed = BackendIncomplete, nil }, RowIncomplete, false, false, false},
		{"C2 no address", false, func(o *Observation) { o.Listed = nil }, RowNoAddress, true, true, false},
		{"C2 no address", true, func(o *Observation) { o.Listed = nil }, RowNoAddress, true, true, false},
		{"C3 answers", false, func(*Observation) {}, RowAnswers, false, false, true},
		{"C3 answers", true, func(*Observation) {}, RowAnswers, false, false, true},
		{"C3 another Service that answers at once", false, func(o *Observation) { o.Hash = "h2" }, RowAnswers, false, false, true},
		{"C3 a first address", false, func(o *Observation) { o.Peer.Verified = nil }, RowAnswers, false, false, true},
		{"C4 another Service", false, func(o *Observation) { noAnswer(o); o.Hash = "h2" }, RowPending, true, true, false},
		{"C4 flag up", true, noAnswer, RowPending, true, true, false},
		{"C4 no verified address listed", false, func(o *Observation) { noAnswer(o); o.Listed = []Address{a2} }, RowPending, true, true, false},
		{"C4 nothing verified yet", false, func(o *Observation) { noAnswer(o); o.Peer.Verified = nil }, RowPending, true, true, false},
		{"C5 silent", false, noAnswer, RowSilent, false, true, false},
		{"C5 silent, configuration invalid", false, func(o *Observation) { noAnswer(o); o.Hash = "" }, RowSilent, false, true, false},
		{"C5 one of two listed", false, func(o *Observation) { noAnswer(o); o.Listed = []Address{a1, a2} }, RowSilent, false, true, false},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s, flag up %v", c.name, c.up), func(t *testing.T) {
			t.Parallel()
			o := observation()
			if c.up {
				pending(&o)
			}
			c.change(&o)
			got := o.Decide()
			require.Equal(t, c.row, got.Row)
			require.Equal(t, c.flag, got.Peer.Pending)
			require.Equal(t, c.flag, !got.Peer.PendingSince.IsZero())
			require.Equal(t, c.deferred, got.Deferred)
			require.Equal(t, c.publishes, got.Publish)
			if !c.publishes {
				require.Equal(t, o.Peer.Verified, got.Peer.Verified, "the verified set moves with C3 only")
			}
			// Run twice: with its own outcome as the past, the same observation changes nothing more.
			o.Peer = got.Peer
			if got.Silent != nil {
				o.Silent = got.Silent
			}
			o.Now = o.Now.Add(time.Second)
			again := o.Decide()
			require.Equal(t, got.Peer.Bag(), again.Peer.Bag())
			require.Equal(t, got.Silent, again.Silent)
		})
	}
}

func TestExposure_PendingSince(t *testing.T) {
	t.Parallel()
	o := observation()
	o.Listed = nil
	require.Equal(t, noon, o.Decide().Peer.PendingSince, "set when the flag rises")
	pending(&o)
	require.Equal(t, noon.Add(-time.Minute), o.Decide().Peer.PendingSince, "kept while it is about the same Service")
	o.Hash = "h2"
	raised := o.Decide().Peer
	require.Equal(t, noon, raised.PendingSince, "set anew when the Service changes under it")
	require.Equal(t, "h2", raised.ServiceHash)
	o.Hash = ""
	require.Equal(t, noon.Add(-time.Minute), o.Decide().Peer.PendingSince, "an invalid configuration is no change")
	o.Hash, o.Peer.PendingSince = "h1", time.Time{}
	require.Equal(t, noon, o.Decide().Peer.PendingSince, "set anew when it cannot be read")
}

func TestExposure_Drop(t *testing.T) {
	t.Parallel()
	both := func() Observation {
		o := observation()
		o.Peer.Verified, o.Listed = []Address{a1, a2}, []Address{a1, a2}
		o.InClients = map[Address]bool{a1: true, a2: true}
		return o
	}
	t.Run("silent for a moment is kept", func(t *testing.T) {
		o := both()
		require.Empty(t, o.Suspects())
		got := o.Decide()
		require.Equal(t, []Address{a1, a2}, got.Addresses)
		require.Equal(t, map[string]time.Time{a2.String(): noon}, got.Silent)
	})
	t.Run("silent for long is a suspect, and dropped when looked at again", func(t *testing.T) {
		o := both()
		o.Silent = map[string]time.Time{a2.String(): noon.Add(-DropAfter)}
		require.Equal(t, []Address{a2}, o.Suspects())
		require.Equal(t, []Address{a1, a2}, o.Decide().Addresses, "not without a second look")
		o.Rechecked = map[Address]bool{a2: true}
		got := o.Decide()
		require.Equal(t, []Address{a1}, got.Addresses)
		require.Equal(t, []Address{a1}, got.Peer.Verified)
	})
	t.Run("one answer at the second look keeps it", func(t *testing.T) {
		o := both()
		o.Silent = map[string]time.Time{a2.String(): noon.Add(-DropAfter)}
		o.Answered[a2] = true
		got := o.Decide()
		require.Equal(t, []Address{a1, a2}, got.Addresses)
		require.Empty(t, got.Silent)
	})
	t.Run("just under 30 s is kept", func(t *testing.T) {
		o := both()
		o.Silent = map[string]time.Time{a2.String(): noon.Add(-DropAfter + time.Second)}
		require.Empty(t, o.Suspects())
	})
	t.Run("not while no other answers", func(t *testing.T) {
		o := both()
		o.Answered = nil
		o.Silent = map[string]time.Time{a1.String(): noon.Add(-time.Hour), a2.String(): noon.Add(-time.Hour)}
		require.Empty(t, o.Suspects())
		require.Equal(t, RowSilent, o.Decide().Row)
	})
	t.Run("no longer listed is dropped at once when another answers", func(t *testing.T) {
		o := both()
		o.Listed = []Address{a1}
		got := o.Decide()
		require.Equal(t, []Address{a1}, got.Addresses)
		require.Empty(t, got.Silent, "silence is remembered of listed addresses only")
	})
	t.Run("never probed ones stay away until they answer", func(t *testing.T) {
		o := both()
		o.Listed = append(o.Listed, a3)
		got := o.Decide()
		require.Equal(t, []Address{a1, a2}, got.Addresses)
		require.Contains(t, got.Silent, a3.String())
	})
	t.Run("I1: a verified one that is silent and stands nowhere is not given", func(t *testing.T) {
		o := both()
		o.InClients = nil
		got := o.Decide()
		require.Equal(t, []Address{a1}, got.Addresses)
		require.Equal(t, []Address{a1, a2}, got.Peer.Verified)
	})
}

func TestPeer_WithdrawKeepsBackendWhileCredentialsAreLeft(t *testing.T) {
	t.Parallel()
	peer := Peer{Pending: true, PendingSince: noon, Backend: "4", Verified: []Address{a1}, ServiceHash: "h1"}
	require.Equal(t, Peer{Backend: "4", ServiceHash: "h1"}, peer.Withdraw(true))
	require.Equal(t, Peer{ServiceHash: "h1"}, peer.Withdraw(false))
}

// Every row of the client table.
func TestClient_Rows(t *testing.T) {
	t.Parallel()
	secret := map[string]string{"secret-user": "secret:new", "endpoints": "h:1"}
	plain := map[string]string{"username": "u", "password": "new"}
	asked := Request{Database: "orders"}
	mirror := func(pairs ...string) []map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return []map[string]string{m}
	}
	cases := map[string]struct {
		client Client
		want   ClientStep
	}{
		"D1 not the current secret":      {Client{Own: secret, Foreign: true}, ClientWithdraw},
		"D1 a mirror shows another":      {Client{Own: secret, Mirrors: mirror("secret-user", "secret:old")}, ClientWithdraw},
		"D1 a mirror shows another tls":  {Client{Own: secret, Mirrors: mirror("secret-user", "secret:new", "secret-tls", "secret:t")}, ClientWithdraw},
		"D1 one mirror of two":           {Client{Own: secret, Mirrors: append(mirror("secret-user", "secret:new"), mirror("secret-user", "secret:old")...)}, ClientWithdraw},
		"D1 plain password differs":      {Client{Own: plain, Mirrors: mirror("username", "u", "password", "old")}, ClientWithdraw},
		"D2 mirror the same":             {Client{Own: secret, Mirrors: mirror("secret-user", "secret:new")}, ClientFollow},
		"D2 mirror in the long form":     {Client{Own: secret, Mirrors: mirror("secret-user", "secret://model/new")}, ClientFollow},
		"D2 mirror late":                 {Client{Own: secret, Mirrors: mirror("endpoints", "h:1")}, ClientFollow},
		"D2 request gone bad":            {Client{Own: secret, RequestErr: &BadData{}}, ClientFollow},
		"D2 request taken back":          {Client{Own: plain}, ClientFollow},
		"D3 nothing asked":               {Client{}, ClientSilent},
		"D4 bad request":                 {Client{RequestErr: &BadData{}}, ClientBad},
		"D5 the old is still remembered": {Client{Request: asked, Mirrors: mirror("secret-user", "secret:old")}, ClientHold},
		"D5 plain":                       {Client{Request: asked, Mirrors: mirror("username", "u", "password", "old")}, ClientHold},
		"D6 no mirror":                   {Client{Request: asked}, ClientGrant},
		"D6 mirror without credentials":  {Client{Request: asked, Mirrors: mirror("endpoints", "h:1")}, ClientGrant},
		"D6 left-over endpoints":         {Client{Request: asked, Own: map[string]string{"endpoints": "h:1"}}, ClientGrant},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.client.Decide())
		})
	}
}
