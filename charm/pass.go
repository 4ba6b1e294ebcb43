// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/drawbridge-k8s/drawbridge/connections/carry"
	"github.com/drawbridge-k8s/drawbridge/hooks"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// pass is one run of the core: what was observed, what was decided, and what is to be said about it.
type pass struct {
	o     Options
	c     *Charm
	event hooks.Event
	tools *hooktool.Client
	log   *slog.Logger
	hook  *hooks.Hook
	// dry keeps a pass from writing anything: the actions that only look.
	dry bool
	// repair makes users again that should be there: a person asked for it.
	repair bool
	// ext ends a little before the hook's own time, so that what is outside of Juju cannot keep the pass from recording
	// what it did.
	ext  context.Context
	stop context.CancelFunc
	// now is the moment of the pass; nothing new is started after soft.
	now, soft time.Time

	raw        map[string]any // what config-get printed
	config     Config
	configErrs []*ConfigError
	leader     bool
	dying      bool
	planned    int
	goal       hooktool.GoalState
	// apps are the applications on the other side of the relations that this unit sees.
	apps map[string]bool

	peerID    string
	peerBag   map[string]string
	unitBag   map[string]string
	peer      relation.Peer
	stateText string
	state     state
	// fresh says that another unit led before: nothing that was remembered counts.
	fresh bool

	backend backend
	clients []*client
	service serviceView
	seen    sight
	users   *users
	right   relation.Right
	row     relation.Row

	// connections is what came of the connections, connecting the work on them while it runs.
	connections carry.Report
	connecting  *carry.Pass
	// told says that this pass has changed something of the exposure that others wait for.
	told bool

	causes    []cause
	active    string
	notes     []string
	deadlines []time.Time
	// refusals is what was refused in this pass.
	refusals map[string]refusal
}

// newPass starts a pass for a hook.
func (c *Charm) newPass(ctx context.Context, h *hooks.Hook) *pass {
	now := c.o.Clock()
	ext, stop := context.WithTimeout(ctx, externalBudget)
	return &pass{
		ext: ext, stop: stop, o: c.o, c: c, event: h.Event, tools: h.Tools, log: h.Log, hook: h,
		now: now, soft: now.Add(SoftBudget),
	}
}

// close ends what the pass has opened.
func (p *pass) close() {
	if p.users != nil {
		p.users.close()
	}
	p.stop()
	if r := p.service.reading; r != nil {
		<-r.done
	}
	if p.connecting != nil {
		p.connecting.Close()
	}
}

// run is the pass of a hook.
func (p *pass) run(ctx context.Context) error {
	if err := p.observe(ctx); err != nil {
		return err
	}
	if !p.full() {
		return p.follow(ctx)
	}
	err := p.lead(ctx)
	if hooktool.IsPermission(err) {
		// Leadership has gone since it was asked for: another unit does what is left.
		p.log.Info("leaving the rest to the new leader", "error", err)
		return nil
	}
	return err
}

// follow is the pass of a unit that looks after itself only: one that is not leader, or dying, or without peers yet.
func (p *pass) follow(ctx context.Context) error {
	p.right = relation.RightObserve
	if !p.dry {
		if err := p.o.newWatch(p.event).Stop(ctx); err != nil {
			p.log.Warn("cannot end the watch", "error", err)
		}
		if !p.leader && p.stateText != "" {
			if err := p.tools.StateDelete(ctx, stateKey); err != nil {
				return err
			}
		}
	}
	p.ensureGateway(ctx)
	if err := p.recordNode(ctx); err != nil {
		return err
	}
	p.describeFollower()
	if err := p.connect(ctx); err != nil {
		return err
	}
	if p.dry {
		return nil
	}
	return p.report(ctx)
}

// lead is the pass of the leader: rights and Service, the own workload, the probe, exposure and publishing, the record.
func (p *pass) lead(ctx context.Context) error {
	p.right = relation.DecideRight(relation.Situation{
		Peer: true, Leader: true, Backend: p.backend.state, BackendID: p.backend.number(), PeerBackend: p.peer.Backend,
	})
	p.logDeferred()
	p.describeConfig()
	if err := p.observeClients(ctx); err != nil {
		return err
	}
	if err := p.request(ctx); err != nil {
		return err
	}
	if p.right == relation.RightWithdraw {
		if err := p.withdrawAll(ctx); err != nil {
			return err
		}
	}
	p.ensureService(ctx)
	p.ensureGateway(ctx)
	if p.right == relation.RightFull || p.backend.state == relation.BackendGone {
		if err := p.expose(ctx); err != nil {
			return err
		}
	} else {
		p.state.Deferred = nil
		p.waiting("gave back what was published on another backend; publishing again next")
		p.wakeAt(p.now)
	}
	if err := p.cleanUp(ctx); err != nil {
		return err
	}
	if err := p.pruneSecret(ctx); err != nil {
		return err
	}
	if err := p.connect(ctx); err != nil {
		return err
	}
	if p.dry {
		return nil
	}
	if err := p.record(ctx); err != nil {
		return err
	}
	p.orderWatch(ctx)
	return p.report(ctx)
}

