// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// MaxFollowDelay is how long after the change of a connected ConfigMap a unit's document may stay as it was.
const MaxFollowDelay = 2 * time.Second

// What the chapter knows of the charm's connections.
const (
	mapsOption      = "connected-configmaps"
	keyApplied      = "connections-applied"
	connectionType  = "drawbridge-k8s.charm/connection-type"
	bridgeContainer = "gateway"
	clientContainer = "app"
	changedMap      = "model-prediction"
	deletedMap      = "noise-recognition"
	versionKey      = "connections.configmaps.model." + changedMap + ".data.version"
)

// manifest is the two ConfigMaps, the first one in a version.
func manifest(version string) string {
	one := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  labels: {%s: model}\ndata: {version: \"%s\"}\n"
	return fmt.Sprintf(one, changedMap, connectionType, version) + "---\n" + fmt.Sprintf(one, deletedMap, connectionType, "9")
}

// connections connects ConfigMaps and applications, changes one, and deletes one.
func (g *guide) connections(ctx context.Context) (outcome, error) {
	var out outcome
	if err := g.connect(ctx); err != nil {
		return out, err
	}
	if err := g.settle(ctx, &out); err != nil || len(out.problems) > 0 {
		return out, err
	}
	if err := g.readDocuments(ctx, &out, "3"); err != nil {
		return out, err
	}
	if err := g.changeMap(ctx, &out); err != nil {
		return out, err
	}
	if err := g.showEvents(ctx, &out); err != nil {
		return out, err
	}
	return out, g.deleteMap(ctx, &out)
}

// connect makes what is to be connected, and connects it.
func (g *guide) connect(ctx context.Context) error {
	g.story.command("cluster apply -f configmaps.yaml")
	if _, err := g.stage.ApplyObjects(ctx, manifest("3")); err != nil {
		return err
	}
	names := changedMap + "," + deletedMap
	g.story.command("config " + bridgeApp + " " + mapsOption + "=" + names)
	err := g.stage.SetConfig(ctx, control.ConfigChange{Application: bridgeApp, Set: map[string]string{mapsOption: names}})
	if err != nil {
		return err
	}
	for _, ends := range [][2]string{
		{bridgeApp + ":connections", backendApp + ":connection"}, {clientApp + ":connections", bridgeApp + ":connection"},
	} {
		g.story.command("integrate " + ends[0] + " " + ends[1])
		if _, err := g.stage.Integrate(ctx, ends[0], ends[1]); err != nil {
			return err
		}
	}
	return g.await(ctx, "every unit has a document with them", func(ctx context.Context) (bool, error) {
		for i := range g.options.Units {
			keys, err := g.connq(ctx, fmt.Sprintf("%s/%d", bridgeApp, i), bridgeContainer, "get", "connections.clusters")
			if err != nil || keys != backendApp {
				return false, err
			}
			if keys, err = g.connq(ctx, fmt.Sprintf("%s/%d", bridgeApp, i), bridgeContainer, "get", versionKey); err != nil || keys != "3" {
				return false, err
			}
		}
		keys, err := g.connq(ctx, clientUnit, clientContainer, "get", "connections.clusters")
		return keys == bridgeApp, err
	})
}

// await waits for something that the tour cannot go on without.
func (g *guide) await(ctx context.Context, what string, check func(context.Context) (bool, error)) error {
	waiting, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err := g.stage.Wait(waiting, check)
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		return fmt.Errorf("not so after %s: %s", settleTimeout, what)
	}
	if err == nil {
		g.story.say("%s", what)
	}
	return err
}

// connq asks a unit's document inside its workload container. What is not there is "".
func (g *guide) connq(ctx context.Context, unit, container string, words ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	code, err := g.stage.Shell(ctx, control.ShellRequest{Unit: unit, Container: container, Command: append([]string{connqPath}, words...)},
		control.Streams{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr})
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot ask the document of %s: %w", unit, err)
	case code != 0:
		return "", nil
	}
	return strings.TrimSpace(stdout.String()), nil
}

// connqPath is where the charm brings its query program.
const connqPath = "/usr/local/bin/connq"

