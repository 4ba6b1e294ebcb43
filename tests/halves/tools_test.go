// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package halves

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// hostile are values that a quoting of any kind may break.
var hostile = map[string]string{
	"plain": "v", "yes": "yes", "tilde": "~", "null": "null", "octal": "0644", "float": "1.0", "space": " a ", "dash": "-x",
	"quote": `"'\`, "lines": "a\nb\r\n", "next-line": "a\u0085\u2028b", "brace": "{{ x }}", "emoji": "😀", "json": `{"a": ["b"]}`,
}

// ways are the two ways from a hook to the tools.
var ways = map[string]connector{"socket": overSocket, "exec": overTools}

func TestTools_Reading(t *testing.T) {
	t.Parallel()
	for name, connect := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				config, err := c.ConfigGet(ctx)
				require.NoError(t, err)
				require.Equal(t, map[string]any{"text": "x y", "number": 1000000.0, "flag": true}, config)
				leader, err := c.IsLeader(ctx)
				require.NoError(t, err)
				require.True(t, leader)
				goal, err := c.GoalState(ctx)
				require.NoError(t, err)
				require.Contains(t, goal.Units, "db/0")
				require.Contains(t, goal.Relations["database"], "app")
				require.Contains(t, goal.Relations["database"], "app/0")
				readRelations(ctx, t, c)
				bind, ingress, err := c.NetworkGet(ctx, "database")
				require.NoError(t, err)
				require.Equal(t, "10.1.0.2", bind)
				require.NotEmpty(t, ingress)
				require.Positive(t, c.Calls())
			})
		})
	}
}

func readRelations(ctx context.Context, t *testing.T, c *hooktool.Client) {
	t.Helper()
	ids, err := c.RelationIDs(ctx, "database")
	require.NoError(t, err)
	require.Len(t, ids, 1)
	id := ids[0]
	require.Regexp(t, `^database:\d+$`, id)
	units, err := c.RelationUnits(ctx, id)
	require.NoError(t, err)
	require.Equal(t, []string{"app/0"}, units)
	app, err := c.RelationApp(ctx, id)
	require.NoError(t, err)
	require.Equal(t, "app", app)
	uuid, err := c.RelationModel(ctx, id)
	require.NoError(t, err)
	require.Len(t, uuid, 36)
	bag, err := c.RelationGet(ctx, id, "app/0")
	require.NoError(t, err)
	require.Contains(t, bag, "ingress-address")

	_, err = c.RelationGetApp(ctx, "database:99", "app")
	require.True(t, hooktool.IsNotFound(err), "%v", err)
	require.False(t, hooktool.IsPermission(err))
	_, err = c.RelationUnits(ctx, "database:99")
	require.True(t, hooktool.IsNotFound(err), "%v", err)
	ids, err = c.RelationIDs(ctx, "mates")
	require.NoError(t, err)
	require.Len(t, ids, 1)
}

// What one side writes in a hook, the other reads in its next, byte for byte,
// big values too; and nothing of a hook that failed.
func TestTools_Databags(t *testing.T) {
	t.Parallel()
	for name, connect := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			id := s.relation("db/0", connect)
			written := map[string]string{"big": strings.Repeat("0123456789abcdé\n", 20000)} // 320 kB and more
			for key, value := range hostile {
				written[key] = value
			}
			s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				require.NoError(t, c.RelationSetApp(ctx, id, written))
				require.NoError(t, c.RelationSet(ctx, id, map[string]string{"mine": "1"}))
				own, err := c.RelationGetApp(ctx, id, "db")
				require.NoError(t, err)
				require.Equal(t, written, own, "the hook sees its own writes")
			})
			s.hook("app/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				id := oneID(ctx, t, c)
				got, err := c.RelationGetApp(ctx, id, "db")
				require.NoError(t, err)
				require.Equal(t, written, got)
				unit, err := c.RelationGet(ctx, id, "db/0")
				require.NoError(t, err)
				require.Equal(t, "1", unit["mine"])
			})
			s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				gone := map[string]string{}
				for key := range written {
					gone[key] = ""
				}
				require.NoError(t, c.RelationSetApp(ctx, id, gone))
			})
			s.hook("db/0", connect, true, func(ctx context.Context, c *hooktool.Client) {
				require.NoError(t, c.RelationSetApp(ctx, id, map[string]string{"half": "done"}))
			})
			s.hook("app/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				got, err := c.RelationGetApp(ctx, oneID(ctx, t, c), "db")
				require.NoError(t, err)
				require.Empty(t, got, "deleted keys are gone, and what the failed hook wrote was dropped")
			})
		})
	}
}

func (s *stage) relation(unit string, connect connector) (id string) {
	s.t.Helper()
	s.hook(unit, connect, false, func(ctx context.Context, c *hooktool.Client) { id = oneID(ctx, s.t, c) })
	return id
}

func oneID(ctx context.Context, t *testing.T, c *hooktool.Client) string {
	t.Helper()
	ids, err := c.RelationIDs(ctx, "database")
	require.NoError(t, err)
	require.Len(t, ids, 1)
	return ids[0]
}

func TestTools_StateStatusLog(t *testing.T) {
	t.Parallel()
	for name, connect := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			state := map[string]string{"empty": "", "big": strings.Repeat("x", 60000)}
			for key, value := range hostile {
				state[key] = value
			}
			s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				require.NoError(t, c.StateSet(ctx, state))
				require.NoError(t, c.StatusSet(ctx, hooktool.Blocked, "--help \"x\"\n: y"))
				require.NoError(t, c.Log(ctx, slog.LevelError, "-x two words"))
				require.NoError(t, c.ApplicationVersionSet(ctx, "-2.6"))
				require.NoError(t, c.OpenPort(ctx, "6446/tcp"))
			})
			s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				got, err := c.StateGet(ctx)
				require.NoError(t, err)
				require.Equal(t, state, got)
				status, message, err := c.StatusGet(ctx)
				require.NoError(t, err)
				require.Equal(t, hooktool.Blocked, status)
				require.Equal(t, "--help \"x\"\n: y", message)
				require.NoError(t, c.StateDelete(ctx, "tilde"))
			})
			s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				got, err := c.StateGet(ctx)
				require.NoError(t, err)
				require.NotContains(t, got, "tilde")
				require.Len(t, got, len(state)-1)
			})
			status, err := s.model.Status()
			require.NoError(t, err)
			require.Equal(t, "-2.6", status.Applications["db"].Units["db/0"].Version)
			require.Equal(t, []string{"6446/tcp"}, status.Applications["db"].Units["db/0"].Ports)
		})
	}
}

// The life of a secret as the charm uses it: looked up before it is added,
// changed in place, granted before it is read by the other side, old revisions
// and at last all of it removed.
func TestTools_Secrets(t *testing.T) {
	t.Parallel()
	for name, connect := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			relation := s.relation("db/0", connect)
			first := map[string]string{"username": "yes", "password": "a\nb\"'\\ ~", "tls-ca": strings.Repeat("line\n", 4000)}
			second := map[string]string{"username": "yes", "password": "next"}
			var id string
			s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				_, err := c.SecretInfo(ctx, hooktool.SecretRef{Label: "l"})
				require.True(t, hooktool.IsNotFound(err), "%v", err)
				id, err = c.SecretAdd(ctx, hooktool.Secret{Label: "l", Description: "d", Content: first})
				require.NoError(t, err)
				require.Regexp(t, `^secret:`, id)
				requireSecret(ctx, t, c, hooktool.SecretRef{ID: id}, first)
				requireSecret(ctx, t, c, hooktool.SecretRef{Label: "l"}, first)
			})
			s.hook("app/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				_, err := c.SecretGet(ctx, hooktool.SecretRef{ID: id})
				require.True(t, hooktool.IsPermission(err), "%v", err)
				require.False(t, hooktool.IsNotFound(err))
				_, err = c.SecretGet(ctx, hooktool.SecretRef{ID: "secret:cm8f0av6s8n8me3jmr00"})
				require.True(t, hooktool.IsNotFound(err), "%v", err)
				require.False(t, hooktool.IsPermission(err))
			})
			s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				info, err := c.SecretInfo(ctx, hooktool.SecretRef{Label: "l"})
				require.NoError(t, err)
				require.Equal(t, hooktool.SecretInfo{ID: strings.TrimPrefix(id, "secret:"), Label: "l", Owner: "application", Revision: 1}, info)
				require.NoError(t, c.SecretGrant(ctx, id, relation))
				require.NoError(t, c.SecretGrant(ctx, id, relation), "safe to repeat")
			})
			s.hook("app/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				requireSecret(ctx, t, c, hooktool.SecretRef{ID: id, Label: "theirs"}, first)
			})
			s.secondRevision(connect, id, first, second)
			s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				require.NoError(t, c.SecretRevoke(ctx, id, relation))
			})
			s.hook("app/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				_, err := c.SecretGet(ctx, hooktool.SecretRef{ID: id})
				require.True(t, hooktool.IsPermission(err), "%v", err)
			})
			s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				require.NoError(t, c.SecretRemove(ctx, id))
			})
			s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				_, err := c.SecretInfo(ctx, hooktool.SecretRef{ID: id})
				require.True(t, hooktool.IsNotFound(err), "%v", err)
				ids, err := c.SecretIDs(ctx)
				require.NoError(t, err)
				require.Empty(t, ids)
			})
		})
	}
}

// secondRevision changes the content: the same content makes no revision, the
// other side sees the next one when it asks for it, and the old one can go.
func (s *stage) secondRevision(connect connector, id string, first, second map[string]string) {
	t := s.t
	t.Helper()
	revision := func(want int) {
		t.Helper()
		s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
			info, err := c.SecretInfo(ctx, hooktool.SecretRef{ID: id})
			require.NoError(t, err)
			require.Equal(t, want, info.Revision)
			ids, err := c.SecretIDs(ctx)
			require.NoError(t, err)
			require.Equal(t, []string{info.ID}, ids)
		})
	}
	set := func(content map[string]string) {
		t.Helper()
		s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
			require.NoError(t, c.SecretSet(ctx, id, content))
		})
	}
	set(first)
	revision(1)
	set(second)
	revision(2)
	s.hook("app/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
		requireSecret(ctx, t, c, hooktool.SecretRef{Label: "theirs"}, first)
		requireSecret(ctx, t, c, hooktool.SecretRef{ID: id, Peek: true}, second)
		requireSecret(ctx, t, c, hooktool.SecretRef{ID: id}, first)
		requireSecret(ctx, t, c, hooktool.SecretRef{ID: id, Refresh: true}, second)
		requireSecret(ctx, t, c, hooktool.SecretRef{ID: id}, second)
	})
	s.hook("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
		require.NoError(t, c.SecretRemoveRevision(ctx, id, 1))
	})
	revision(2)
}

func requireSecret(ctx context.Context, t *testing.T, c *hooktool.Client, ref hooktool.SecretRef, want map[string]string) {
	t.Helper()
	got, err := c.SecretGet(ctx, ref)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// A unit that is not leader is refused in words that the client knows.
func TestTools_NotLeader(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.relation("db/0", overSocket)
	require.NoError(t, s.model.Scale("db", 2))
	require.NoError(t, s.model.SetLeader("db/1"))
	s.hook("db/0", overSocket, false, func(ctx context.Context, c *hooktool.Client) {
		leader, err := c.IsLeader(ctx)
		require.NoError(t, err)
		require.False(t, leader)
		err = c.RelationSetApp(ctx, id, map[string]string{"a": "b"})
		require.True(t, hooktool.IsPermission(err), "%v", err)
		_, err = c.RelationGetApp(ctx, id, "db")
		require.True(t, hooktool.IsPermission(err), "%v", err)
		_, err = c.SecretAdd(ctx, hooktool.Secret{Content: map[string]string{"key": "value"}})
		require.True(t, hooktool.IsPermission(err), "%v", err)
		require.NoError(t, c.RelationSet(ctx, id, map[string]string{"mine": "still"}))
	})
}

func TestTools_Actions(t *testing.T) {
	t.Parallel()
	for name, connect := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			_, tasks, err := s.model.EnqueueAction([]string{"db/0"}, "look", map[string]any{"p": 7})
			require.NoError(t, err)
			s.run("db/0", connect, false, func(ctx context.Context, c *hooktool.Client) {
				params, err := c.ActionGet(ctx)
				require.NoError(t, err)
				require.Equal(t, 7.0, params["p"])
				require.NoError(t, c.ActionLog(ctx, "-half way"))
				require.NoError(t, c.ActionSet(ctx, map[string]string{"a.b": "--x", "text": "two\nlines = 1"}))
				require.NoError(t, c.ActionFail(ctx, "-no"))
			})
			action, err := s.model.Action(tasks[0].ID)
			require.NoError(t, err)
			require.Equal(t, model.ActionStatus("failed"), action.Status)
			require.Equal(t, "-no", action.Message)
			require.Equal(t, map[string]any{"b": "--x"}, action.Results["a"])
			require.Equal(t, "two\nlines = 1", action.Results["text"])
			require.Len(t, action.Log, 1)
			require.Equal(t, "-half way", action.Log[0].Message)
		})
	}
}

// Every method of the client that calls a tool is called above. One that is
// added has to be added there, and here.
func TestTools_AllMethods(t *testing.T) {
	t.Parallel()
	tested := []string{
		"ActionFail", "ActionGet", "ActionLog", "ActionSet", "ApplicationVersionSet", "ConfigGet", "GoalState", "IsLeader", "Log",
		"NetworkGet", "OpenPort", "RelationApp", "RelationGet", "RelationGetApp", "RelationIDs", "RelationModel", "RelationSet",
		"RelationSetApp", "RelationUnits", "SecretAdd", "SecretGet", "SecretGrant", "SecretIDs", "SecretInfo", "SecretRemove",
		"SecretRemoveRevision", "SecretRevoke", "SecretSet", "StateDelete", "StateGet", "StateSet", "StatusGet", "StatusSet",
	}
	others := []string{"Calls", "Close", "SetTimeout"}
	var methods []string
	client := reflect.TypeFor[*hooktool.Client]()
	for i := range client.NumMethod() {
		methods = append(methods, client.Method(i).Name)
	}
	require.ElementsMatch(t, append(tested, others...), methods)
}
