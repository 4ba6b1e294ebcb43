// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// Delays of the load balancer: from the wish to the address, and from the address to its first answer.
const (
	assignDelay = 4 * time.Second
	answerDelay = 4 * time.Second
	moveDelay   = time.Second

	// reviveDelay is the answer delay while the leader's pod dies: the unit must be back before the address answers, on a
	// busy machine too.
	reviveDelay = 10 * time.Second
)

// step is one part of the tour.
type step struct {
	name string
	what string
	run  func(*guide, context.Context) (outcome, error)
}

// steps is the tour, in its order.
func steps() []step {
	return []step{
		{"deploy", "a database, drawbridge-k8s in front of it, and a client", (*guide).deploy},
		{"loadbalancer", "the address comes after 4 s and answers after 8 s", (*guide).loadBalancer},
		{"nodeport", "from outside through each node", (*guide).nodePort},
		{"kill-leader", "the leader's pod dies while a switch is pending", (*guide).killLeader},
		{"address-moves", "the load balancer gives the Service another address", (*guide).addressMoves},
		{"off", "back to the inside of the cluster", (*guide).off},
		{"connections", "ConfigMaps and applications in every unit's document", (*guide).connections},
	}
}

// StepNames are the names of all steps, in their order.
func StepNames() []string {
	var names []string
	for _, s := range steps() {
		names = append(names, s.name)
	}
	return names
}

// The table that the client reads.
const (
	createTable = "CREATE TABLE IF NOT EXISTS tour (id INT PRIMARY KEY, note VARCHAR(40))"
	fillTable   = "REPLACE INTO tour VALUES (1, 'inside'), (2, 'outside'), (3, 'and back')"
	readTable   = "SELECT id, note FROM tour ORDER BY id"
	tableRows   = 3
)

// deploy brings the model up and reads rows as the client.
func (g *guide) deploy(ctx context.Context) (outcome, error) {
	begun := time.Now()
	if err := g.build(ctx); err != nil {
		return outcome{}, err
	}
	waiting, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	err := g.stage.Wait(waiting, func(ctx context.Context) (bool, error) {
		status, err := g.stage.Status(ctx)
		if err != nil {
			return false, err
		}
		_, bag := g.bridgeBag(status)
		return bag[keyEndpoints] != "" && settled(status, g.options.Units), nil
	})
	g.snapshot(ctx)
	if err != nil {
		if ctx.Err() == nil && waiting.Err() != nil {
			return outcome{problems: []string{fmt.Sprintf("not active and idle after %s", deployTimeout)}}, errStuck
		}
		return outcome{}, err
	}
	address, err := g.meet(ctx)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{moved: g.movedSince(begun)}
	if out.moved {
		out.problems = append(out.problems, "the client's databag changed while the Service was pending")
	}
	for _, sql := range []string{createTable, fillTable} {
		if _, err := g.query(ctx, control.ShellRequest{Unit: clientUnit}, address, sql); err != nil {
			return out, err
		}
	}
	return out, g.readAsClient(ctx, &out, address)
}

// build deploys and integrates.
func (g *guide) build(ctx context.Context) error {
	charm := func(file string) string { return filepath.Join(g.options.Charms, file) }
	for _, r := range []control.DeployRequest{
		{Charm: charm(backendCharm), Application: backendApp, Units: 1, Resources: map[string]string{"mariadb-image": "host"}},
		{Charm: charm(bridgeCharm), Application: bridgeApp, Units: g.options.Units, Trust: true, Resources: map[string]string{"gateway-image": "host"}},
		{Charm: charm(clientCharm), Application: clientApp, Units: 1, Resources: map[string]string{"app-image": "host"}},
	} {
		g.story.command(deployCommand(r))
		if _, err := g.stage.Deploy(ctx, r); err != nil {
			return err
		}
	}
	for _, ends := range [][2]string{
		{bridgeApp + ":backend-database", backendApp + ":database"},
		{clientApp + ":" + clientEndpoint, bridgeApp + ":database"},
	} {
		g.story.command("integrate " + ends[0] + " " + ends[1])
		if _, err := g.stage.Integrate(ctx, ends[0], ends[1]); err != nil {
			return err
		}
	}
	return nil
}

