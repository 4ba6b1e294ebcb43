// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"fmt"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// bench is a model with foo (2 units) and bar (1 unit), related by db (id 1 of
// foo's peer 0), and a hook context of foo/0 served on a socket.
type bench struct {
	t        *testing.T
	model    *model.Model
	dir      string
	relation int
	logs     []string
	context  *Context
	client   *rpc.Client
}

const metaFoo = `name: foo
summary: s
description: d
provides:
  db: {interface: pg}
requires:
  up: {interface: x}
peers:
  mates: {interface: m}
resources:
  conf: {type: file, filename: conf.txt}
`

const configFoo = `options:
  text: {type: string, default: hello}
  empty: {type: string, default: ""}
  unset: {type: string}
  num: {type: int, default: 3}
  big: {type: int, default: 1000000}
  on: {type: boolean, default: true}
  tags: {type: string, default: "<a&b>"}
`

func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{t: t, dir: t.TempDir()}
	m, err := model.Open(filepath.Join(b.dir, "model.db"), model.Options{
		NoSync: true, Clock: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	b.model = m
	b.write("res.txt", "content")
	b.deploy("foo", metaFoo, configFoo, 2)
	b.deploy("bar", "name: bar\nsummary: s\ndescription: d\nrequires:\n  db: {interface: pg}\n", "", 1)
	b.deploy("baz", "name: baz\nsummary: s\ndescription: d\n", "", 1)
	b.relation, err = m.Integrate("foo", "bar")
	require.NoError(t, err)
	for _, u := range []string{"foo/0", "foo/1", "bar/0"} {
		require.NoError(t, m.Save(t.Context(), u, model.Save{Enter: []int{0, b.relation}}))
	}
	_, err = m.ClaimLeadership(t.Context(), "foo/0")
	require.NoError(t, err)
	_, err = m.ClaimLeadership(t.Context(), "bar/0")
	require.NoError(t, err)
	require.NoError(t, m.SetPodStatus("foo/0", model.PodStatus{Address: "10.1.0.5"}))
	_, err = m.CommitHook(t.Context(), "bar/0", model.HookCommit{Relations: []model.RelationWrite{
		{Relation: b.relation, Values: map[string]string{"k": "v", "n1": "1"}},
		{Relation: b.relation, App: true, Values: map[string]string{"a": "b"}},
	}})
	require.NoError(t, err)
	return b
}

func (b *bench) write(name, text string) string {
	p := filepath.Join(b.dir, name)
	require.NoError(b.t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(b.t, os.WriteFile(p, []byte(text), 0o755))
	return p
}

func (b *bench) deploy(name, meta, config string, units int) {
	b.t.Helper()
	b.write("src/"+name+"/metadata.yaml", meta)
	b.write("src/"+name+"/dispatch", "#!/bin/sh\n")
	if config != "" {
		b.write("src/"+name+"/config.yaml", config)
	}
	c, err := model.ReadCharm(filepath.Join(b.dir, "src", name))
	require.NoError(b.t, err)
	var res map[string]string
	if name == "foo" {
		res = map[string]string{"conf": filepath.Join(b.dir, "res.txt")}
	}
	require.NoError(b.t, b.model.Deploy(model.DeployArgs{Charm: c, Units: units, Resources: res}))
}

// hook begins a context of the unit; relation hooks about bar/0 if h says so.
func (b *bench) hook(unit string, h *model.HookInfo, act *model.Action) *bench {
	b.t.Helper()
	info, err := b.model.ContextInfo(b.t.Context(), unit)
	require.NoError(b.t, err)
	b.context = NewContext(Options{
		ID: unit + "-test-1", Unit: unit, Backend: b.model, Info: info, Hook: h, Action: act,
		Members:     map[int][]string{b.relation: {"bar/0"}, 0: {"foo/1"}},
		Log:         func(level, message string) { b.logs = append(b.logs, level+" "+message) },
		ResourceDir: filepath.Join(b.dir, "resources"),
	})
	b.client = b.serve(b.context)
	return b
}

func (b *bench) serve(c *Context) *rpc.Client {
	b.t.Helper()
	dir, err := os.MkdirTemp("", "ht")
	require.NoError(b.t, err)
	b.t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(b.t, err)
	s, err := Serve(b.t.Context(), l, c)
	require.NoError(b.t, err)
	b.t.Cleanup(s.Close)
	client, err := rpc.Dial("unix", filepath.Join(dir, "s"))
	require.NoError(b.t, err)
	b.t.Cleanup(func() { client.Close() })
	return client
}

// run calls a tool; stdin is sent if it is not "-none-".
func (b *bench) run(stdin, tool string, args ...string) ExecResponse {
	b.t.Helper()
	var resp ExecResponse
	err := b.client.Call("Jujuc.Main", Request{
		ContextId: b.context.ID, Dir: b.dir, CommandName: tool, Args: args, StdinSet: true, Stdin: []byte(stdin),
	}, &resp)
	require.NoError(b.t, err)
	return resp
}

// ok calls a tool that must succeed and returns what it printed.
func (b *bench) ok(tool string, args ...string) string {
	b.t.Helper()
	r := b.run("", tool, args...)
	require.Equal(b.t, 0, r.Code, "%s %q: %s", tool, args, r.Stderr)
	return string(r.Stdout)
}

// commit applies what the hook has buffered and begins another context.
func (b *bench) commit() {
	b.t.Helper()
	_, err := b.model.CommitHook(b.t.Context(), b.context.Unit, b.context.Commit())
	require.NoError(b.t, err)
	b.hook(b.context.Unit, b.context.Hook, b.context.Action)
}

func changed() *model.HookInfo {
	return &model.HookInfo{Kind: "relation-changed", Endpoint: "db", RelationID: 1, RemoteUnit: "bar/0", RemoteApp: "bar"}
}

// cases of calls, one after the other in one context: "code|stdout|stderr".
func (b *bench) table(cases [][2]string) {
	b.t.Helper()
	for _, c := range cases {
		words, err := split(c[0])
		require.NoError(b.t, err)
		r := b.run("", words[0], words[1:]...)
		got := fmt.Sprintf("%d|%s|%s", r.Code, r.Stdout, r.Stderr)
		require.Equal(b.t, c[1], got, c[0])
	}
}

// split splits words at spaces; quotes group.
func split(s string) ([]string, error) {
	var out []string
	for _, m := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(s, -1) {
		out = append(out, strings.Trim(m, "'"))
	}
	return out, nil
}

func TestTools_RelationGet(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	b.table([][2]string{
		{"relation-get", "0|k: v\nn1: \"1\"\n|"},
		{"relation-get --format json", `0|{"k":"v","n1":"1"}` + "\n|"},
		{"relation-get k", "0|v\n|"},
		{"relation-get --format=json k", "0|\"v\"\n|"},
		{"relation-get --format yaml n1", "0|\"1\"\n|"},
		{"relation-get missing", "0||"},
		{"relation-get missing --format json", "0|null\n|"},
		{"relation-get - bar/0 -r db:1", "0|k: v\nn1: \"1\"\n|"},
		{"relation-get -r wrong:1 k", "0|v\n|"},
		{"relation-get --app", "0|a: b\n|"},
		{"relation-get --app - bar", "0|a: b\n|"},
		{"relation-get --app a bar/0", "0|b\n|"},
		{"relation-get - foo/0", "0|{}\n|"},
		{"relation-get - foo/1", "0|{}\n|"},
		{"relation-get - bar", "2||ERROR expected unit name, got application name \"bar\"\n"},
		{"relation-get - b@r", "2||ERROR invalid unit name \"b@r\"\n"},
		{"relation-get - bar/9", `1||ERROR cannot read settings for unit "bar/9" in relation "bar:db foo:db": unit "bar/9": settings not found` + "\n"},
		{"relation-get - baz/0", "1||ERROR permission denied\n"},
		{"relation-get -r db:99", "2||ERROR invalid value \"db:99\" for option -r: relation not found\n"},
		{"relation-get -r db:x", "2||ERROR invalid value \"db:x\" for option -r: invalid relation id\n"},
		{"relation-get --format xml", "2||ERROR invalid value \"xml\" for option --format: unknown format \"xml\"\n"},
		{"relation-get --bogus", "2||ERROR option provided but not defined: --bogus\n"},
		{"relation-get -r", "2||ERROR option needs an argument: -r\n"},
		{"relation-get k bar/0 x", "2||ERROR unrecognized args: [\"x\"]\n"},
		{"relation-list", "0|bar/0\n|"},
		{"relation-list --app", "0|bar\n|"},
		{"relation-list -r 0 --format json", "0|[\"foo/1\"]\n|"},
		{"relation-ids", "0|db:1\n|"},
		{"relation-ids mates --format json", "0|[\"mates:0\"]\n|"},
		{"relation-ids nothing", "0||"},
		{"relation-ids nothing --format json", "0|[]\n|"},
		{"relation-model-get", "0|uuid: " + b.model.Info().UUID + "\n|"},
	})
}

func TestTools_OutsideRelationHook(t *testing.T) {
	b := newBench(t).hook("foo/1", nil, nil)
	b.table([][2]string{
		{"relation-get", "2||ERROR no relation id specified\n"},
		{"relation-get -r 1", "2||ERROR no unit or application specified\n"},
		{"relation-set a=b", "2||ERROR no relation id specified\n"},
		{"relation-ids", "2||ERROR no endpoint name specified\n"},
		{"relation-get -r 1 --app - foo", "1||ERROR permission denied\n"},
		{"relation-get -r 0 --app - foo", "0|{}\n|"},
		{"relation-set -r 1 --app a=b", "1||ERROR cannot write relation settings\n"},
		{"is-leader", "0|False\n|"},
		{"is-leader --format json", "0|false\n|"},
		{"status-set --application active", "1||ERROR this unit is not the leader\n"},
		{"status-set --application=False active x", "0||"},
		{"status-get --application", "1||ERROR finding application status: this unit is not the leader\n"},
		{"leader-set a=b", "1||ERROR cannot write leadership settings: cannot write settings: not the leader\n"},
		{"secret-add password=x", "1||ERROR this unit is not the leader\n"},
		{"credential-get", "1||ERROR cannot access cloud credentials: getting model credentials: permission denied\n"},
		{"action-get", "1||ERROR not running an action\n"},
		{"action-set a=b", "1||ERROR not running an action\n"},
	})
}

func TestTools_RelationSet(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	b.table([][2]string{
		{"relation-set", "0||"},
		{"relation-set 'a= x ' b=", "0||"},
		{"relation-get - foo/0", "0|a: x\n|"},
		{"relation-set --app who=leader", "0||"},
		{"relation-get --app - foo", "0|who: leader\n|"},
		{"relation-set x", "2||ERROR expected \"key=value\", got \"x\"\n"},
		{"relation-set c=1 c=2", "2||ERROR key \"c\" specified more than once\n"},
		{"relation-set a=", "0||"},
		{"relation-get a foo/0", "0||"},
	})
	file := b.write("set.yaml", "num: 1.50\nyes: yes\nhex: 0x10\nnothing: null\nspaced: ' x '\na: file\n")
	b.ok("relation-set", "--file", filepath.Base(file), "a=arg")
	require.JSONEq(t, `{"num":"1.50","yes":"yes","hex":"0x10","spaced":" x ","a":"arg"}`, b.ok("relation-get", "--format", "json", "-", "foo/0"))
	r := b.run("list: [1]\nother: 1\n", "relation-set", "--file", "-")
	require.Equal(t, 1, r.Code)
	require.Contains(t, string(r.Stderr), "ERROR yaml: unmarshal errors:")
	require.Empty(t, b.ok("relation-get", "other", "foo/0"))
	r = b.run(`{"j": "son", "t": true}`, "relation-set", "--file", "-")
	require.Zero(t, r.Code)
	b.commit()
	require.JSONEq(t, `{"num":"1.50","yes":"yes","hex":"0x10","spaced":" x ","a":"arg","j":"son","t":"true"}`,
		b.ok("relation-get", "--format", "json", "-", "foo/0"))
}

func TestTools_Config(t *testing.T) {
	b := newBench(t).hook("foo/0", nil, nil)
	b.table([][2]string{
		{"config-get text", "0|hello\n|"},
		{"config-get empty", "0||"},
		{"config-get empty --format yaml", "0|\"\"\n|"},
		{"config-get unset", "0||"},
		{"config-get unset --format json", "0|null\n|"},
		{"config-get nope", "0||"},
		{"config-get num", "0|3\n|"},
		{"config-get big", "0|1e+06\n|"},
		{"config-get big --format json", "0|1000000\n|"},
		{"config-get on", "0|True\n|"},
		{"config-get on --format yaml", "0|true\n|"},
		{"config-get tags --format json", "0|\"\\u003ca\\u0026b\\u003e\"\n|"},
		{"config-get --all text", "2||ERROR cannot use argument --all together with key \"text\"\n"},
	})
	require.Equal(t, "big: 1e+06\nempty: \"\"\nnum: 3\n\"on\": true\ntags: <a&b>\ntext: hello\n", b.ok("config-get"))
	require.Contains(t, b.ok("config-get", "-a", "--format", "json"), `"unset":null`)
}

func TestTools_StatusAndLog(t *testing.T) {
	b := newBench(t).hook("foo/0", changed(), nil)
	b.table([][2]string{
		{"status-set", "2||ERROR invalid args, require <status> [message]\n"},
		{"status-set bad", "2||ERROR invalid status \"bad\", expected one of [maintenance blocked waiting active]\n"},
		{"status-set blocked -- '--dashed message'", "0||"},
		{"status-get", "0|blocked\n|"},
		{"status-get --include-data", "0|message: --dashed message\nstatus: blocked\nstatus-data: {}\n|"},
		{"status-get --format json", "0|{\"status\":\"blocked\"}\n|"},
		{"status-set --application=True active", "0||"},
		{"status-get --application", "0|active\n|"},
		{"application-version-set 1.2", "0||"},
		{"application-version-set", "2||ERROR no version specified\n"},
		{"juju-log --log-level DEBUG two words", "0||"},
		{"juju-log -l loud x", "0||"},
		{"juju-log", "2||ERROR no message specified\n"},
	})
	require.Equal(t, []string{"DEBUG db:1: two words", `WARNING Specified log level of "loud" is not valid`, "INFO db:1: x"}, b.logs)
}

func TestTools_State(t *testing.T) {
	b := newBench(t).hook("foo/0", nil, nil)
	b.table([][2]string{
		{"state-get", "0|{}\n|"},
		{"state-get --format json", "0|null\n|"},
		{"state-get k", "0||"},
		{"state-get k --format json", "0|\"\"\n|"},
		{"state-get --strict k", "1||ERROR \"k\" not found\n"},
		{"state-set k=v e=", "0||"},
		{"state-get", "0|e: \"\"\nk: v\n|"},
		{"state-delete k", "0||"},
		{"state-delete missing", "0||"},
		{"state-get --format json -", "0|{\"e\":\"\"}\n|"},
		{"state-set " + strings.Repeat("k", 257) + "=v", "1||ERROR max allowed key length (256) exceeded\n"},
	})
	b.commit()
	require.Equal(t, "{\"e\":\"\"}\n", b.ok("state-get", "--format", "json"))
}

func TestTools_Ports(t *testing.T) {
	b := newBench(t).hook("foo/0", nil, nil)
	b.table([][2]string{
		{"opened-ports --format json", "0|[]\n|"},
		{"open-port 8080", "0||"},
		{"open-port 443/TCP", "0||"},
		{"open-port 53/udp", "0||"},
		{"opened-ports", "0|443/tcp\n8080/tcp\n53/udp\n|"},
		{"close-port 8080", "0||"},
		{"opened-ports --endpoints", "0|443/tcp (*)\n53/udp (*)\n|"},
		{"open-port 80-90/tcp", "1||ERROR port ranges are not supported for k8s applications, please specify a single port\n"},
		{"open-port 80/sctp", "2||ERROR invalid protocol \"sctp\", expected \"tcp\", \"udp\", or \"icmp\"\n"},
	})
	b.commit()
	require.Equal(t, "443/tcp\n53/udp\n", b.ok("opened-ports"))
	b.ok("open-port", "icmp")
	_, err := b.model.CommitHook(t.Context(), "foo/0", b.context.Commit())
	require.ErrorContains(t, err, "icmp")
}

func TestTools_Network(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.model.SetServiceAddress("foo", "10.152.183.9"))
	b.hook("foo/0", nil, nil)
	b.table([][2]string{
		{"network-get db --bind-address", "0|10.1.0.5\n|"},
		{"network-get db --ingress-address", "0|10.152.183.9\n|"},
		{"network-get db --egress-subnets", "0|10.152.183.9/32\n|"},
		{"network-get db --bind-address --ingress-address --format json", "0|{\"bind-address\":\"10.1.0.5\",\"ingress-address\":\"10.152.183.9\"}\n|"},
		{"network-get db --format json", `0|{"bind-addresses":[{"mac-address":"","interface-name":"","addresses":[{"hostname":"","value":"10.1.0.5","cidr":""}]}],"egress-subnets":["10.152.183.9/32"],"ingress-addresses":["10.152.183.9"]}` + "\n|"},
		{"network-get nope", "1||ERROR no network config found for binding \"nope\"\n"},
		{"network-get", "2||ERROR no arguments specified\n"},
		{"unit-get private-address", "0|10.1.0.5\n|"},
		{"unit-get public-address", "1||ERROR public address not found\n"},
	})
}

func TestTools_GoalState(t *testing.T) {
	b := newBench(t).hook("foo/0", nil, nil)
	require.JSONEq(t, `{"units":{"foo/0":{"status":"waiting","since":"2026-01-02 03:04:05Z"},"foo/1":{"status":"waiting","since":"2026-01-02 03:04:05Z"}},
		"relations":{"db":{"bar":{"status":"joined","since":"2026-01-02 03:04:05Z"},"bar/0":{"status":"waiting","since":"2026-01-02 03:04:05Z"}}}}`,
		b.ok("goal-state", "--format", "json"))
}

func TestTools_Actions(t *testing.T) {
	act := &model.Action{ID: "4", Name: "act", Params: map[string]any{"a": map[string]any{"b": 1.0}, "s": "x"}}
	b := newBench(t).hook("foo/0", nil, act)
	b.table([][2]string{
		{"action-get", "0|a:\n  b: 1\ns: x\n|"},
		{"action-get a.b", "0|1\n|"},
		{"action-get a.c --format json", "0|null\n|"},
		{"action-get s", "0|x\n|"},
		{"action-set out.deep=1 flat=2=3", "0||"},
		{"action-set Bad=1", "2||ERROR key \"Bad\" must start and end with lowercase alphanumeric, and contain only lowercase alphanumeric and hyphens\n"},
		{"action-set stdout=1", "2||ERROR cannot set reserved action key \"stdout\"\n"},
		{"action-fail", "0||"},
	})
	results, failed, message := b.context.ActionOutcome()
	require.True(t, failed)
	require.Equal(t, "action failed without reason given, check action for errors", message)
	require.Equal(t, map[string]any{"out": map[string]any{"deep": "1"}, "flat": "2=3"}, results)
}

func TestTools_Resources(t *testing.T) {
	b := newBench(t).hook("foo/0", nil, nil)
	path := b.ok("resource-get", "conf")
	require.Equal(t, filepath.Join(b.dir, "resources", "conf", "conf.txt"), path)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "content", string(raw))
	require.Equal(t, 1, b.run("", "resource-get", "nope").Code)
}

func TestTools_OutputFileAndHelp(t *testing.T) {
	b := newBench(t).hook("foo/0", nil, nil)
	require.Empty(t, b.ok("config-get", "text", "-o", "out.txt"))
	raw, err := os.ReadFile(filepath.Join(b.dir, "out.txt"))
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(raw))
	require.Contains(t, b.ok("config-get", "--help"), "Usage: config-get [options] [<key>]")
}
