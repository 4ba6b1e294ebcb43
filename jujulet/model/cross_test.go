// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// twoModels has a database in one model and its client in another.
func twoModels(t *testing.T) (offerer, consumer *fixture) {
	t.Helper()
	offerer = newModel(t)
	m, err := offerer.Store().AddModel("apps", nil)
	require.NoError(t, err)
	consumer = &fixture{t: t, Model: m, path: offerer.path}
	offerer.deploy("db", "provides:\n  database: {interface: sql}\n  logs: {interface: log, limit: 1}\n", 1)
	consumer.deploy("client", "requires:\n  database: {interface: sql}\n", 2)
	consumer.deploy("other", "requires:\n  database: {interface: sql}\n", 1)
	return offerer, consumer
}

// related offers, consumes and integrates, and enters all units.
func relatedModels(t *testing.T) (offerer, consumer *fixture, proxy string) {
	t.Helper()
	offerer, consumer = twoModels(t)
	_, err := offerer.Offer("db", []string{"database"}, "")
	require.NoError(t, err)
	alias, err := consumer.Consume("dev", "db", "mysql")
	require.NoError(t, err)
	require.Equal(t, "mysql", alias)
	id, err := consumer.Integrate("client", "mysql")
	require.NoError(t, err)
	require.Zero(t, id)
	for _, unit := range []string{"client/0", "client/1"} {
		require.NoError(t, consumer.Save(t.Context(), unit, Save{Enter: []int{0}}))
	}
	require.NoError(t, offerer.Save(t.Context(), "db/0", Save{Enter: []int{0}}))
	snap, err := offerer.Snapshot(t.Context(), "db/0")
	require.NoError(t, err)
	return offerer, consumer, snap.Relations[0].RemoteApp
}

func (f *fixture) snap(unit string) *Snapshot {
	f.t.Helper()
	s, err := f.Snapshot(f.t.Context(), unit)
	require.NoError(f.t, err)
	return s
}

func (f *fixture) lead(unit string) {
	f.t.Helper()
	_, err := f.ClaimLeadership(f.t.Context(), unit)
	require.NoError(f.t, err)
}

func TestCross_BothSidesSeeEachOther(t *testing.T) {
	offerer, consumer, proxy := relatedModels(t)
	require.Regexp(t, `^remote-[0-9a-f]{32}$`, proxy)
	require.Contains(t, offerer.snap("db/0").Relations[0].Members, proxy+"/1")
	require.Equal(t, "mysql", consumer.snap("client/0").Relations[0].RemoteApp)
	require.Len(t, consumer.snap("client/0").Relations[0].Members, 1)

	// What is written on one side is read, and wakes, on the other.
	consumer.lead("client/0")
	before := offerer.snap("db/0")
	_, err := consumer.CommitHook(t.Context(), "client/0", HookCommit{Relations: []RelationWrite{
		{Relation: 0, Values: map[string]string{"u": "1"}}, {Relation: 0, App: true, Values: map[string]string{"a": "2"}},
	}})
	require.NoError(t, err)
	after := offerer.snap("db/0")
	require.Greater(t, after.Generation, before.Generation)
	require.Greater(t, after.Relations[0].AppVersion, before.Relations[0].AppVersion)
	for owner, want := range map[string]map[string]string{proxy: {"a": "2"}, proxy + "/0": {"u": "1"}} {
		bag, err := offerer.ReadBag(t.Context(), "db/0", 0, owner)
		require.NoError(t, err)
		require.Equal(t, want, bag)
	}
	_, err = offerer.CommitHook(t.Context(), "db/0", HookCommit{Relations: []RelationWrite{{Relation: 0, Values: map[string]string{"x": "y"}}}})
	require.NoError(t, err)
	bag, err := consumer.ReadBag(t.Context(), "client/1", 0, "mysql/0")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"x": "y"}, bag)
	_, err = consumer.ReadBag(t.Context(), "other/0", 0, "mysql/0")
	require.EqualError(t, err, "permission denied")

	// What the hooks ask about it.
	info, err := consumer.ContextInfo(t.Context(), "client/0")
	require.NoError(t, err)
	require.Equal(t, offerer.Info().UUID, info.Relations[0].Model)
	goal, err := consumer.GoalState(t.Context(), "client/0")
	require.NoError(t, err)
	require.Contains(t, goal.Relations["database"], "jujulet:admin/dev.db")
	goal, err = offerer.GoalState(t.Context(), "db/0")
	require.NoError(t, err)
	require.Empty(t, goal.Relations, "Juju shows no consumer to what it consumes")
}

