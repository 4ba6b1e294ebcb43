// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package connections

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The two ConfigMaps of the examples. The label's domain is what the vectors of hashes were made with.
const vectorLabel = "DOMAIN/connection-type"

func prediction(version string) ConfigMap {
	return ConfigMap{Name: "model-prediction", Labels: map[string]string{LabelType: "model"},
		Data: map[string]string{"version": version, "path": "/models/p"}}
}

func noise() ConfigMap {
	return ConfigMap{Name: "noise-recognition", Labels: map[string]string{LabelType: "model"}, Data: map[string]string{"version": "9"}}
}

// vector is a ConfigMap as the vectors have it.
func vector(c ConfigMap) ConfigMap {
	c.Labels = map[string]string{vectorLabel: "model"}
	return c
}

func vectorItem(c ConfigMap, typ string) Item {
	return Item{Kind: KindConfigMap, Name: c.Name, Type: typ, Digest: configMapDigest(c, typ), State: OK}
}

// input is what an operator asks for who lists these ConfigMaps.
func input(maps ...ConfigMap) Input {
	in := Input{App: App{Name: "app", Model: "m", Category: "c"}, Unit: Unit{Name: "app/0"}, Seen: map[string]Seen{},
		Options: Options{Errs: map[string]error{}}}
	for _, c := range maps {
		in.Options.ConfigMaps = append(in.Options.ConfigMaps, Name{Name: c.Name})
		in.Seen[c.Name] = Seen{State: OK, Map: c, Size: c.Size()}
	}
	return in
}

