// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package scenario

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/tests/world"
)

// The tests of this file are cases of relation data, of secrets and of relations
// that end.

const (
	backendUnit = world.Backend + "/0"
	clientUnit  = world.Client + "/0"
)

// backendRelation and clientRelation are the numbers of Standard's relations.
func backendRelation(w *world.World) int {
	return w.Relation(world.Gateway+":backend-database", world.Backend+":database")
}

func clientRelation(w *world.World) int {
	return w.Relation(world.Gateway+":database", world.Client+":database")
}

// passwordOf is the password that a client was given in its secret.
func passwordOf(t *testing.T, w *world.World, client string) string {
	t.Helper()
	id := strings.TrimPrefix(w.Published(client)["secret-user"], "secret:")
	require.NotEmpty(t, id)
	secret, err := w.Model.ReadSecret(t.Context(), client+"/0", model.SecretRead{ID: id, Peek: true})
	require.NoError(t, err)
	text, err := base64.StdEncoding.DecodeString(secret.Content["password"])
	require.NoError(t, err)
	return string(text)
}

// requirePassword requires that the backend knows the user that a client was given.
func requirePassword(t *testing.T, w *world.World, client string, relation int) {
	t.Helper()
	user := "relation-" + strconv.Itoa(backendRelation(w)) + "-" + strconv.Itoa(relation)
	require.Contains(t, w.SQL.Users, user)
	require.Equal(t, w.SQL.Users[user], passwordOf(t, w, client))
}

func TestField_125_SecretNotGrantedYet(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	refused := 0
	w.Tools = func(unit string, call hooktool.Call, next world.ToolRunner) ([]byte, error) {
		if call.Tool == "secret-get" && strings.HasPrefix(unit, world.Gateway) && refused < 3 {
			refused++
			return nil, &hooktool.Error{Tool: call.Tool, Code: 1, Message: "permission denied"}
		}
		return next()
	}
	w.Deploy(world.Backend, world.Backend, 1, nil)
	w.Deploy(world.Gateway, world.Gateway, 1, nil)
	w.Integrate(world.Gateway+":backend-database", world.Backend+":database")
	for refused < 1 {
		noneFailed(t, w.Settle())
		noneFailed(t, w.Round())
	}
	for refused < 3 {
		require.Contains(t, w.Status(world.Gateway+"/0"), "waiting for "+world.Backend+" on backend-database: its credentials")
		noneFailed(t, w.Round())
	}
	noneFailed(t, w.Round())
	require.Contains(t, w.Status(world.Gateway+"/0"), "active ")
}

func TestField_127_136_BrokenWhileKubernetesIsDown(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	require.Len(t, secretsOf(t, w, w.Leader()), 1)
	require.Len(t, w.SQL.Users, 1)
	w.Fault(func(*http.Request) error { return errors.New("connection refused") })
	w.SQL.Err = errors.New("the backend is restarting")
	w.RemoveRelation(world.Gateway+":database", world.Client+":database")
	ran := w.Settle()
	noneFailed(t, ran)
	require.Contains(t, ran, world.Gateway+"/0 database-relation-broken")
	w.Fault(nil)
	w.SQL.Err = nil
	w.Round()
	require.Empty(t, w.SQL.Users, "cleaned up later, from what was remembered")
	require.Empty(t, secretsOf(t, w, w.Leader()), "no secret is owned for the relation")
	w.Quiet(1)
}

func TestField_128_NoRevisionForTheSameContent(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	for range 50 {
		w.Notice(w.Leader())
	}
	w.Config("expose-external", "loadbalancer")
	w.Settle()
	w.Ingress(lbFirst)
	w.Answer(ports(lbFirst)...)
	w.Notice(w.Leader())
	require.Equal(t, lbFirst+":6446", w.Endpoints())
	for _, secret := range secretsOf(t, w, w.Leader()) {
		require.Equal(t, 1, secret.Latest)
	}
}

func TestField_130_133_SecretHooksWithoutALabel(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	mark := w.Mark()
	secret := secretsOf(t, w, backendUnit)[0].ID
	require.NoError(t, w.Model.Fire(w.Leader(), "secret-changed", map[string]string{"secret": secret}))
	noneFailed(t, w.Settle())
	own := secretsOf(t, w, w.Leader())[0].ID
	for _, args := range []map[string]string{
		{"secret": own, "revision": "1"}, {"secret": secret, "revision": "1"},
		{"secret": own, "revision": "1", "label": "of something else"},
	} {
		require.NoError(t, w.Model.Fire(w.Leader(), "secret-remove", args))
		noneFailed(t, w.Settle())
	}
	require.Empty(t, w.Changes(mark))
	require.NotEmpty(t, passwordOf(t, w, world.Client))
}

func TestField_131_InfoAfterAWriteInOneHook(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	seen := 0
	w.Handlers[world.Client] = func(ctx context.Context, h *hooks.Hook) error {
		id, err := h.Tools.SecretAdd(ctx, hooktool.Secret{Label: "own", Content: map[string]string{"a-key": "1"}})
		if err != nil {
			return err
		}
		if err := h.Tools.SecretSet(ctx, id, map[string]string{"a-key": "2"}); err != nil {
			return err
		}
		content, err := h.Tools.SecretGet(ctx, hooktool.SecretRef{Label: "own", Peek: true})
		if err != nil {
			return err
		}
		require.Equal(t, "2", content["a-key"])
		info, err := h.Tools.SecretInfo(ctx, hooktool.SecretRef{ID: id})
		require.NoError(t, err)
		require.Equal(t, "own", info.Label)
		seen++
		return h.Tools.SecretRemove(ctx, id)
	}
	noneFailed(t, w.Hook(clientUnit, "update-status"))
	require.Equal(t, 1, seen)
}

