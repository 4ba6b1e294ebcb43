// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package pods

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

var seed = flag.Uint64("seed", 20261130, "chooses the moments at which the cluster process is killed")

// phase is a part of the story in which the cluster process is killed once, at a moment before within.
type phase struct {
	name    string
	within  time.Duration
	act     []act
	settled func(model.Status) bool
	query   bool // whether the client can query then
}

// act is one request of an operator, repeated until it is acknowledged.
type act struct {
	name  string
	about string // what it replaces when it is acknowledged later than another
	do    func(ctx context.Context, c *cluster) error
	// kept checks that what was acknowledged is there.
	kept func(s model.Status) error
}

// optionAbout is what changes of the option are about.
const optionAbout = "expose-external"

// TestControllerKilled kills the cluster process by SIGKILL at five moments of a deployment and its switches. What was
// acknowledged stays, the Service stays the same one, and the story comes to its end.
func TestControllerKilled(t *testing.T) {
	c := newCluster(t, "killed", asRoot())
	random := rand.New(rand.NewPCG(*seed, 0))
	t.Logf("seed %d (-seed to choose)", *seed)
	r := &resumed{cluster: c}
	for _, p := range phases() {
		moment := time.Duration(random.Int64N(int64(p.within)))
		t.Run(p.name, func(t *testing.T) { r.play(t, p, moment) })
		if t.Failed() {
			return
		}
	}
}

func phases() []phase {
	apps := []string{backend, bridge, "client-k8s"}
	deploy := func(r control.DeployRequest, name string) act {
		return act{
			name: "deploy " + name, about: name,
			do: func(ctx context.Context, c *cluster) error { _, err := c.Deploy(ctx, r); return err },
			kept: func(s model.Status) error {
				if app, ok := s.Applications[name]; !ok || app.Scale != r.Units || app.Trust != r.Trust {
					return fmt.Errorf("application %s is %+v", name, app)
				}
				return nil
			},
		}
	}
	integrate := func(a, b string) act {
		return act{
			name: "integrate " + a + " " + b, about: a,
			do: func(ctx context.Context, c *cluster) error { _, err := c.Integrate(ctx, a, b); return err },
			kept: func(s model.Status) error {
				for _, relation := range s.Relations {
					if len(relation.Ends) == 2 && (relation.Ends[0].String() == b && relation.Ends[1].String() == a) {
						return nil
					}
				}
				return fmt.Errorf("relation %s %s is not there", a, b)
			},
		}
	}
	expose := func(mode string) act {
		return act{
			name: "expose " + mode, about: optionAbout,
			do: func(ctx context.Context, c *cluster) error {
				return c.SetConfig(ctx, control.ConfigChange{Application: bridge, Set: map[string]string{"expose-external": mode}})
			},
			kept: func(s model.Status) error {
				for _, v := range s.Applications[bridge].Config {
					if v.Name == "expose-external" && v.Value == mode {
						return nil
					}
				}
				return fmt.Errorf("option expose-external is not %s", mode)
			},
		}
	}
	until := func(message string) func(model.Status) bool {
		return func(s model.Status) bool { return settled(s, message, apps...) }
	}
	return []phase{
		{"deploy", 4 * time.Second, []act{
			deploy(deployBackend(), backend), deploy(deployBridge(1), bridge), deploy(deployClient("client-k8s", "app"), "client-k8s"),
		}, func(s model.Status) bool { return s.Applications[bridge].Units[bridge+"/0"].Started }, false},
		{"integrate", 4 * time.Second, []act{
			integrate(bridge+":backend-database", backend+":database"), integrate("client-k8s:database", bridge+":database"),
		}, until("in-cluster"), true},
		{"loadbalancer", 1500 * time.Millisecond, []act{expose("loadbalancer")}, until("loadbalancer"), true},
		{"nodeport", 600 * time.Millisecond, []act{expose("nodeport")}, until("nodeport"), true},
		{"off and on", 2 * time.Second, []act{expose("false"), expose("loadbalancer")}, until("loadbalancer"), true},
	}
}

// resumed is a cluster whose process is killed and started again.
type resumed struct {
	*cluster
	mu    sync.Mutex
	acked map[string]act // by what they are about: a later one replaces an earlier one
	since time.Time      // of the last resumption
}

// play acts, kills at the moment, and waits until all has settled.
func (r *resumed) play(t *testing.T, p phase, moment time.Duration) {
	began := time.Now()
	killed := make(chan error, 1)
	go func() {
		<-time.After(moment)
		killed <- r.killAndResume(t.Context())
	}()
	for _, a := range p.act {
		r.insist(t, a)
	}
	require.NoError(t, <-killed, "killed %s after the beginning", moment)
	status := r.await(t, p.name+" settled", func(s model.Status) bool { return r.begunAgain(s) && p.settled(s) })
	if p.query {
		// The database begins anew with its pod: users and all.
		r.awaitQuery(t)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.acked {
		require.NoError(t, a.kept(status), "acknowledged and lost: %s", a.name)
	}
	t.Logf("killed %d ms after the beginning; settled after %.1f s", moment.Milliseconds(), time.Since(began).Seconds())
}

// awaitQuery waits until the client's query works.
func (r *resumed) awaitQuery(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		a := r.query(t, "client-k8s/0", "SELECT 1")
		if a.Error == "" {
			return
		}
		require.True(t, time.Now().Before(deadline), "the charm is active, and no query works through the published address: %s", a.Error)
	}
}

