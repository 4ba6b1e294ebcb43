// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Bounds of what the tour waits for.
const (
	deployTimeout = 120 * time.Second
	changeTimeout = 60 * time.Second
	settleTimeout = 45 * time.Second
	actionTimeout = 30 * time.Second
)

// guide leads through the steps: what it has learned, and the tools that every step uses.
type guide struct {
	options   Options
	stage     Stage
	story     *narrator
	seen      *observer
	namespace string
	domain    string
	relation  int
	login     Login
	inside    *probe
	outside   *probe
}

// outcome is what a step found out.
type outcome struct {
	delayMS  *int64
	followMS *int64
	rows     *int
	moved    bool
	problems []string
}

// errStuck ends the tour: what comes next would start from an unknown state.
var errStuck = errors.New("stuck")

// change is one switch of the exposure: how it is asked for, and what has to come of it.
type change struct {
	// command is what a user would type.
	command string
	ask     func(ctx context.Context) error
	// mode is the exposure that is asked for.
	mode string
	// meanwhile is done once, as soon as the charm has said that it waits.
	meanwhile func(ctx context.Context) error
}

// switchTo drives one change, waits until the client has been told, and judges it.
func (g *guide) switchTo(ctx context.Context, c change) (outcome, error) {
	nodes, err := g.bridgeNodes(ctx)
	if err != nil {
		return outcome{}, err
	}
	f := &follower{guide: g, change: c, nodes: nodes, known: map[string]bool{}, told: map[string]bool{}}
	if err := f.begin(); err != nil {
		return outcome{}, err
	}
	f.asked = time.Now()
	g.story.restart(f.asked)
	g.story.command(c.command)
	if err := c.ask(ctx); err != nil {
		return outcome{}, err
	}
	waiting, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	err = f.follow(waiting)
	out := f.outcome()
	switch {
	case ctx.Err() != nil:
		return out, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		out.problems = append(out.problems, fmt.Sprintf("not done after %s", changeTimeout))
		g.snapshot(ctx)
		return out, errStuck
	case err != nil:
		return out, err
	}
	out.problems = append(out.problems, f.problems...)
	return out, g.settle(ctx, &out)
}

// name gives addresses to the probers; their next answers count as first ones.
func (g *guide) name(addresses []string) error {
	if len(addresses) == 0 {
		return nil
	}
	now := time.Now()
	g.seen.update(func() {
		for _, address := range addresses {
			g.seen.named[address] = now
			delete(g.seen.inside, address)
			delete(g.seen.outside, address)
		}
	})
	outside := slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return strings.HasPrefix(a, serviceName) })
	return errors.Join(g.inside.order(ProbeOrder{Addresses: addresses}), g.outside.order(ProbeOrder{Addresses: outside}))
}

// forget takes all addresses from the probers.
func (g *guide) forget() error {
	var all []string
	g.seen.update(func() {
		all = slices.Sorted(maps.Keys(g.seen.named))
		clear(g.seen.named)
		clear(g.seen.inside)
		clear(g.seen.outside)
	})
	if len(all) == 0 {
		return nil
	}
	return errors.Join(g.inside.order(ProbeOrder{Drop: all}), g.outside.order(ProbeOrder{Drop: all}))
}

// foreseen are the addresses that a mode will have, as far as the Service shows them already: they are probed before the
// switch is asked for.
func (g *guide) foreseen(mode string, nodes []string) []string {
	g.seen.mu.Lock()
	defer g.seen.mu.Unlock()
	switch mode {
	case modeOff:
		return []string{g.clusterAddress()}
	case modeNodePort:
		return nodeAddresses(g.seen.service, nodes)
	default:
		return nil
	}
}

// expected is the address set that Kubernetes reports for a mode now; empty while the Service is not of that mode.
func (g *guide) expected(mode string, nodes []string) []string {
	service := g.seen.service
	if service == nil {
		return nil
	}
	switch {
	case mode == modeOff && service.Spec.Type == corev1.ServiceTypeClusterIP:
		return []string{g.clusterAddress()}
	case mode == modeNodePort && service.Spec.Type == corev1.ServiceTypeNodePort:
		return nodeAddresses(service, nodes)
	case mode == modeBalancer && service.Spec.Type == corev1.ServiceTypeLoadBalancer:
		var all []string
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			if host := ingress.IP + ingress.Hostname; host != "" {
				all = append(all, net.JoinHostPort(host, strconv.Itoa(readWritePort)))
			}
		}
		slices.Sort(all)
		return all
	}
	return nil
}