func names(text string) string {
	list, err := ParseNames(text)
	if err != nil {
		return "error: " + err.Error()
	}
	var words []string
	for _, n := range list {
		word := n.Name
		if n.Optional {
			word += "?"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestParsing(t *testing.T) {
	t.Parallel()
	t.Run("conn-T1", func(t *testing.T) {
		for _, text := range []string{"model-prediction, noise-recognition", "model-prediction\nnoise-recognition", "model-prediction noise-recognition"} {
			require.Equal(t, "model-prediction noise-recognition", names(text))
		}
	})
	t.Run("conn-T2", func(t *testing.T) { require.Equal(t, "a", names("a,a, a")) })
	t.Run("conn-T3", func(t *testing.T) {
		require.Empty(t, names(""))
		require.Empty(t, names(" , "))
	})
	t.Run("conn-T5", func(t *testing.T) {
		require.Equal(t, "x?", names("x?"))
		require.Equal(t, "x", names("x?,x"))
		require.Equal(t, "x", names("x,x?"))
	})
	t.Run("conn-T6", func(t *testing.T) { require.Equal(t, `error: bad name "ns/x"`, names("ns/x")) })
	t.Run("conn-T7", func(t *testing.T) {
		var many []string
		for i := range 65 {
			many = append(many, fmt.Sprintf("c%d", i))
		}
		require.Contains(t, names(strings.Join(many, ",")), "64")
		require.NotContains(t, names(strings.Join(many[:64], ",")), "error")
	})
	for text, want := range map[string]string{
		"a.b-c.d": "a.b-c.d", "A": `error: bad name "A"`, "a..b": `error: bad name "a..b"`, "-a": `error: bad name "-a"`, "a-": `error: bad name "a-"`,
		"?": `error: bad name "?"`, "a\x00b": `error: bad name "a\x00b"`, strings.Repeat("a", 254): "error: bad name",
	} {
		require.Contains(t, names(text), want, "%q", text)
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	t.Run("conn-T11", func(t *testing.T) {
		c := Decide(input(prediction("3"), noise())).Document.Connections
		require.Equal(t, []string{"model"}, sorted(c.ConfigMaps))
		require.Equal(t, []string{"model-prediction", "noise-recognition"}, sorted(c.ConfigMaps["model"]))
		require.Equal(t, "3", c.ConfigMaps["model"]["model-prediction"].Data["version"])
		require.Equal(t, "9", c.ConfigMaps["model"]["noise-recognition"].Data["version"])
	})
	t.Run("conn-T12", func(t *testing.T) {
		c := Decide(input(ConfigMap{Name: "krb", Data: map[string]string{"krb5.conf": "[libdefaults]"}})).Document.Connections
		require.Equal(t, "[libdefaults]", c.ConfigMaps[Untyped]["krb"].Data["krb5.conf"])
	})
	t.Run("conn-T13", func(t *testing.T) {
		in := input(prediction("3"), noise())
		in.Remotes = []Remote{{"spark", metadata("spark", "spark")}, {"kafka", metadata("kafka", "kafka")}}
		c := Decide(in).Document.Connections
		require.Len(t, c.ConfigMaps["model"], 2)
		require.Equal(t, []string{"kafka", "spark"}, sorted(c.Clusters))
		require.Len(t, c.Items(), 4)
	})
	t.Run("conn-T13b", func(t *testing.T) {
		other := noise()
		other.Labels = map[string]string{LabelType: "sound"}
		c := Decide(input(prediction("3"), other)).Document.Connections
		require.Equal(t, []string{"model-prediction"}, sorted(c.ConfigMaps["model"]))
		require.Equal(t, []string{"noise-recognition"}, sorted(c.ConfigMaps["sound"]))
	})
	t.Run("KubeDirector's label counts where ours is absent", func(t *testing.T) {
		c := ConfigMap{Labels: map[string]string{LabelKubeDirector: "theirs"}}
		require.Equal(t, "theirs", c.Type())
		c.Labels[LabelType] = "ours"
		require.Equal(t, "ours", c.Type())
	})
	t.Run("binary data stays base64", func(t *testing.T) {
		text := string(Decide(input(ConfigMap{Name: "blob", Binary: map[string][]byte{"x": {0, 1, 4, 0xff}}})).Text)
		require.Contains(t, text, `"x": "AAEE/w=="`)
	})
}

func TestHash(t *testing.T) {
	t.Parallel()
	p3, p4, n9 := vector(prediction("3")), vector(prediction("4")), vector(noise())
	t.Run("conn-T14", func(t *testing.T) {
		plain := ConfigMap{Name: "plain", Data: map[string]string{"k": "v<&>"}}
		blob := ConfigMap{Name: "blob", Binary: map[string][]byte{"x": {0, 1, 2, 0xff}}}
		for want, got := range map[string]string{
			"sha256:4bcb105b9c7437ce6845319117c2616cb0f8536e5bf0a3173423130d3e8840d4": configMapDigest(p3, "model"),
			"sha256:687a0d18d225f212ff6ef1e9bcb04843ed368ef87cdb189112849ac0f27a345c": configMapDigest(p4, "model"),
			"sha256:08cd0149c0ccfcc2f7e592bef7067e5571933c14f1a78951ef914bee9d9d7c93": configMapDigest(n9, "model"),
			"sha256:bbad9f29a538f9870fb6b4628e4a14ae6c36ad4d5f7ad07abb37a6a7f995d45c": plain.Digest(),
			"sha256:b54b2c35c1acfd0a272276049bfe22aef5f5771f06b8e49fe519deca13ee9ffb": blob.Digest(),
			"sha256:a9b041da51d5c4e20e92ef47edc8f6fdd5976d02a261d6fe5980e9c270268ca4": HashOf(nil),
			"sha256:d0f9a26cb68c1fc71235684cb06216f115a08ebcb27caea3774eb4471c13fd9d": HashOf([]Item{vectorItem(p3, "model")}),
			"sha256:bc9881ffc7dfc237e21606373f7a40eafa38ac9fc953843b5c8d0dc1fc066b3d": HashOf([]Item{vectorItem(p3, "model"), vectorItem(n9, "model")}),
			"sha256:2afc58a958d17dde474620d023197df2d5b17f55fe1ec9bc72a53fcbb67387dc": HashOf([]Item{vectorItem(p4, "model"), vectorItem(n9, "model")}),
		} {
			require.Equal(t, want, got)
		}
	})
	t.Run("conn-T15", func(t *testing.T) {
		in := input(prediction("3"), noise())
		in.Remotes = []Remote{{"spark", metadata("spark", "spark")}}
		before := fmt.Sprintf("%#v", in)
		first, second := Decide(in), Decide(in)
		require.Equal(t, string(first.Text), string(second.Text))
		require.True(t, reflect.DeepEqual(first, second))
		require.Equal(t, before, fmt.Sprintf("%#v", in), "inputs are not modified")
	})
	t.Run("conn-T16", func(t *testing.T) {
		for _, items := range [][]Item{{vectorItem(p3, "model"), vectorItem(n9, "model")}, {vectorItem(n9, "model"), vectorItem(p3, "model")}} {
			require.Contains(t, HashOf(items), "sha256:bc9881ff")
		}
		require.Equal(t, Decide(input(prediction("3"), noise())).Hash, Decide(input(noise(), prediction("3"))).Hash)
	})
	t.Run("conn-T17", func(t *testing.T) {
		require.Contains(t, HashOf([]Item{vectorItem(p4, "model"), vectorItem(n9, "model")}), "sha256:2afc58a9")
	})
	t.Run("conn-T19", func(t *testing.T) {
		more := vector(noise())
		more.Labels["x"] = "y"
		require.NotEqual(t, configMapDigest(n9, "model"), configMapDigest(more, "model"))
		require.Contains(t, HashOf([]Item{vectorItem(more, "model")}), "sha256:4e1510f1")
		one, two := ConfigMap{Name: "a", Data: map[string]string{"k": "12"}}, ConfigMap{Name: "a1", Data: map[string]string{"k": "2"}}
		require.Contains(t, HashOf([]Item{vectorItem(one, Untyped)}), "sha256:768587a4")
		require.Contains(t, HashOf([]Item{vectorItem(two, Untyped)}), "sha256:bd284b29")
	})
	require.Equal(t, "4bcb105b9c74", Short(configMapDigest(p3, "model")))
	require.Equal(t, "x", Short("x"))
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	for i := range keys {
		for j := range keys[:i] {
			if keys[i] < keys[j] {
				keys[i], keys[j] = keys[j], keys[i]
			}
		}
	}
	return keys
}

// metadata is what an application of a category publishes.
func metadata(name, category string) string {
	text, err := Metadata{Name: name, Category: category, DistroID: "example/" + category, Version: "2.4",
		Services: map[string]Service{"livy": {Exported: "livy", Endpoints: []string{"http://" + name + "-0:8998"}}},
		Units:    []Unit{{Name: name + "/0", FQDN: name + "-0"}}}.Text()
	if err != nil {
		panic(err)
	}
	return text
}

// accepts decides about one application under a rule.
func accepts(rule, metadata string, in Input) Plan {
	in.Options = ParseOptions(map[string]any{OptConnectable: rule}, "c")
	in.Remotes = []Remote{{"spark", metadata}}
	return Decide(in)
}

func TestConnectable(t *testing.T) {
	t.Parallel()
	spark := metadata("spark", "spark")
	t.Run("conn-T33", func(t *testing.T) {
		p := accepts("", spark, Input{})
		require.Equal(t, "accepted", p.Answers["spark"].Status)
		require.Contains(t, p.Document.Connections.Clusters, "spark")
	})
	t.Run("conn-T35", func(t *testing.T) {
		require.Equal(t, "accepted", accepts("category=spark+distro-id=example/spark", spark, Input{}).Answers["spark"].Status)
		require.Equal(t, "rejected", accepts("category=spark+distro-id=x", spark, Input{}).Answers["spark"].Status)
	})
	t.Run("conn-T36", func(t *testing.T) {
		require.Equal(t, "accepted", accepts("kafka, spark", spark, Input{}).Answers["spark"].Status)
		file := accepts("", spark, Input{}).Document
		for _, rule := range []string{"=spark", "colour=red", "spark+", "a b"} {
			p := accepts(rule, spark, Input{File: &file})
			require.True(t, p.Findings[0].Blocked, rule)
			require.Contains(t, p.Findings[0].Text, "connectable-to: bad condition", rule)
			require.Equal(t, "accepted", p.Answers["spark"].Status, "the previous acceptance is kept")
			require.Equal(t, "rejected", accepts(rule, spark, Input{}).Answers["spark"].Status, "one that was never accepted is not")
			desired := Desired{Items: []Item{{Kind: KindCluster, Name: "spark", State: OK}}}
			require.Equal(t, "accepted", accepts(rule, spark, Input{Desired: desired}).Answers["spark"].Status)
		}
	})
	require.Equal(t, "accepted", accepts("version=2.4 , name=x", spark, Input{}).Answers["spark"].Status)
	require.Equal(t, "rejected", accepts("name=x", spark, Input{}).Answers["spark"].Status)
}

func TestMetadata_Hostile(t *testing.T) {
	t.Parallel()
	plan := func(text string, file *Document) Plan { return accepts("", text, Input{File: file}) }
	good := metadata("spark", "spark")
	t.Run("conn-T39", func(t *testing.T) {
		m := Metadata{Name: "a", Services: map[string]Service{"s": {Endpoints: []string{""}}}}
		text, err := m.Text()
		require.NoError(t, err)
		m.Services["s"].Endpoints[0] = strings.Repeat("x", MaxMetadata-len(text))
		text, err = m.Text()
		require.NoError(t, err)
		require.Len(t, text, 65536)
		_, err = ParseMetadata(text)
		require.NoError(t, err)
		m.Services["s"].Endpoints[0] += "x"
		_, err = m.Text()
		require.EqualError(t, err, "the metadata is too large: 65537 > 65536 bytes")
		_, err = ParseMetadata(text + " ")
		require.ErrorContains(t, err, "too large: 65537 > 65536 bytes")
	})
	t.Run("conn-T39b", func(t *testing.T) {
		require.Contains(t, plan(metadata("other", "x"), nil).Document.Connections.Clusters, "spark")
	})
	t.Run("conn-T70", func(t *testing.T) {
		file := plan(good, nil).Document
		p := plan(strings.Replace(good, `"schema":1`, `"schema":2`, 1), &file)
		require.Equal(t, Invalid, p.Items[0].State)
		require.Equal(t, file.Connections.Clusters, p.Document.Connections.Clusters, "the last good one is kept")
		require.Contains(t, p.Findings[0].Text, "connections: spark: its metadata has the unknown schema 2")
		require.Empty(t, plan(strings.Replace(good, `"schema":1`, `"schema":2`, 1), nil).Document.Connections.Clusters)
	})
	t.Run("conn-T71", func(t *testing.T) {
		more := strings.Replace(good, `"schema":1`, `"schema":1,"new":{"x":[1]}`, 1)
		require.Equal(t, string(plan(good, nil).Text), string(plan(more, nil).Text))
	})
	for _, text := range []string{"{", "null", "[]", `{"schema":1,"services":[]}`, `{"schema":1} {}`, `{"schema":"1"}`, strings.Repeat("[", 60000),
		`{"schema":1,"units":{}}`, "\x00", `{"schema":1,"category":7}`} {
		p := plan(text, nil)
		require.Equal(t, Invalid, p.Items[0].State, clip(text))
		require.Empty(t, p.Document.Connections.Clusters)
		require.Equal(t, "rejected", p.Answers["spark"].Status)
		require.Less(t, len(p.Findings[0].Text), 200)
	}
	loud := accepts("db", metadata("spark", strings.Repeat("\n<b>", 200)), Input{})
	require.NotContains(t, loud.Findings[0].Text, "\n")
	require.Less(t, len(loud.Findings[0].Text), 300)
	lying := strings.Replace(good, `"digest":"sha256:`, `"digest":"sha256:00`, 1)
	require.Equal(t, plan(good, nil).Hash, plan(lying, nil).Hash, "nobody trusts a digest of somebody else")
}

// The table of bad input, as far as a plan decides it.
func TestBadInput(t *testing.T) {
	t.Parallel()
	file := Decide(input(prediction("3"), noise())).Document
	change := func(state State, optional bool, f *Document) Plan {
		in := input(prediction("4"), noise())
		in.File = f
		in.Options.ConfigMaps[0].Optional = optional
		in.Seen["model-prediction"] = Seen{State: state, Verb: "get"}
		return Decide(in)
	}
	p := change(Missing, false, &file)
	require.Equal(t, []Problem{{KindConfigMap, "model-prediction", Missing}}, p.Document.Connections.Problems)
	require.Equal(t, []Finding{{Missing, "connections: configmap model-prediction not found", true}}, p.Findings)
	require.Len(t, p.Document.Connections.Items(), 1)
	p = change(Missing, true, &file)
	require.Empty(t, p.Findings)
	require.Empty(t, p.Document.Connections.Problems)
	require.Equal(t, Absent, p.Items[0].State)
	p = change(Forbidden, false, &file)
	require.Equal(t, file.Connections.Hash, p.Hash, "kept from the file")
	require.Contains(t, p.Findings[0].Text, `grant "get configmaps" (juju trust app --scope=cluster)`)
	require.Equal(t, []Problem{{KindConfigMap, "model-prediction", Stale}}, p.Document.Connections.Problems)
	p = change(Forbidden, false, nil)
	require.Equal(t, []Problem{{KindConfigMap, "model-prediction", Forbidden}}, p.Document.Connections.Problems)
	require.False(t, p.Hold)
	p = change(Stale, false, &file)
	require.Equal(t, string(file.Text()), string(p.Text), "nothing changes for a moment of the API")
	require.Empty(t, p.Findings)
	p = change(Stale, false, nil)
	require.True(t, p.Hold)
	require.False(t, p.Findings[0].Blocked)

	large := input(prediction("4"), noise())
	large.File = &file
	large.Seen["noise-recognition"] = Seen{State: OK, Size: MaxConfigMap + 1}
	p = Decide(large)
	require.Equal(t, string(file.Text()), string(p.Text), "unchanged")
	require.Equal(t, "connections: configmap noise-recognition is too large: 1048577 > 1048576 bytes", p.Findings[0].Text)
	total := input()
	for i := range 5 {
		name := fmt.Sprintf("c%d", i)
		total.Options.ConfigMaps = append(total.Options.ConfigMaps, Name{Name: name})
		total.Seen[name] = Seen{State: OK, Size: 900 << 10}
	}
	p = Decide(total)
	require.Equal(t, "connections: the configmaps are too large together: 4608000 > 4194304 bytes", p.Findings[0].Text)

	moved := prediction("3")
	moved.Labels = map[string]string{LabelType: "other"}
	p = Decide(input(moved, noise()))
	require.NotEqual(t, file.Connections.Hash, p.Hash)
	require.Contains(t, p.Document.Connections.ConfigMaps["other"], "model-prediction")

	order := Decide(func() Input {
		in := input(noise())
		in.Options = ParseOptions(map[string]any{OptConfigMaps: "gone shut", OptConnectable: "=", OptHook: "relative"}, "c")
		in.Seen = map[string]Seen{"gone": {State: Missing}, "shut": {State: Forbidden, Verb: "get"}}
		in.Remotes = []Remote{{"spark", "{"}, {"late", ""}}
		return in
	}())
	var states []State
	for _, f := range order.Findings {
		states = append(states, f.State)
	}
	require.Equal(t, []State{Invalid, Invalid, Missing, Forbidden, Rejected, Pending}, states, "what matters most comes first")
}

// A file in the container is no proof: what was changed in it is not taken over.
func TestDocument_Tampered(t *testing.T) {
	t.Parallel()
	d := Decide(input(prediction("3"), noise())).Document
	text := strings.Replace(string(d.Text()), `"version": "9"`, `"version": "10"`, 1)
	read, err := ParseDocument([]byte(text))
	require.NoError(t, err)
	require.Len(t, read.Connections.Items(), 1)
	require.NotEqual(t, d.Connections.Hash, read.Connections.Hash)
	for _, text := range []string{"", "{", "null", `{"schema":9}`, `{"schema":1,"connections":[]}`} {
		_, err := ParseDocument([]byte(text))
		require.Error(t, err, text)
	}
	read, err = ParseDocument([]byte(`{"schema":1}`))
	require.NoError(t, err)
	require.Equal(t, EmptyHash(), read.Connections.Hash)
	same, err := ParseDocument(d.Text())
	require.NoError(t, err)
	require.Equal(t, d.Connections.Hash, same.Connections.Hash)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o := ParseOptions(map[string]any{OptHook: "/opt/hook", OptHookTimeout: float64(5), OptCategory: "db"}, "c")
	require.Empty(t, o.Errs)
	require.Equal(t, "/opt/hook", o.Hook)
	require.Equal(t, 5*time.Second, o.HookTimeout)
	require.Equal(t, "db", o.Category)
	require.Equal(t, Options{Category: "c", HookTimeout: DefaultHookTimeout, Errs: map[string]error{}}, ParseOptions(nil, "c"))
	o = ParseOptions(map[string]any{OptHook: "a/b", OptHookTimeout: float64(0), OptCategory: "a b", OptConnectable: ",", OptConfigMaps: 7.0}, "c")
	require.Len(t, o.Errs, 3)
	require.Equal(t, DefaultHookTimeout, o.HookTimeout)
	require.True(t, o.Set())
}

// What other revisions, other charms or people wrote into the databags is never an error.
func TestPeerData_Hostile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", "null", "[]", `{"schema":2,"hash":"x"}`, `"x"`} {
		require.Zero(t, ParseDesired(text))
		require.Zero(t, ParseApplied(text))
	}
	require.Equal(t, Announced{}, ParseAnnounced("null"))
	require.Equal(t, Announced{}, ParseAnnounced("["))
	p := Decide(input(prediction("3")))
	d := Desired{}.Next(p)
	require.Equal(t, 1, d.Revision)
	require.Equal(t, d, ParseDesired(d.Text()))
	require.Equal(t, d, d.Next(p))
	require.Zero(t, Desired{}.Next(Decide(input())), "nothing wanted, nothing desired")
	require.Empty(t, Applied{}.Text())
	require.NotContains(t, d.Text(), "/models/p", "never content")
}

func TestEvents(t *testing.T) {
	t.Parallel()
	t.Run("conn-T92", func(t *testing.T) {
		var all []string
		add := func(news []News) {
			for _, n := range news {
				for _, notice := range n.Notices {
					on := "app"
					if notice.ConfigMap != "" {
						on = "configmap"
					}
					if notice.Warning {
						on += "!"
					}
					all = append(all, on+" "+notice.Reason+": "+notice.Message)
					require.LessOrEqual(t, len(notice.Reason), 128)
					require.LessOrEqual(t, len(notice.Message), 1024)
				}
			}
		}
		both := input(prediction("3"))
		both.Remotes = []Remote{{"spark", metadata("spark", "spark")}}
		p := Decide(both)
		add(Announced{}.Announce("app", p, map[string]string{"r": "1"}, nil))
		told := Announced{"configmap/model-prediction": "old", "cluster/spark": "old", "provided/r": "1"}
		add(told.Announce("app", p, map[string]string{"r": "2"}, []UnitRecord{{"app/0", Applied{Hash: p.Hash}}}))
		add(told.Announce("app", Decide(input()), nil, nil))
		bad := input(prediction("3"), noise(), ConfigMap{Name: "big"})
		bad.Seen["model-prediction"], bad.Seen["noise-recognition"] = Seen{State: Missing}, Seen{State: Forbidden, Verb: "get"}
		bad.Remotes = []Remote{{"db", metadata("db", "db")}, {"odd", "{"}}
		bad.Options.Connectable, _ = ParseConnectable("spark")
		add(Announced{}.Announce("app", Decide(bad), nil, []UnitRecord{
			{"app/0", Applied{Hash: "x", Hook: &HookRun{Hash: "x", RC: 3}}}, {"app/1", Applied{Hash: "x", Hook: &HookRun{Hash: "x", RC: -1, Timeout: true}}}}))
		large := input(ConfigMap{Name: "big"})
		large.Seen["big"] = Seen{State: OK, Size: MaxTotal}
		add(Announced{}.Announce("app", Decide(large), nil, nil))
		require.Equal(t, []string{
			"app ConnectionAdded: cluster {spark} connected",
			"app ConnectionAdded: configmap {model-prediction} connected",
			"configmap ConnectedTo: connected to application {app}",
			"app ConnectionChanged: connected cluster {spark} has changed; updating configmeta",
			"app ConnectionChanged: connected configmap {model-prediction} has changed; updating configmeta",
			"configmap ConnectionPropagating: connected to application {app}; updating it",
			"app ConnectionPropagating: connected to application {r}; updating it",
			"app ConnectionsApplied: configmeta " + Short(p.Hash) + " applied on 1/1 units",
			"app ConnectionRemoved: cluster {spark} disconnected",
			"app ConnectionRemoved: configmap {model-prediction} disconnected",
			"configmap ConnectionRemoved: disconnected from application {app}",
			`app! ConnectionProblem: cluster {db} refused: category "db" not in connectable-to`,
			"app! ConnectionProblem: cluster {odd} has sent metadata that cannot be read",
			"app ConnectionAdded: configmap {big} connected",
			"configmap ConnectedTo: connected to application {app}",
			"app! ConnectionProblem: connected configmap {model-prediction} does not exist",
			`app! ConnectionProblem: connected configmap {noise-recognition} may not be read: grant "get configmaps" (juju trust)`,
			"app! ConnectionsHookFailed: unit {app/0}: connections hook exited 3",
			"app! ConnectionsHookFailed: unit {app/1}: connections hook did not end in time",
			"app! ConnectionProblem: connected configmap {big} is too large: more than 1048576 bytes, or more than 4194304 together with the others",
		}, all)
	})
	n := Notice{Reason: ReasonAdded, Digest: "d"}
	require.Equal(t, n.EventName("app", "u"), n.EventName("app", "u"))
	require.NotEqual(t, n.EventName("app", "u"), n.EventName("app", "v"))
	require.LessOrEqual(t, len(n.EventName(strings.Repeat("a", 253), "u")), 253)

	// A problem that goes is not told as a new connection.
	p := Decide(input(prediction("3")))
	told := Announced{}
	for _, news := range told.Announce("app", p, nil, nil) {
		told[news.Key] = news.Value
	}
	shut := input(prediction("3"))
	shut.File, shut.Seen["model-prediction"] = &p.Document, Seen{State: Forbidden, Verb: "get"}
	problem := told.Announce("app", Decide(shut), nil, nil)
	require.Len(t, problem[0].Notices, 1)
	told[problem[0].Key] = problem[0].Value
	require.Empty(t, told.Announce("app", Decide(shut), nil, nil), "told once")
	back := told.Announce("app", p, nil, nil)
	require.Empty(t, back[0].Notices)
	told[back[0].Key] = back[0].Value
	require.Empty(t, told.Announce("app", p, nil, nil))
	held := p
	held.Hold = true
	require.Empty(t, Announced{"configmap/gone": "d"}.Announce("app", held, nil, nil))
}

func TestUnitStep(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	p3, p4 := Decide(input(prediction("3"))), Decide(input(prediction("4")))
	step := DecideUnit(p3, nil, nil, Applied{}, true, now)
	require.Equal(t, UnitStep{Push: true, First: true}, step, "a first delivery is no change to anybody")
	a := Applied{}.After(p3, step, nil, true)
	require.Equal(t, Applied{Hash: p3.Hash, Hook: &HookRun{Hash: p3.Hash}, Schema: 0}, a)
	require.Equal(t, UnitStep{}, DecideUnit(p3, &p3.Document, p3.Text, a, true, now))
	step = DecideUnit(p4, &p3.Document, p3.Text, a, true, now)
	require.Equal(t, UnitStep{Push: true, Hook: true, Changed: []string{"configmap/model-prediction"}}, step)
	put := a.After(p4, step, nil, true) // put off
	step = DecideUnit(p4, &p4.Document, p4.Text, put, true, now)
	require.Equal(t, UnitStep{Hook: true, Changed: []string{"configmap/model-prediction"}}, step)
	lost := DecideUnit(p4, &p4.Document, p4.Text, a, true, now)
	require.True(t, lost.Hook && !lost.Push, "pushed by a hook that was lost")
	require.Equal(t, []string{"configmap/model-prediction"}, lost.Changed)
	failed := Applied{Hash: p4.Hash, Hook: &HookRun{Hash: p4.Hash, RC: 3, Attempts: 1, At: now.Format(time.RFC3339), Changed: []string{"cluster/x"}}}
	require.True(t, DecideUnit(p4, &p4.Document, p4.Text, failed, true, now.Add(time.Second)).Later)
	again := DecideUnit(p4, &p4.Document, p4.Text, failed, true, now.Add(time.Minute))
	require.Equal(t, UnitStep{Hook: true, Changed: []string{"cluster/x"}}, again)
	failed.Hook.Attempts = MaxAttempts
	require.True(t, DecideUnit(p4, &p4.Document, p4.Text, failed, true, now.Add(time.Minute)).Exhausted)
	require.True(t, DecideUnit(p3, &p4.Document, p4.Text, failed, true, now.Add(time.Minute)).Hook, "a new hash starts again")
	require.Zero(t, Applied{}.After(Decide(input()), UnitStep{}, nil, true), "nothing connected, nothing recorded")
	hold := p4
	hold.Hold = true
	require.Zero(t, DecideUnit(hold, nil, nil, Applied{}, true, now))
}

func TestQuery(t *testing.T) {
	t.Parallel()
	in := input(prediction("3"), noise(), ConfigMap{Name: "krb", Data: map[string]string{"krb5.conf": "[a]\n", "krb5": "other"}})
	in.Remotes = []Remote{{"spark", metadata("spark", "spark")}}
	tree, err := Tree(Decide(in).Text)
	require.NoError(t, err)
	raw := func(key string) string {
		found, err := Get(tree, key)
		require.NoError(t, err, key)
		return Raw(found)
	}
	require.Equal(t, "[a]\n", raw("connections.configmaps.untyped.krb.data.krb5.conf"), "a key with a dot")
	require.Equal(t, "other", raw("connections.configmaps.untyped.krb.data.krb5"))
	require.Equal(t, "http://spark-0:8998", raw("connections.clusters.spark.services.livy.endpoints.0"))
	require.Equal(t, "1", raw("schema"))
	require.Empty(t, raw("connections.problems"))
	_, err = Get(tree, "connections.configmaps.model.x")
	require.ErrorIs(t, err, ErrNoKey)
	for _, pointer := range []string{"x", "/nosuch", "/connections/clusters/spark/services/livy/endpoints/7"} {
		_, err = Pointer(tree, pointer)
		require.ErrorIs(t, err, ErrNoKey, pointer)
	}
	found, err := Pointer(tree, "/connections/clusters/spark/services/livy/endpoints/0")
	require.NoError(t, err)
	require.Equal(t, `"http://spark-0:8998"`, JSON(found))
	_, err = Tree([]byte("{"))
	require.Error(t, err)
}

// Whatever stands in a databag or in an option, a plan is made and encodes.
func FuzzDecide(f *testing.F) {
	f.Add("a,b?", "spark+x", metadata("spark", "spark"), "/hook")
	f.Fuzz(func(t *testing.T, names, rule, remote, hook string) {
		o := ParseOptions(map[string]any{OptConfigMaps: names, OptConnectable: rule, OptHook: hook}, "c")
		p := Decide(Input{Options: o, Remotes: []Remote{{"spark", remote}}, Seen: map[string]Seen{}})
		require.True(t, json.Valid(p.Text))
		read, err := ParseDocument(p.Text)
		require.NoError(t, err)
		require.Equal(t, p.Hash, read.Connections.Hash)
	})
}
