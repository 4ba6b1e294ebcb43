// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package workload runs the gateway: HAProxy in the workload container, driven
// through the container's Pebble.
//
// Nothing is remembered between calls. What runs is asked from HAProxy itself:
// its configuration carries a hash, which HAProxy tells on a loopback port that
// the charm's container shares with it. So a configuration that was written but
// never loaded is loaded by the next call, and a restarted container is filled
// again.
package workload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path"
	"strings"
	"time"
	"unicode"
)

const (
	serviceName = "haproxy"
	checkName   = "haproxy"
	layerLabel  = "drawbridge"

	// settling is how long after its start HAProxy's master may not yet be
	// ready for signals; SIGUSR2 would kill it.
	settling = time.Second
	// startLimit and reloadLimit bound waiting for HAProxy to answer.
	startLimit  = 5 * time.Second
	reloadLimit = 5 * time.Second
	pollPeriod  = 10 * time.Millisecond
	maxProblem  = 300
)

// Options say where the container is.
type Options struct {
	// Socket is the path of the container's Pebble socket.
	Socket string
	Logger *slog.Logger
	// Timeout bounds one Ensure; 10 s when zero.
	Timeout time.Duration
	// IPv6 tells whether the pod has IPv6; nil means to look.
	IPv6 func() bool
}

// Workload is the gateway's container.
type Workload struct {
	o Options
}

// New returns the workload behind a Pebble socket. It does no I/O.
func New(o Options) *Workload {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.IPv6 == nil {
		o.IPv6 = hasIPv6
	}
	return &Workload{o: o}
}

// Report is what Ensure found or did.
type Report struct {
	// Up says that HAProxy runs, if Problem is "" with the wanted configuration.
	Up bool
	// Changed says that something was written, started or reloaded.
	Changed bool
	// Version is HAProxy's version, "" while it does not run.
	Version string
	// Problem says what a human must know, "" when all is well: HAProxy's own
	// message for a configuration that it refuses, or why it did not start.
	Problem string
}

// Ensure brings the gateway to g and reports. It is idempotent: when nothing
// has changed it only reads. A configuration that HAProxy refuses is never put
// in place; the one before keeps running and Problem has HAProxy's message.
// NotReady tells an error of a container that is not there yet.
func (w *Workload) Ensure(ctx context.Context, g Gateway) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	container, err := Dial(ctx, w.o.Socket)
	if err != nil {
		return Report{}, err
	}
	defer container.Close()
	g.IPv6 = g.IPv6 || w.o.IPv6()
	p := pass{Container: container, g: g, hash: g.Hash(), admin: admin{g.Ports.orDefault().Admin}, log: w.o.Logger}
	err = p.run(ctx)
	var problem *problemError
	if errors.As(err, &problem) {
		p.runs(ctx) // with whatever configuration
		p.report.Problem, err = problem.text, nil
	}
	return p.report, err
}