// readDocuments reads every unit's document, and what the client learns of the gateway.
func (g *guide) readDocuments(ctx context.Context, out *outcome, version string) error {
	read := 0
	for i := range g.options.Units {
		unit := fmt.Sprintf("%s/%d", bridgeApp, i)
		got, err := g.connq(ctx, unit, bridgeContainer, "get", versionKey)
		if err != nil {
			return err
		}
		if got != version {
			out.problems = append(out.problems, fmt.Sprintf("the document of %s has version %q, want %s", unit, got, version))
			continue
		}
		read++
	}
	g.story.say("%d units have version %s in their document", read, version)
	out.rows = &read
	endpoint, err := g.connq(ctx, clientUnit, clientContainer, "cluster", bridgeApp, "mysql")
	if err == nil && endpoint == "" {
		out.problems = append(out.problems, "the client's document does not have the gateway's address")
	}
	g.story.say("the client's document says that the gateway is at %s", strings.ReplaceAll(endpoint, "\n", " and "))
	return err
}

// changeMap changes one ConfigMap and measures until when every unit has it.
func (g *guide) changeMap(ctx context.Context, out *outcome) error {
	asked := time.Now()
	g.story.restart(asked)
	g.story.command("cluster apply -f configmaps.yaml   # version 4")
	if _, err := g.stage.ApplyObjects(ctx, manifest("4")); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	told := map[string]time.Time{}
	err := g.seen.await(waiting, func() bool {
		for _, e := range since(g.seen.entries, asked) {
			if _, known := told[e.Unit]; !known && applies(e) {
				told[e.Unit] = e.Time
				g.story.sayAt(e.Time, "%s has it", e.Unit)
			}
		}
		return len(told) == g.options.Units
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		out.problems = append(out.problems, fmt.Sprintf("%d of %d units have followed after %s", len(told), g.options.Units, changeTimeout))
		return errStuck
	}
	if err != nil {
		return err
	}
	var last time.Duration
	for _, at := range told {
		last = max(last, at.Sub(asked))
	}
	ms := last.Milliseconds()
	out.followMS = &ms
	if last > MaxFollowDelay {
		out.problems = append(out.problems, fmt.Sprintf("the last document followed %d ms after the change, more than %d ms", ms, MaxFollowDelay.Milliseconds()))
	}
	return g.readDocuments(ctx, out, "4")
}

// applies reports whether a commit records that a unit's workload has another document.
func applies(e model.JournalEntry) bool {
	return slices.ContainsFunc(e.Writes, func(w model.JournalWrite) bool {
		return w.Endpoint == peerEndpoint && w.Key == keyApplied && w.Bag == e.Unit && !w.Deleted
	})
}

// showEvents shows what both objects tell of the change.
func (g *guide) showEvents(ctx context.Context, out *outcome) error {
	g.story.command("cluster events")
	events, err := g.stage.Events(ctx, "")
	if err != nil {
		return err
	}
	wanted := map[string]string{"ConnectionChanged": "StatefulSet/" + bridgeApp, "ConnectionPropagating": "ConfigMap/" + changedMap}
	found := map[string]bool{}
	for _, e := range events {
		if wanted[e.Reason] == e.Object && strings.Contains(e.Message, "{"+changedMap+"}") || e.Object == wanted["ConnectionPropagating"] && wanted[e.Reason] == e.Object {
			found[e.Reason] = true
			g.story.block(fmt.Sprintf("%s %s %s: %s\n", e.Object, e.Type, e.Reason, e.Message))
		}
	}
	for reason, object := range wanted {
		if !found[reason] {
			out.problems = append(out.problems, fmt.Sprintf("%s has no Event %s", object, reason))
		}
	}
	return nil
}

// deleteMap deletes a connected ConfigMap, sees the status say so, and takes it off the list.
func (g *guide) deleteMap(ctx context.Context, out *outcome) error {
	g.story.command("cluster delete configmap " + deletedMap)
	if err := g.stage.DeleteObject(ctx, "configmap", deletedMap); err != nil {
		return err
	}
	err := g.await(ctx, "every unit says that it is missing", func(ctx context.Context) (bool, error) {
		status, err := g.stage.Status(ctx)
		if err != nil {
			return false, err
		}
		missing := 0
		for _, u := range status.Applications[bridgeApp].Units {
			if u.Workload.Status == "blocked" && strings.Contains(u.Workload.Message, "configmap "+deletedMap+" not found") {
				missing++
			}
		}
		return missing == g.options.Units, nil
	})
	if err != nil {
		return err
	}
	g.snapshot(ctx)
	g.story.command("config " + bridgeApp + " " + mapsOption + "=" + changedMap)
	err = g.stage.SetConfig(ctx, control.ConfigChange{Application: bridgeApp, Set: map[string]string{mapsOption: changedMap}})
	if err != nil {
		return err
	}
	return g.settle(ctx, out)
}