func deployCommand(r control.DeployRequest) string {
	text := "deploy " + filepath.Base(r.Charm)
	if r.Units != 1 {
		text += fmt.Sprintf(" -n %d", r.Units)
	}
	for name, value := range r.Resources {
		text += " --resource " + name + "=" + value
	}
	if r.Trust {
		text += " --trust"
	}
	return text
}

// meet learns what the client was given, and starts the probers with it. It returns the client's first address.
func (g *guide) meet(ctx context.Context) (string, error) {
	status, err := g.stage.Status(ctx)
	if err != nil {
		return "", err
	}
	var bag map[string]string
	g.relation, bag = g.bridgeBag(status)
	secret, err := g.stage.ShowSecret(ctx, bag[keySecret], true)
	if err != nil {
		return "", fmt.Errorf("cannot read the client's secret: %w", err)
	}
	g.login = Login{Username: secret.Content["username"], Password: secret.Content["password"], Database: bag[keyDatabase]}
	if g.login.Username == "" || g.login.Password == "" {
		return "", errors.New("cannot log in as the client: its secret has no username and password")
	}
	if g.inside, err = g.seen.startProbe(ctx, control.ShellRequest{Unit: clientUnit}, g.login, g.seen.inside); err != nil {
		return "", err
	}
	if g.outside, err = g.seen.startProbe(ctx, control.ShellRequest{Outside: true}, g.login, g.seen.outside); err != nil {
		return "", err
	}
	address, _, _ := strings.Cut(bag[keyEndpoints], ",")
	return address, nil
}

// movedSince reports whether a client's databag changed while the charm had its flag up.
func (g *guide) movedSince(moment time.Time) bool {
	g.seen.mu.Lock()
	defer g.seen.mu.Unlock()
	return movedWhilePending(evidence{relation: g.relation, entries: since(g.seen.entries, moment)})
}

// readAsClient reads the table with the client's own action, through the address that the client was told.
func (g *guide) readAsClient(ctx context.Context, out *outcome, address string) error {
	g.story.command(`run ` + clientUnit + ` query sql="` + readTable + `"`)
	results, err := g.act(ctx, clientUnit, "query", map[string]any{"sql": readTable})
	if err != nil {
		return err
	}
	rows, err := rowsOf(results)
	if err != nil {
		return err
	}
	out.rows = &rows
	g.story.say("the client reads %d rows through %s", rows, address)
	if rows != tableRows {
		out.problems = append(out.problems, fmt.Sprintf("the client read %d rows, want %d", rows, tableRows))
	}
	return nil
}

// readFromOutside reads the table from outside the cluster through each address that the client was told.
func (g *guide) readFromOutside(ctx context.Context, out *outcome) error {
	status, err := g.stage.Status(ctx)
	if err != nil {
		return err
	}
	_, bag := g.bridgeBag(status)
	total := 0
	addresses := strings.Split(bag[keyEndpoints], ",")
	for _, address := range addresses {
		rows, err := g.query(ctx, control.ShellRequest{Outside: true}, address, readTable)
		if err != nil {
			out.problems = append(out.problems, err.Error())
			continue
		}
		g.story.say("a host outside the cluster reads %d rows through %s", rows, address)
		total += rows
	}
	out.rows = &total
	if want := tableRows * len(addresses); total != want {
		out.problems = append(out.problems, fmt.Sprintf("%d rows were read from outside, want %d", total, want))
	}
	return nil
}

// expose asks for a mode by the charm's option.
func (g *guide) expose(mode string) change {
	return change{
		command: fmt.Sprintf("config %s %s=%s", bridgeApp, modeOption, mode),
		mode:    mode,
		ask: func(ctx context.Context) error {
			return g.stage.SetConfig(ctx, control.ConfigChange{Application: bridgeApp, Set: map[string]string{modeOption: mode}})
		},
	}
}

// balance sets the delays of the load balancer.
func (g *guide) balance(ctx context.Context, assign, answer time.Duration) error {
	g.story.command(fmt.Sprintf("cluster lb --assign-delay %s --answer-delay %s", assign, answer))
	_, err := g.stage.SetLoadBalancer(ctx, control.LBChange{AssignDelay: &assign, AnswerDelay: &answer})
	return err
}