// begunAgain reports whether every unit has begun its work in the pod that it was given after the resumption. Until then
// the status is the one from before.
func (r *resumed) begunAgain(s model.Status) bool {
	begun := map[string]bool{}
	for _, e := range r.recorded() {
		if e.Hook == "start" && e.Failed == "" && e.Time.After(r.since) {
			begun[e.Unit] = true
		}
	}
	for _, app := range s.Applications {
		for unit := range app.Units {
			if !begun[unit] {
				return false
			}
		}
	}
	return true
}

// insist repeats a request until it is acknowledged. One that was not may have been done nevertheless.
func (r *resumed) insist(t *testing.T, a act) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lost := false
	for {
		err := a.do(ctx, r.cluster)
		switch {
		case err == nil, lost && control.KindOf(err) == control.KindConflict:
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.acked == nil {
				r.acked = map[string]act{}
			}
			r.acked[a.about] = a
			return
		case control.KindOf(err) == control.KindUnavailable:
			lost = true
		default:
			require.NoError(t, err, a.name)
		}
		select {
		case <-ctx.Done():
			require.FailNow(t, "not acknowledged in time", "%s: %v", a.name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// killAndResume kills the cluster process, starts another, and compares what is there with what was.
func (r *resumed) killAndResume(ctx context.Context) error {
	info, err := r.Info(ctx)
	if err != nil {
		return err
	}
	r.foot.collect(info.PID)
	before, err := r.live(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	acked := make([]act, 0, len(r.acked))
	for _, a := range r.acked {
		acked = append(acked, a)
	}
	r.mu.Unlock()
	recorded := r.recorded()
	r.since = time.Now()
	if err := pod.KillCluster(ctx, info.PID); err != nil {
		return err
	}
	if left := r.dead(); len(left) > 0 {
		return fmt.Errorf("the end of the cluster process left %v", left)
	}
	if out, err := r.jujulet("up", "--update-status=off"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := r.checkJournal(ctx, recorded); err != nil {
		return err
	}
	status, err := r.Status(ctx)
	if err != nil {
		return err
	}
	for _, a := range acked {
		if err := a.kept(status); err != nil && a.about != optionAbout { // which may have been replaced meanwhile
			return fmt.Errorf("acknowledged and lost: %s: %w", a.name, err)
		}
	}
	after, err := r.live(ctx)
	if err != nil {
		return err
	}
	return sameService(before, after)
}

// dead returns what still lives of the cluster once the kernel has had the time to end it.
func (r *resumed) dead() []string {
	deadline := time.Now().Add(2 * time.Second)
	for {
		if left := r.foot.alive(); len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// checkJournal looks for every commit that was shown before.
func (r *resumed) checkJournal(ctx context.Context, recorded []model.JournalEntry) error {
	now := map[uint64]string{}
	err := r.Journal(ctx, control.JournalRequest{}, func(e model.JournalEntry) error {
		text, err := json.Marshal(e)
		now[e.Seq] = string(text)
		return err
	})
	if err != nil {
		return err
	}
	for _, e := range recorded {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if now[e.Seq] != string(text) {
			return fmt.Errorf("commit lost: was %s, is %q", text, now[e.Seq])
		}
	}
	return nil
}

// sameService checks that a Service has kept what it may not lose without being asked.
func sameService(before, after *corev1.Service) error {
	if before == nil {
		return nil
	}
	if after == nil {
		return fmt.Errorf("the Service %s is gone", before.Name)
	}
	if before.UID != after.UID || before.Spec.ClusterIP != after.Spec.ClusterIP {
		return fmt.Errorf("another Service: %s %s is now %s %s", before.UID, before.Spec.ClusterIP, after.UID, after.Spec.ClusterIP)
	}
	if before.Spec.Type != after.Spec.Type {
		return nil // switched in the moment between
	}
	for i, port := range before.Spec.Ports {
		if port.NodePort != after.Spec.Ports[i].NodePort {
			return fmt.Errorf("node port %d is now %d", port.NodePort, after.Spec.Ports[i].NodePort)
		}
	}
	was, is := before.Status.LoadBalancer.Ingress, after.Status.LoadBalancer.Ingress
	if len(was) > 0 && (len(is) == 0 || was[0].IP != is[0].IP) {
		return fmt.Errorf("address %v is now %v", was, is)
	}
	return nil
}
