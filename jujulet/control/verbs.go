// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Info asks who is there; it is also the ping. A [KindUnavailable] error means
// that no cluster process answers.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var out Info
	if err := c.call(ctx, "info", nil, &out); err != nil {
		return out, err
	}
	var err error
	out.PID, err = peer(ctx, c.socket)
	return out, err
}

// Shutdown asks the cluster process to end: all pods are killed, then it closes
// its store. It returns when the request was taken.
func (c *Client) Shutdown(ctx context.Context) error { return c.call(ctx, "shutdown", nil, nil) }

// Deploy makes an application.
func (c *Client) Deploy(ctx context.Context, r DeployRequest) (DeployResult, error) {
	var out DeployResult
	var err error
	if r.Charm, err = filepath.Abs(r.Charm); err != nil {
		return out, err
	}
	if r.Resources, err = absoluteResources(r.Resources); err != nil {
		return out, err
	}
	return out, c.call(ctx, "deploy", r, &out)
}

// absoluteResources makes the names of files and folders absolute: the cluster process has
// another working folder.
func absoluteResources(given map[string]string) (map[string]string, error) {
	resources := make(map[string]string, len(given))
	for name, value := range given {
		if value != model.HostImage && exists(value) {
			absolute, err := filepath.Abs(value)
			if err != nil {
				return nil, err
			}
			value = absolute
		}
		resources[name] = value
	}
	return resources, nil
}

// Refresh replaces the charm of an application; pods are replaced one by one.
func (c *Client) Refresh(ctx context.Context, r RefreshRequest) (DeployResult, error) {
	var out DeployResult
	var err error
	if r.Charm, err = filepath.Abs(r.Charm); err != nil {
		return out, err
	}
	if r.Resources, err = absoluteResources(r.Resources); err != nil {
		return out, err
	}
	return out, c.call(ctx, "refresh", r, &out)
}

// AttachResource gives resources anew; pods are replaced one by one.
func (c *Client) AttachResource(ctx context.Context, r ResourceRequest) error {
	var err error
	if r.Resources, err = absoluteResources(r.Resources); err != nil {
		return err
	}
	return c.call(ctx, "attach-resource", r, nil)
}

// RemoveStorage removes detached storage with its content.
func (c *Client) RemoveStorage(ctx context.Context, id string) error {
	return c.call(ctx, "remove-storage", StorageRequest{ID: id}, nil)
}

// Config returns an application's configuration.
func (c *Client) Config(ctx context.Context, application string) (Config, error) {
	var out Config
	return out, c.call(ctx, "config", ConfigChange{Application: application}, &out)
}

// SetConfig sets and resets options in one step.
func (c *Client) SetConfig(ctx context.Context, r ConfigChange) error {
	return c.call(ctx, "set-config", r, nil)
}

// Integrate makes a relation.
func (c *Client) Integrate(ctx context.Context, a, b string) (Relation, error) {
	var out Relation
	return out, c.call(ctx, "integrate", Endpoints{a, b}, &out)
}

// RemoveRelation begins the removal of a relation; hooks follow.
func (c *Client) RemoveRelation(ctx context.Context, a, b string) error {
	return c.call(ctx, "remove-relation", Endpoints{a, b}, nil)
}

// Scale sets the number of units; hooks follow.
func (c *Client) Scale(ctx context.Context, application string, units int) error {
	return c.call(ctx, "scale-application", ScaleRequest{Application: application, Units: units}, nil)
}

// ChangeScale adds units, or removes some, and returns how many there will be; hooks follow.
func (c *Client) ChangeScale(ctx context.Context, r ScaleRequest) (int, error) {
	var out int
	return out, c.call(ctx, "scale-application", r, &out)
}

// RemoveApplication begins the removal of an application; hooks follow.
func (c *Client) RemoveApplication(ctx context.Context, r RemoveRequest) error {
	return c.call(ctx, "remove-application", r, nil)
}

// Trust gives or takes rights in the whole cluster.
func (c *Client) Trust(ctx context.Context, application string, trust bool) error {
	return c.call(ctx, "trust", TrustRequest{application, trust}, nil)
}

// Run enqueues an action and returns at once; see [Client.Task].
func (c *Client) Run(ctx context.Context, r RunRequest) (Operation, error) {
	var out Operation
	return out, c.call(ctx, "run", r, &out)
}

type taskRequest struct {
	ID   string `json:"id"`
	Log  int    `json:"log"`  // return when more log lines than this are there
	Wait bool   `json:"wait"` // until done or more log lines
}

// Task returns a task as it is now.
func (c *Client) Task(ctx context.Context, id string) (model.Action, error) {
	var out model.Action
	return out, c.call(ctx, "task", taskRequest{ID: id}, &out)
}

// WaitTask returns a task when it is done, or earlier when it has more than
// seen log lines. It waits as long as ctx allows.
func (c *Client) WaitTask(ctx context.Context, id string, seen int) (model.Action, error) {
	var out model.Action
	return out, c.wait(ctx, "task", taskRequest{ID: id, Log: seen, Wait: true}, &out)
}

// Exec enqueues a command on units and returns at once; each task's results
// have return-code, stdout and stderr.
func (c *Client) Exec(ctx context.Context, r ExecRequest) (Operation, error) {
	var out Operation
	return out, c.call(ctx, "exec", r, &out)
}

// Status returns the whole model: all that "juju status", "show-unit" and
// "config" print, databags included.
func (c *Client) Status(ctx context.Context) (model.Status, error) {
	var out model.Status
	return out, c.call(ctx, "status", nil, &out)
}