func TestCross_Removal(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(offerer, consumer *fixture) error
	}{
		{"relation", func(_, consumer *fixture) error { return consumer.RemoveRelation("client", "mysql:database") }},
		{"saas", func(_, consumer *fixture) error { return consumer.RemoveSAAS("mysql") }},
		{"offer", func(offerer, _ *fixture) error { return offerer.RemoveOffer("db", true) }},
		{"client", func(_, consumer *fixture) error { return consumer.RemoveApplication("client") }},
		{"database", func(offerer, _ *fixture) error { return offerer.RemoveApplicationWith("db", RemoveArgs{Force: true}) }},
		{"consuming model", func(_, consumer *fixture) error { return consumer.Destroy(DestroyModelArgs{}) }},
		{"offering model", func(offerer, _ *fixture) error { return offerer.Destroy(DestroyModelArgs{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			offerer, consumer, _ := relatedModels(t)
			require.NoError(t, c.end(offerer, consumer))
			require.Equal(t, Dying, offerer.snap("db/0").Relations[0].Life)
			require.Equal(t, Dying, consumer.snap("client/0").Relations[0].Life)
			// Each unit leaves after its own relation-broken; the last one ends both halves.
			require.NoError(t, consumer.Save(t.Context(), "client/0", Save{Leave: []int{0}}))
			require.NoError(t, offerer.Save(t.Context(), "db/0", Save{Leave: []int{0}}))
			require.Empty(t, consumer.snap("client/1").Relations[0].Members, "db/0 has gone")
			require.Contains(t, offerer.snap("db/0").Relations, 0)
			require.NoError(t, consumer.Save(t.Context(), "client/1", Save{Leave: []int{0}}))
			require.Empty(t, offerer.snap("db/0").Relations)
			require.Empty(t, consumer.snap("client/0").Relations)
			require.NoError(t, offerer.view(func(t *txn) error {
				require.Empty(offerer.t, keys(t, bucketRemotes, ""), "the proxy has gone with its last relation")
				require.Empty(offerer.t, keys(t, bucketSettings, ""))
				return nil
			}))
		})
	}
}

func TestCross_Secrets(t *testing.T) {
	offerer, consumer, proxy := relatedModels(t)
	offerer.lead("db/0")
	zero, label := 0, "creds"
	_, err := offerer.CommitHook(t.Context(), "db/0", HookCommit{
		Secrets: []SecretOp{
			{Op: "add", ID: "cvabc000000000000000", Owner: "application", Content: map[string]string{"pass": "eA=="}},
		},
		Relations: []RelationWrite{{Relation: 0, App: true, Values: map[string]string{"secret-user": "secret:cvabc000000000000000"}}},
	})
	require.NoError(t, err)
	bag, err := consumer.ReadBag(t.Context(), "client/0", 0, "mysql")
	require.NoError(t, err)
	require.Equal(t, "secret://"+offerer.Info().UUID+"/cvabc000000000000000", bag["secret-user"])
	id := SecretID(bag["secret-user"])
	_, err = consumer.ReadSecret(t.Context(), "client/0", SecretRead{ID: id})
	require.EqualError(t, err, "permission denied")
	_, err = offerer.CommitHook(t.Context(), "db/0", HookCommit{Secrets: []SecretOp{{Op: "grant", ID: id, Relation: &zero}}})
	require.NoError(t, err)
	v, err := consumer.ReadSecret(t.Context(), "client/0", SecretRead{ID: id, Label: label})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"pass": "eA=="}, v.Content)
	_, err = consumer.ReadSecret(t.Context(), "other/0", SecretRead{ID: id})
	require.ErrorContains(t, err, "not found", "it is in no relation with the owner")

	// A new revision wakes the reader in its own model.
	before := consumer.snap("client/0")
	require.Equal(t, SecretSnapshot{Latest: 1, Label: label}, before.Secrets[id])
	_, err = offerer.CommitHook(t.Context(), "db/0", HookCommit{Secrets: []SecretOp{{Op: "set", ID: id, Content: map[string]string{"pass": "eQ=="}}}})
	require.NoError(t, err)
	after := consumer.snap("client/0")
	require.Equal(t, 2, after.Secrets[id].Latest)
	require.Greater(t, after.Generation, before.Generation)
	v, err = consumer.ReadSecret(t.Context(), "client/0", SecretRead{Label: label})
	require.NoError(t, err)
	require.Equal(t, 1, v.Revision)
	v, err = consumer.ReadSecret(t.Context(), "client/0", SecretRead{Label: label, Refresh: true})
	require.NoError(t, err)
	require.Equal(t, 2, v.Revision)

	// What Juju cannot grant across models.
	unit := SecretOp{Op: "grant", ID: id, Relation: &zero, Subject: proxy + "/0"}
	_, err = offerer.CommitHook(t.Context(), "db/0", HookCommit{Secrets: []SecretOp{unit}})
	require.EqualError(t, err, "sharing secrets with a unit across a cross model relation not supported")
	consumer.lead("client/0")
	_, err = consumer.CommitHook(t.Context(), "client/0", HookCommit{Secrets: []SecretOp{
		{Op: "add", ID: "cvdef000000000000000", Owner: "application", Content: map[string]string{"pass": "eA=="}},
		{Op: "grant", ID: "cvdef000000000000000", Relation: &zero},
	}})
	require.EqualError(t, err, "sharing consumer secrets across a cross model relation not supported")

	// The grant goes with the relation.
	require.NoError(t, consumer.RemoveSAAS("mysql"))
	for _, u := range []string{"client/0", "client/1"} {
		require.NoError(t, consumer.Save(t.Context(), u, Save{Leave: []int{0}}))
	}
	require.NoError(t, offerer.Save(t.Context(), "db/0", Save{Leave: []int{0}}))
	_, err = consumer.ReadSecret(t.Context(), "client/0", SecretRead{ID: id})
	require.ErrorContains(t, err, "not found")
}