func (g *guide) clusterAddress() string {
	return fmt.Sprintf("%s.%s.svc.%s.:%d", serviceName, g.namespace, g.domain, readWritePort)
}

// nodeAddresses are the read-write port of a Service on nodes.
func nodeAddresses(service *corev1.Service, nodes []string) []string {
	if service == nil {
		return nil
	}
	var all []string
	for _, port := range service.Spec.Ports {
		if port.Port != readWritePort || port.NodePort == 0 {
			continue
		}
		for _, node := range nodes {
			all = append(all, net.JoinHostPort(node, strconv.Itoa(int(port.NodePort))))
		}
	}
	slices.Sort(all)
	return all
}

// bridgeNodes returns the addresses of the nodes on which the charm has units.
func (g *guide) bridgeNodes(ctx context.Context) ([]string, error) {
	view, err := g.stage.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, node := range view.Nodes {
		if !slices.ContainsFunc(node.Units, func(unit string) bool { return strings.HasPrefix(unit, bridgeApp+"/") }) {
			continue
		}
		address := node.ExternalIP
		if address == "" {
			address = node.InternalIP
		}
		all = append(all, address)
	}
	return all, nil
}

// settle waits until the charm is active and has nothing left to do.
func (g *guide) settle(ctx context.Context, out *outcome) error {
	waiting, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err := g.stage.Wait(waiting, func(ctx context.Context) (bool, error) {
		status, err := g.stage.Status(ctx)
		return err == nil && settled(status, g.options.Units), err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if waiting.Err() != nil {
		out.problems = append(out.problems, fmt.Sprintf("not active and idle %s after the switch", settleTimeout))
		g.snapshot(ctx)
		return nil
	}
	return err
}

// settled reports whether every unit is active and idle.
func settled(s model.Status, units int) bool {
	if len(s.Applications[bridgeApp].Units) != units {
		return false
	}
	for _, name := range []string{backendApp, bridgeApp, clientApp} {
		application := s.Applications[name]
		for _, u := range application.Units {
			if u.Workload.Status != "active" || !u.Idle || u.Error != "" {
				return false
			}
		}
		if len(application.Units) == 0 {
			return false
		}
	}
	return true
}

// snapshot shows the status as the operator sees it now.
func (g *guide) snapshot(ctx context.Context) {
	status, err := g.stage.Status(ctx)
	if err != nil {
		g.story.say("cannot show the status: %v", err)
		return
	}
	g.story.command("status")
	g.story.block(g.options.Render(status))
}

// query runs one statement through an address, in the client's pod or outside the cluster.
func (g *guide) query(ctx context.Context, where control.ShellRequest, address, sql string) (int, error) {
	order, err := json.Marshal(QueryOrder{Login: g.login, Address: address, SQL: sql})
	if err != nil {
		return 0, fmt.Errorf("cannot order a query: %w", err)
	}
	where.Command = []string{control.BinaryInPod, QueryCommand}
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	code, err := g.stage.Shell(ctx, where, control.Streams{Stdin: bytes.NewReader(order), Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		return 0, fmt.Errorf("cannot query through %s: %w", address, err)
	}
	var answer QueryAnswer
	if code != 0 || json.Unmarshal(stdout.Bytes(), &answer) != nil {
		return 0, fmt.Errorf("cannot query through %s: exit code %d: %s", address, code, bytes.TrimSpace(stderr.Bytes()))
	}
	if answer.Error != "" {
		return 0, fmt.Errorf("cannot query through %s: %s", address, answer.Error)
	}
	return answer.Rows, nil
}

// act runs an action and returns its results.
func (g *guide) act(ctx context.Context, unit, action string, params map[string]any) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	operation, err := g.stage.Run(ctx, control.RunRequest{Units: []string{unit}, Action: action, Params: params})
	if err != nil {
		return nil, err
	}
	for seen := 0; ; {
		task, err := g.stage.WaitTask(ctx, operation.Tasks[0].ID, seen)
		switch {
		case err != nil:
			return nil, fmt.Errorf("cannot run %s on %s: %w", action, unit, err)
		case !task.Status.Finished():
			seen = len(task.Log)
		case task.Status != model.ActionCompleted:
			return nil, fmt.Errorf("cannot run %s on %s: %s", action, unit, task.Message)
		default:
			return task.Results, nil
		}
	}
}

// bridgeBag returns what the charm has written for the client.
func (g *guide) bridgeBag(s model.Status) (int, map[string]string) {
	for _, r := range s.Relations {
		for _, end := range r.Ends {
			if end.App == clientApp && end.Name == clientEndpoint {
				return r.ID, r.Bags[bridgeApp]
			}
		}
	}
	return 0, nil
}