// Resolved retries, or skips, the failed hook of units.
func (c *Client) Resolved(ctx context.Context, r ResolvedRequest) error {
	return c.call(ctx, "resolved", r, nil)
}

// SetLeader moves leadership of an application to a unit at once.
func (c *Client) SetLeader(ctx context.Context, application, unit string) error {
	return c.call(ctx, "set-leader", LeaderRequest{application, unit}, nil)
}

// Cancel cancels a pending task, or aborts a running one, and returns it as it is then.
func (c *Client) Cancel(ctx context.Context, id string) (model.Action, error) {
	var out model.Action
	return out, c.call(ctx, "cancel", taskRequest{ID: id}, &out)
}

// Actions returns the actions of an application's charm, by name.
func (c *Client) Actions(ctx context.Context, application string) (map[string]model.ActionSpec, error) {
	var out map[string]model.ActionSpec
	return out, c.call(ctx, "actions", ApplicationRequest{Application: application}, &out)
}

// Operations lists all operations with their tasks, oldest first.
func (c *Client) Operations(ctx context.Context) ([]Operation, error) {
	var out []Operation
	return out, c.call(ctx, "operations", nil, &out)
}

// Fire queues a hook on a unit.
func (c *Client) Fire(ctx context.Context, r FireRequest) error { return c.call(ctx, "fire", r, nil) }

// Kill ends a pod, an agent or the running hook by SIGKILL; for a pod it
// returns when the pod is dead.
func (c *Client) Kill(ctx context.Context, target KillTarget, unit string) error {
	return c.call(ctx, "kill", KillRequest{target, unit}, nil)
}

// DebugLog calls each for every line selected.
func (c *Client) DebugLog(ctx context.Context, r LogRequest, each func(model.LogLine) error) error {
	return lines(ctx, c, "debug-log", r, each)
}

// Journal calls each for every entry selected.
func (c *Client) Journal(ctx context.Context, r JournalRequest, each func(model.JournalEntry) error) error {
	return lines(ctx, c, "journal", r, each)
}

// Changed waits until the model (or a pod's state) differs from revision
// since, and returns the revision now; 0 returns at once. It waits at most a
// minute, so the same revision may come back.
func (c *Client) Changed(ctx context.Context, since uint64) (uint64, error) {
	var out uint64
	return out, c.wait(ctx, "changed", changedRequest{since}, &out)
}

type changedRequest struct {
	Since uint64 `json:"since"`
}

// Wait calls check now and after every change until it reports true, fails,
// or ctx ends. It also calls it once a second, for conditions outside the
// model.
func (c *Client) Wait(ctx context.Context, check func(context.Context) (bool, error)) error {
	var revision uint64
	for {
		next, err := c.Changed(ctx, 0)
		if err != nil {
			return err
		}
		revision = next
		if done, err := check(ctx); err != nil || done {
			return err
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		_, err = c.Changed(short, revision)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && KindOf(err) != KindTimeout {
			return err
		}
	}
}

// Cluster returns a view of the embedded cluster.
func (c *Client) Cluster(ctx context.Context) (Cluster, error) {
	var out Cluster
	return out, c.call(ctx, "cluster", nil, &out)
}

// SetLoadBalancer changes the load balancer and returns the settings now.
func (c *Client) SetLoadBalancer(ctx context.Context, r LBChange) (LBSettings, error) {
	var out LBSettings
	return out, c.call(ctx, "set-load-balancer", r, &out)
}

// SetFault changes what the API answers wrongly on purpose, and returns what is set now.
func (c *Client) SetFault(ctx context.Context, r FaultChange) ([]Fault, error) {
	var out []Fault
	return out, c.call(ctx, "set-fault", r, &out)
}

// SetNode changes a node.
func (c *Client) SetNode(ctx context.Context, r NodeChange) error {
	return c.call(ctx, "set-node", r, nil)
}

// Events lists Kubernetes events, oldest first; object "" is all, else
// "Kind/name" or a name.
func (c *Client) Events(ctx context.Context, object string) ([]Event, error) {
	var out []Event
	return out, c.call(ctx, "events", objectRequest{Name: object}, &out)
}

// Objects returns one object (name given) or a list of a kind such as
// "service", as the API's JSON.
func (c *Client) Objects(ctx context.Context, kind, name string) (json.RawMessage, error) {
	var out json.RawMessage
	return out, c.call(ctx, "objects", objectRequest{Kind: kind, Name: name}, &out)
}

type objectRequest struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
}

// ApplyObjects makes ConfigMaps of the model's namespace what a manifest (YAML or
// JSON, several documents) says, by server-side apply, and returns what came of
// each: "configmap/foo created", "configured" or "unchanged".
func (c *Client) ApplyObjects(ctx context.Context, manifest string) ([]string, error) {
	var out []string
	return out, c.call(ctx, "apply-objects", applyRequest{Manifest: manifest}, &out)
}

type applyRequest struct {
	Manifest string `json:"manifest"`
}

// DeleteObject deletes a ConfigMap of the model's namespace.
func (c *Client) DeleteObject(ctx context.Context, kind, name string) error {
	return c.call(ctx, "delete-object", objectRequest{Kind: kind, Name: name}, nil)
}

// Kubeconfig returns a kubeconfig for use inside the cluster ("jujulet
// shell"), with an administrator's token.
func (c *Client) Kubeconfig(ctx context.Context) (string, error) {
	var out string
	return out, c.call(ctx, "kubeconfig", nil, &out)
}