// Stop stops HAProxy. A container that is gone, or never ran it, is no error.
func (w *Workload) Stop(ctx context.Context) error {
	container, err := Dial(ctx, w.o.Socket)
	if NotReady(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer container.Close()
	service, err := container.Service(ctx, serviceName)
	if err != nil || !service.Active() {
		return err
	}
	change, err := container.Stop(ctx, serviceName)
	if err != nil {
		return err
	}
	_, err = container.Wait(ctx, change, startLimit)
	return err
}

// problemError ends a pass with something that a human must know.
type problemError struct{ text string }

func (e *problemError) Error() string { return e.text }

func problem(format string, args ...any) error {
	return &problemError{text: oneLine(fmt.Sprintf(format, args...), maxProblem)}
}

// pass is one Ensure.
type pass struct {
	*Container
	g      Gateway
	hash   string
	admin  admin
	log    *slog.Logger
	report Report
}

func (p *pass) run(ctx context.Context) error {
	if err := p.g.Validate(); err != nil {
		return problem("%v", err)
	}
	if err := p.install(ctx); err != nil {
		return err
	}
	layered, err := p.Apply(ctx, layerLabel, p.layer())
	if err != nil {
		return err
	}
	service, err := p.Service(ctx, serviceName)
	if err != nil {
		return err
	}
	if layered || !service.Active() {
		return p.start(ctx, layered)
	}
	if p.runs(ctx) {
		return nil
	}
	return p.reload(ctx, service)
}

func (p *pass) path(name string) string { return path.Join(p.g.folder(), name) }

// layer is the gateway's part of Pebble's plan. The check asks the gateway's
// health port: a check on the other ports would reach the database, and count
// there as a connect error.
func (p *pass) layer() Layer {
	return Layer{
		Services: map[string]LayerService{serviceName: {
			Summary: "gateway to the database",
			Command: "haproxy -W -db -f " + p.path(configFile),
		}},
		Checks: map[string]LayerCheck{checkName: {
			Period: "1s", Timeout: "900ms", Threshold: 3,
			URL: fmt.Sprintf("http://127.0.0.1:%d/healthz", p.g.Ports.orDefault().Health),
		}},
	}
}

// install puts the configuration in place once HAProxy has accepted it under
// another name.
func (p *pass) install(ctx context.Context) error {
	text := p.g.Config()
	old, found, err := p.ReadFile(ctx, p.path(configFile))
	if err != nil || (found && string(old) == text) {
		return err
	}
	candidate := p.path(configFile + ".new")
	if _, err := p.WriteFile(ctx, candidate, text, 0o644); err != nil {
		return err
	}
	if err := p.accepted(ctx, candidate); err != nil {
		return err
	}
	p.report.Changed = true
	if _, err := p.WriteFile(ctx, p.path(configFile), text, 0o644); err != nil {
		return err
	}
	p.log.Info("wrote the gateway's configuration", "hash", p.hash)
	return p.RemoveFile(ctx, candidate)
}

// accepted asks HAProxy whether it would take a configuration file.
func (p *pass) accepted(ctx context.Context, candidate string) error {
	_, err := p.Run(ctx, "", "haproxy", "-c", "-f", candidate)
	var refused *CommandError
	if !errors.As(err, &refused) {
		return err
	}
	if refused.Code == 0 {
		return problem("HAProxy does not run in the container: %s", refused.Output)
	}
	return problem("HAProxy refuses its configuration: %s", alerts(refused.Output))
}

// start starts HAProxy, or what the new layer asks for, and returns as soon as
// it answers: Pebble itself takes a second to call a start done.
func (p *pass) start(ctx context.Context, layered bool) error {
	p.report.Changed = true
	begin := p.Replan
	if !layered {
		begin = func(ctx context.Context) (string, error) { return p.Start(ctx, serviceName) }
	}
	change, err := begin(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	for time.Since(begun) < startLimit {
		if p.runs(ctx) {
			p.log.Info("started the gateway", "took", time.Since(begun).Round(time.Millisecond))
			return nil
		}
		_, err := p.Wait(ctx, change, pollPeriod)
		var failed *ChangeError
		if errors.As(err, &failed) {
			return p.complain(ctx, "HAProxy does not start", failed.Message)
		}
		if err != nil {
			return err
		}
		if err := sleep(ctx, pollPeriod); err != nil {
			return err
		}
	}
	return problem("HAProxy does not answer %s after its start", startLimit)
}

// reload has HAProxy take the configuration without losing a session.
func (p *pass) reload(ctx context.Context, service Service) error {
	p.report.Changed = true
	if err := sleep(ctx, settling-max(0, time.Since(service.Since))); err != nil {
		return err
	}
	if p.runs(ctx) { // a start that was under way took it
		return nil
	}
	// The new worker knows the servers' addresses from the first moment.
	if state, err := p.admin.servers(ctx); err != nil {
		p.log.Warn("the gateway reloads without its servers' state", "error", err)
	} else if _, err := p.WriteFile(ctx, p.path(stateFile), state, 0o644); err != nil {
		return err
	}
	if err := p.Signal(ctx, serviceName, "SIGUSR2"); err != nil {
		return err
	}
	for begun := time.Now(); time.Since(begun) < reloadLimit; {
		if p.runs(ctx) {
			p.log.Info("reloaded the gateway", "took", time.Since(begun).Round(time.Millisecond))
			return nil
		}
		if err := sleep(ctx, pollPeriod); err != nil {
			return err
		}
	}
	return p.complain(ctx, "HAProxy runs on with its old configuration", "it does not say why")
}

// complain makes a problem of what HAProxy said last, or of instead when it
// said nothing.
func (p *pass) complain(ctx context.Context, what, instead string) error {
	output, err := p.Logs(ctx, serviceName, 20)
	if err != nil {
		return err
	}
	if output = alerts(output); output == "" {
		output = instead
	}
	return problem("%s: %s", what, output)
}

// runs asks HAProxy whether it runs the wanted configuration, and notes for the
// report what it says.
func (p *pass) runs(ctx context.Context) bool {
	running, err := p.admin.info(ctx)
	p.report.Up, p.report.Version = err == nil, running.version
	return err == nil && running.hash == p.hash
}

// alerts picks from HAProxy's output what it calls an alert, without its
// process id; all of it when there is none.
func alerts(output string) string {
	var found []string
	for line := range strings.Lines(output) {
		_, rest, ok := strings.Cut(line, "[ALERT]")
		if !ok {
			continue
		}
		if _, text, ok := strings.Cut(rest, ") : "); ok {
			rest = text
		}
		found = append(found, strings.TrimSpace(rest))
	}
	if len(found) == 0 {
		return strings.TrimSpace(output)
	}
	return strings.Join(found, "; ")
}

// oneLine makes text fit for a status.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "..."
	}
	return text
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hasIPv6 looks whether a socket can listen on IPv6 here. The charm's container
// shares the pod's network with HAProxy.
func hasIPv6() bool {
	listener, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return false
	}
	listener.Close()
	return true
}