func TestField_134_KilledAfterTheUserWasMade(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	fails := 3
	w.Dispatch = func(unit, _ string, run func() int) (int, bool) {
		if !strings.HasPrefix(unit, world.Gateway) || fails == 0 {
			return 0, false
		}
		before := len(w.SQL.Users)
		exit := run()
		if len(w.SQL.Users) == before && fails == 3 {
			return exit, true
		}
		fails--
		return 1, true // the user is there, what the hook wrote is not
	}
	w.Standard(1)
	require.Less(t, fails, 3)
	for range 10 {
		w.Clock.Add(10 * time.Minute)
		w.Settle()
	}
	require.Zero(t, fails)
	requirePassword(t, w, world.Client, clientRelation(w))
	require.Len(t, w.SQL.Users, 1)
	w.Quiet(1)
}

func TestField_137_RelationThatIsGoing(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	w.Deploy(world.Client, "second", 1, map[string]string{"database": "second"})
	w.Integrate(world.Gateway+":database", "second:database")
	w.Settle()
	going := "database:" + strconv.Itoa(clientRelation(w))
	refused := 0
	w.Tools = func(unit string, call hooktool.Call, next world.ToolRunner) ([]byte, error) {
		if call.Tool == "relation-set" && strings.Contains(strings.Join(call.Args, " "), going) {
			refused++
			return nil, &hooktool.Error{Tool: call.Tool, Code: 1, Message: "relation " + going + " not found"}
		}
		return next()
	}
	w.Ingress(lbSecond)
	w.Answer(ports(lbSecond)...)
	noneFailed(t, w.Notice(w.Leader()))
	require.NotZero(t, refused)
	require.Equal(t, lbSecond+":6446", w.Published("second")["endpoints"], "the others are served")
}

func TestField_139_RemoteDataInBroken(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	given := w.Published(world.Client)
	var read map[string]string
	w.Handlers[world.Client] = func(ctx context.Context, h *hooks.Hook) error {
		if h.Event.Kind != hooks.RelationBroken {
			return nil
		}
		var err error
		read, err = h.Tools.RelationGetApp(ctx, h.Event.Relation(), h.Event.RemoteApp)
		return err
	}
	w.RemoveRelation(world.Gateway+":database", world.Client+":database")
	noneFailed(t, w.Settle())
	require.Equal(t, given["endpoints"], read["endpoints"])
	require.NotEmpty(t, read["database"])
}

func TestField_140_RelatedAgainAfterHalfACleanUp(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Standard(1)
	old := w.Published(world.Client)["secret-user"]
	w.SQL.Err = errors.New("going down") // nothing is dropped on the way out
	w.RemoveRelation(world.Gateway+":backend-database", world.Backend+":database")
	noneFailed(t, w.Settle())
	require.Empty(t, w.Published(world.Client)["secret-user"])
	require.NotEmpty(t, w.SQL.Users, "left behind")
	w.SQL.Err = nil
	w.Integrate(world.Gateway+":backend-database", world.Backend+":database")
	noneFailed(t, w.Settle())
	w.Round()
	require.NotEqual(t, old, w.Published(world.Client)["secret-user"])
	requirePassword(t, w, world.Client, clientRelation(w))
	require.Equal(t, world.InModel+":6446", w.Endpoints())

	// The same with a relation of the same number and a user of the same name left over.
	w.SQL.Forget()
	w.SQL.Users["relation-"+strconv.Itoa(backendRelation(w))+"-"+strconv.Itoa(clientRelation(w))] = "of another time"
	w.Action(w.Leader(), "reconcile", nil)
	requirePassword(t, w, world.Client, clientRelation(w))
}

// TestField_22_ClientOfAnotherModel is a client through an offer.
func TestField_22_ClientOfAnotherModel(t *testing.T) {
	t.Parallel()
	w := world.New(t, world.Options{})
	w.Tools = func(unit string, call hooktool.Call, next world.ToolRunner) ([]byte, error) {
		if call.Tool == "relation-model-get" && strings.HasPrefix(unit, world.Gateway) {
			return []byte(`{"uuid":"7c4ec5bb-a2b8-4ef1-8d6f-000000000000"}`), nil
		}
		return next()
	}
	w.Standard(1)
	require.Contains(t, w.Status(w.Leader()), "is in another model and cannot resolve names of this cluster")
	w.Config("expose-external", "loadbalancer")
	w.Settle()
	w.Ingress(lbFirst)
	w.Answer(ports(lbFirst)...)
	w.Notice(w.Leader())
	require.NotContains(t, w.Status(w.Leader()), "another model")
	for key, value := range w.Published(world.Client) {
		require.NotContains(t, value, ".svc", key)
	}
}

// TestField_92_NameUsedAgain removes the application and deploys it with another type.
func TestField_92_NameUsedAgain(t *testing.T) {
	t.Parallel()
	w := published(t, 1)
	uid := w.Live().UID
	require.NoError(t, w.Model.RemoveApplication(world.Gateway))
	noneFailed(t, w.Settle())
	require.Nil(t, w.Live())
	w.Deploy(world.Gateway, world.Gateway, 1, map[string]string{"expose-external": "nodeport"})
	w.Integrate(world.Gateway+":backend-database", world.Backend+":database")
	w.Integrate(world.Gateway+":database", world.Client+":database")
	noneFailed(t, w.Settle())
	require.NotEqual(t, uid, w.Live().UID)
	w.Answer(w.NodePorts()...)
	w.Notice(world.Gateway + "/0")
	require.Equal(t, w.NodeEndpoints("mysql-rw", "node-0"), w.Endpoints())
}