func TestCross_Status(t *testing.T) {
	offerer, consumer, proxy := relatedModels(t)
	s, err := consumer.Status()
	require.NoError(t, err)
	require.Equal(t, "jujulet:admin/dev.db", s.Remotes["mysql"].URL)
	require.Equal(t, map[string][]string{"database": {"client"}}, s.Remotes["mysql"].Relations)
	require.Equal(t, "waiting", s.Remotes["mysql"].Status.Status)
	require.True(t, s.Relations[0].Cross)
	s, err = offerer.Status()
	require.NoError(t, err)
	require.True(t, s.Relations[0].Proxy)
	require.Equal(t, []OfferConnection{{
		Model: consumer.Info().UUID, Relation: 0, Endpoint: "database", Status: "joined", Since: s.Offers["db"].Connections[0].Since,
	}}, s.Offers["db"].Connections)
	require.NoError(t, offerer.RemoveOffer("db", true))
	s, err = consumer.Status()
	require.NoError(t, err)
	require.Equal(t, "terminated", s.Remotes["mysql"].Status.Status)
	require.NotEmpty(t, proxy)

	// All of it is kept.
	require.NoError(t, offerer.Close())
	store, err := OpenStore(offerer.path, Options{NoSync: true})
	require.NoError(t, err)
	defer store.Close()
	again, err := store.Model("apps")
	require.NoError(t, err)
	s, err = again.Status()
	require.NoError(t, err)
	require.Equal(t, "jujulet:admin/dev.db", s.Remotes["mysql"].URL)
}

func TestCross_Refusals(t *testing.T) {
	offerer, consumer := twoModels(t)
	try := func(want string, err error) {
		t.Helper()
		require.EqualError(t, err, want)
	}
	fail := func(_ any, err error) error { return err }
	try(`application "nothing" not found`, fail(offerer.Offer("nothing", []string{"database"}, "")))
	try(`application "db" has no "nothing" relation`, fail(offerer.Offer("db", []string{"nothing"}, "")))
	try(`application offer "admin/dev.db" not found`, fail(consumer.Consume("dev", "db", "")))
	try(`model "nowhere" not found`, fail(consumer.Consume("nowhere", "db", "")))
	_, err := offerer.Offer("db", []string{"logs", "database"}, "")
	require.NoError(t, err)
	try("cannot consume application offer \"admin/dev.db\": it is of this model; integrate its application", fail(offerer.Consume("dev", "db", "mine")))
	try(`cannot add saas application "client": application already exists`, fail(consumer.Consume("dev", "db", "client")))
	_, err = consumer.Consume("dev", "db", "")
	require.NoError(t, err)
	_, err = consumer.Consume("dev", "db", "")
	require.NoError(t, err, "again is no error")
	_, err = offerer.Offer("db", []string{"logs"}, "second")
	require.NoError(t, err)
	try(`saas application called "db" from a different model already exists`, fail(consumer.Consume("dev", "second", "db")))
	try(`saas application "db" has no "nothing" relation`, fail(consumer.Integrate("client", "db:nothing")))
	_, err = consumer.Integrate("client", "db")
	require.NoError(t, err)
	_, err = consumer.Integrate("client", "db")
	require.ErrorContains(t, err, "relation already exists")
	try(`cannot destroy application "db": application is used by 2 offers`, offerer.RemoveApplication("db"))
	try(`cannot delete application offer "db": offer has 1 relation`, offerer.RemoveOffer("db", false))
	try(`saas application "nothing" not found`, consumer.RemoveSAAS("nothing"))
	// The offering side's limit counts.
	for i, name := range []string{"a", "b"} {
		consumer.deploy(name, "requires:\n  logs: {interface: log}\n", 1)
		_, err := consumer.Integrate(name, "db:logs")
		if i == 0 {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "would exceed its maximum relation limit of 1")
		}
	}
	c, err := ReadCharm(writeCharm(t, map[string]string{"metadata.yaml": "name: db\nsummary: s\ndescription: d\n", "dispatch": "#!/bin/sh\n"}))
	require.NoError(t, err)
	require.ErrorContains(t, consumer.Deploy(DeployArgs{Charm: c}), "saas application with same name already exists")
}