func (g *guide) loadBalancer(ctx context.Context) (outcome, error) {
	if err := g.balance(ctx, assignDelay, answerDelay); err != nil {
		return outcome{}, err
	}
	out, err := g.switchTo(ctx, g.expose(modeBalancer))
	if err != nil {
		return out, err
	}
	if err := g.readFromOutside(ctx, &out); err != nil {
		return out, err
	}
	g.snapshot(ctx)
	return out, nil
}

func (g *guide) nodePort(ctx context.Context) (outcome, error) {
	out, err := g.switchTo(ctx, g.expose(modeNodePort))
	if err != nil {
		return out, err
	}
	return out, g.readFromOutside(ctx, &out)
}

func (g *guide) killLeader(ctx context.Context) (outcome, error) {
	if err := g.balance(ctx, assignDelay, reviveDelay); err != nil {
		return outcome{}, err
	}
	c := g.expose(modeBalancer)
	c.meanwhile = g.killIdleLeader
	out, err := g.switchTo(ctx, c)
	if err != nil {
		return out, err
	}
	if err := g.readFromOutside(ctx, &out); err != nil {
		return out, err
	}
	g.snapshot(ctx)
	return out, nil
}

// killIdleLeader kills the leader's pod between two hooks. One that dies in a hook is in error when it is back, and Juju
// waits 5 s before it runs the hook again: that would measure Juju, not the charm.
func (g *guide) killIdleLeader(ctx context.Context) error {
	err := g.stage.Wait(ctx, func(ctx context.Context) (bool, error) {
		status, err := g.stage.Status(ctx)
		if err != nil {
			return false, err
		}
		for _, u := range status.Applications[bridgeApp].Units {
			if u.Leader && u.Idle {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	g.story.command("kill pod " + bridgeApp + "/leader")
	return g.stage.Kill(ctx, control.KillPod, bridgeApp+"/leader")
}

func (g *guide) addressMoves(ctx context.Context) (outcome, error) {
	if err := g.balance(ctx, 0, moveDelay); err != nil {
		return outcome{}, err
	}
	g.seen.mu.Lock()
	balanced := len(g.expected(modeBalancer, nil)) > 0
	g.seen.mu.Unlock()
	if !balanced { // the step runs without those before it
		if out, err := g.switchTo(ctx, g.expose(modeBalancer)); err != nil || len(out.problems) > 0 {
			return out, err
		}
	}
	out, err := g.switchTo(ctx, change{
		command: "cluster lb --move " + serviceName,
		mode:    modeBalancer,
		ask: func(ctx context.Context) error {
			_, err := g.stage.SetLoadBalancer(ctx, control.LBChange{Move: serviceName})
			return err
		},
	})
	if err != nil {
		return out, err
	}
	return out, g.readFromOutside(ctx, &out)
}

func (g *guide) off(ctx context.Context) (outcome, error) {
	out, err := g.switchTo(ctx, g.expose(modeOff))
	if err != nil {
		return out, err
	}
	g.snapshot(ctx)
	return out, g.readAsClient(ctx, &out, g.clusterAddress())
}

// rowsOf reads the number of rows from the results of the client's action.
func rowsOf(results map[string]any) (int, error) {
	switch n := results["count"].(type) {
	case float64:
		return int(n), nil
	case int:
		return n, nil
	case string:
		var rows int
		if _, err := fmt.Sscan(n, &rows); err == nil {
			return rows, nil
		}
	}
	return 0, fmt.Errorf("cannot read the results of query: no number of rows in them")
}

// selectSteps returns the steps of these names, in the tour's order; deploy is always the first. None means all.
func selectSteps(names []string) ([]step, error) {
	all := steps()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if !slices.Contains(StepNames(), name) {
			return nil, fmt.Errorf("cannot run step %q: the steps are %s", name, strings.Join(StepNames(), ", "))
		}
	}
	return slices.DeleteFunc(all, func(s step) bool { return s.name != "deploy" && !slices.Contains(names, s.name) }), nil
}