// record writes the peer databags and the state value, last, and only what differs.
func (p *pass) record(ctx context.Context) error {
	p.settleUnknown()
	p.state.Refused = p.refusals
	p.peer.Leader = p.event.Unit
	if err := p.tools.RelationSetApp(ctx, p.peerID, relation.Diff(p.peerBag, p.peer.Bag())); err != nil {
		return err
	}
	if err := p.recordNode(ctx); err != nil {
		return err
	}
	text := p.state.text()
	switch {
	case text == p.stateText:
		return nil
	case text == "":
		return p.tools.StateDelete(ctx, stateKey)
	}
	return p.tools.StateSet(ctx, map[string]string{stateKey: text})
}

// recordNode writes the node of the own pod into the own unit databag, so that a moved pod wakes the leader. A pod moves
// only by being made again, and then start or upgrade-charm runs.
func (p *pass) recordNode(ctx context.Context) error {
	known := relation.ParseUnitPeer(p.unitBag).Node
	if p.dry || p.peerID == "" || known != "" && !p.newPod() {
		return nil
	}
	kube, _, err := p.kube()
	if err != nil {
		return nil
	}
	pod, err := kube.Pod(p.ext, podName(p.event.Unit))
	if err != nil || pod == nil || pod.Spec.NodeName == "" {
		return nil // the leader's own reading says what is wrong; the next hook tries again
	}
	return p.tools.RelationSet(ctx, p.peerID, relation.Diff(p.unitBag, relation.UnitPeer{Node: pod.Spec.NodeName}.Bag()))
}

// settleUnknown remembers since when Juju has known a relation that this unit does not see, and wakes every 30 s.
func (p *pass) settleUnknown() {
	if p.backend.state != relation.BackendUnknown && !(p.orphans() && p.hiddenClients()) {
		p.state.Unknown = time.Time{}
		return
	}
	if p.state.Unknown.IsZero() {
		p.state.Unknown = p.now.UTC().Truncate(time.Second)
	}
	const step = 30 * time.Second
	passed := p.now.Sub(p.state.Unknown) / step
	p.wakeAt(p.state.Unknown.Add((passed + 1) * step))
}

// wakeAt asks the watch to wake the charm at that moment at the latest.
func (p *pass) wakeAt(at time.Time) { p.deadlines = append(p.deadlines, at) }

// spent reports whether it is too late to start anything new; then the watch is asked to wake the charm at once.
func (p *pass) spent(ctx context.Context) bool {
	if ctx.Err() == nil && p.o.Clock().Before(p.soft) {
		return false
	}
	p.wakeAt(p.now)
	return true
}

// kube returns the Kubernetes API, opened on first use.
func (p *pass) kube() (cluster, string, error) {
	s := &p.service
	if s.kube == nil && s.kubeErr == nil {
		s.kube, s.namespace, s.kubeErr = p.o.newCluster(p.hook.Getenv, p.log)
		if s.namespace == "" {
			s.namespace = p.event.Model
		}
	}
	return s.kube, s.namespace, s.kubeErr
}

// logDeferred says that a hook left the exposure pending, and that this pass goes on with it.
func (p *pass) logDeferred() {
	if d := p.state.Deferred; d != nil && !p.dry {
		p.log.Info("going on with a deferred exposure", "deferred-by", d.Hook, "since", d.Since.UTC().Format(time.RFC3339),
			"hook", p.event.Name, "else-retried-by", "the watch's notice, every other hook, update-status")
	}
}

// settleDeferral sets or removes the deferral after the exposure was decided.
func (p *pass) settleDeferral(pending bool) {
	switch {
	case !pending:
		p.state.Deferred = nil
	case p.state.Deferred != nil:
	case p.event.Kind == hooks.RelationBroken || p.event.Kind == hooks.Stop || p.event.Kind == hooks.Remove:
		// The next hook finds the exposure pending as well.
	default:
		p.state.Deferred = &deferral{Hook: p.event.Name, Since: p.now.UTC().Truncate(time.Second)}
	}
}

// serviceName is the name of our Service.
func (p *pass) serviceName() string { return p.event.App + "-service" }

// desired is the Service that the configuration asks for.
func (p *pass) desired(namespace string) k8sservice.Desired {
	c := p.config
	return k8sservice.Desired{
		App: p.event.App, Name: p.serviceName(), Namespace: namespace, Mode: c.Mode, Annotations: c.Annotations,
		SourceRanges: c.SourceRanges, Class: c.Class, TrafficPolicy: c.TrafficPolicy,
		NodePort: c.NodePort, ReadOnlyNodePort: c.ReadOnlyNodePort,
	}
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
