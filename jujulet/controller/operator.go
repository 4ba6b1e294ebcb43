// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// trustDescription is what Juju 3.6 says of the option "trust".
const trustDescription = "Does this application have access to trusted credentials"

// operatorHandlers serves what "juju" itself can do.
func (c *modelWorker) operatorHandlers(mux *http.ServeMux) {
	plain(c, mux, "status", func(context.Context, none) (model.Status, error) { return c.model.Status() })
	plain(c, mux, "deploy", c.postDeploy)
	plain(c, mux, "refresh", c.postRefresh)
	plain(c, mux, "attach-resource", c.postAttachResource)
	plain(c, mux, "remove-storage", c.postRemoveStorage)
	plain(c, mux, "config", c.getConfig)
	plain(c, mux, "set-config", c.postConfig)
	plain(c, mux, "integrate", c.postIntegrate)
	plain(c, mux, "remove-relation", func(_ context.Context, r control.Endpoints) (none, error) {
		return none{}, c.model.RemoveRelation(r.A, r.B)
	})
	plain(c, mux, "scale-application", c.postScale)
	plain(c, mux, "remove-application", c.postRemoveApplication)
	plain(c, mux, "trust", func(_ context.Context, r control.TrustRequest) (none, error) {
		return none{}, c.model.SetTrust(r.Application, r.Trust)
	})
	plain(c, mux, "run", c.postRun)
	plain(c, mux, "exec", c.postExec)
	plain(c, mux, "task", c.getTask)
	plain(c, mux, "cancel", func(_ context.Context, r taskRequest) (model.Action, error) {
		if err := c.model.CancelAction(r.ID); err != nil {
			return model.Action{}, err
		}
		return c.model.Action(r.ID)
	})
	plain(c, mux, "resolved", c.postResolved)
	plain(c, mux, "set-leader", c.postSetLeader)
	plain(c, mux, "fire", func(_ context.Context, r control.FireRequest) (none, error) {
		unit, err := c.unitName(r.Unit)
		if err != nil {
			return none{}, err
		}
		return none{}, c.model.Fire(unit, r.Hook, r.Args)
	})
	plain(c, mux, "kill", c.postKill)
	plain(c, mux, "actions", func(_ context.Context, r control.ApplicationRequest) (map[string]model.ActionSpec, error) {
		return c.model.ActionSpecs(r.Application)
	})
	plain(c, mux, "operations", func(context.Context, none) ([]control.Operation, error) { return c.model.Operations() })
	c.secretHandlers(mux)
}

// taskRequest is control's request for a task.
type taskRequest struct {
	ID   string `json:"id"`
	Log  int    `json:"log"`
	Wait bool   `json:"wait"`
}

type changedRequest struct {
	Since uint64 `json:"since"`
}

// getChanged waits for a change.
func (c *Controller) getChanged(ctx context.Context, r changedRequest) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	return c.changes.wait(ctx, r.Since), nil
}

// getInfo describes this process. The process id is for the client to find: it
// differs between namespaces.
func (c *Controller) getInfo(context.Context, none) (control.Info, error) {
	info := control.Info{
		Version: c.config.Version, State: c.config.State, Runtime: c.config.Runtime, Controller: c.config.Controller,
		Started: c.started, UpdateStatus: c.config.UpdateStatus, Ready: true,
	}
	if w, err := c.worker(""); err == nil {
		info.Model, info.ModelUUID = w.info.Name, w.info.UUID
	}
	return info, nil
}

// postShutdown begins the end of this process.
func (c *Controller) postShutdown(context.Context, none) (none, error) {
	c.shutdown(errShutdown)
	return none{}, nil
}

// postDeploy reads a charm and adds an application.
func (c *modelWorker) postDeploy(_ context.Context, r control.DeployRequest) (control.DeployResult, error) {
	charm, err := model.ReadCharm(r.Charm)
	if err != nil {
		return control.DeployResult{}, err
	}
	app := r.Application
	if app == "" {
		app = charm.Meta.Name
	}
	if err := c.checkResources(charm, r.Resources); err != nil {
		return control.DeployResult{}, err
	}
	specs, err := model.ParseStorageSpecs(r.Storage, true)
	if err != nil {
		return control.DeployResult{}, err
	}
	err = c.model.Deploy(model.DeployArgs{
		App: app, Charm: charm, Units: r.Units, Config: r.Config, Resources: r.Resources, Storage: specs, Trust: r.Trust,
	})
	if err != nil {
		return control.DeployResult{}, err
	}
	status, err := c.model.Status()
	if err != nil {
		return control.DeployResult{}, err
	}
	made := status.Applications[app]
	return control.DeployResult{
		Application: app, Charm: charm.Meta.Name, CharmURL: made.Charm, Revision: made.CharmRev, DefaultImages: made.DefaultImages(),
	}, nil
}

// postRefresh replaces the charm of an application.
func (c *modelWorker) postRefresh(_ context.Context, r control.RefreshRequest) (control.DeployResult, error) {
	charm, err := model.ReadCharm(r.Charm)
	if err != nil {
		return control.DeployResult{}, err
	}
	if err := c.checkResources(charm, r.Resources); err != nil {
		return control.DeployResult{}, err
	}
	revision, err := c.model.Refresh(model.RefreshArgs{
		App: r.Application, Charm: charm, Config: r.Config, Resources: r.Resources, Trust: r.Trust,
	})
	if err != nil {
		return control.DeployResult{}, err
	}
	return control.DeployResult{Application: r.Application, Charm: charm.Meta.Name, Revision: revision}, nil
}

// postAttachResource gives resources of an application anew.
func (c *modelWorker) postAttachResource(_ context.Context, r control.ResourceRequest) (none, error) {
	charm, err := c.model.CharmOf(r.Application)
	if err != nil {
		return none{}, err
	}
	if err := c.checkResources(charm, r.Resources); err != nil {
		return none{}, err
	}
	return none{}, c.model.AttachResource(r.Application, charm, r.Resources)
}

// postRemoveStorage removes detached storage; the content goes with the next
// look at the model.
func (c *modelWorker) postRemoveStorage(_ context.Context, r control.StorageRequest) (none, error) {
	return none{}, c.model.RemoveStorage(r.ID)
}

// getConfig returns an application's configuration.
func (c *modelWorker) getConfig(_ context.Context, r control.ConfigChange) (control.Config, error) {
	status, err := c.model.Status()
	if err != nil {
		return control.Config{}, err
	}
	app, ok := status.Applications[r.Application]
	if !ok {
		return control.Config{}, notFound("application %q not found", r.Application)
	}
	trust := control.ConfigOption{Type: "bool", Description: trustDescription, Default: false, Value: app.Trust, Source: "default"}
	if app.Trust {
		trust.Source = "user"
	}
	config := control.Config{
		Application:       app.Name,
		Charm:             app.CharmName,
		ApplicationConfig: map[string]control.ConfigOption{"trust": trust},
		Settings:          map[string]control.ConfigOption{},
	}
	for _, option := range app.Config {
		config.Settings[option.Name] = control.ConfigOption{
			Type: option.Type, Description: option.Description, Source: option.Source,
			Default: option.Default, Value: option.Value,
		}
	}
	return config, nil
}

// postConfig resets and sets options.
func (c *modelWorker) postConfig(_ context.Context, r control.ConfigChange) (none, error) {
	if len(r.Reset) > 0 {
		if err := c.model.ResetConfig(r.Application, r.Reset); err != nil {
			return none{}, err
		}
	}
	if len(r.Set) > 0 {
		return none{}, c.model.SetConfig(r.Application, r.Set)
	}
	return none{}, nil
}

// postIntegrate makes a relation.
func (c *modelWorker) postIntegrate(_ context.Context, r control.Endpoints) (control.Relation, error) {
	id, err := c.model.Integrate(r.A, r.B)
	if err != nil {
		return control.Relation{}, err
	}
	status, err := c.model.Status()
	if err != nil {
		return control.Relation{}, err
	}
	relation := control.Relation{ID: id}
	for _, known := range status.Relations {
		if known.ID != id {
			continue
		}
		for _, end := range known.Ends {
			relation.Interface = end.Interface
			switch end.Role {
			case model.Requirer:
				relation.Requirer = end.String()
			case model.Provider, model.Peer:
				relation.Provider = end.String()
			}
		}
	}
	return relation, nil
}

// postScale sets or changes the number of units and returns it.
func (c *modelWorker) postScale(_ context.Context, r control.ScaleRequest) (int, error) {
	units, err := r.Units, error(nil)
	if r.Change == 0 {
		err = c.model.Scale(r.Application, r.Units)
	} else {
		units, err = c.model.ChangeScale(r.Application, r.Change)
	}
	if err == nil && r.Force {
		err = c.removeDying(r.Application)
	}
	return units, err
}

// postRemoveApplication begins the removal of an application.
func (c *modelWorker) postRemoveApplication(_ context.Context, r control.RemoveRequest) (none, error) {
	args := model.RemoveArgs{Force: r.Force, DestroyStorage: r.DestroyStorage}
	if err := c.model.RemoveApplicationWith(r.Application, args); err != nil || !r.Force {
		return none{}, err
	}
	return none{}, c.removeDying(r.Application)
}

// removeDying forgets the dying units of an application without their hooks.
func (c *modelWorker) removeDying(app string) error {
	status, err := c.model.Status()
	if err != nil {
		return err
	}
	units := status.Applications[app].Units
	for _, unit := range slices.Sorted(maps.Keys(units)) {
		if units[unit].Life == model.Alive {
			continue
		}
		if err := c.model.RemoveUnitNow(unit); err != nil {
			return err
		}
	}
	return nil
}

// postRun enqueues an action.
func (c *modelWorker) postRun(_ context.Context, r control.RunRequest) (control.Operation, error) {
	return c.model.Enqueue(r.Units, r.Action, r.Params)
}

// postExec enqueues a command on units and all units of applications, each once. Juju 3.6: leaders are looked up first,
// so that one without a leader is an error of the whole.
func (c *modelWorker) postExec(_ context.Context, r control.ExecRequest) (control.Operation, error) {
	status, err := c.model.Status()
	if err != nil {
		return control.Operation{}, err
	}
	units := map[string]bool{}
	for _, unit := range r.Units {
		if app, ok := strings.CutSuffix(unit, "/leader"); ok {
			if unit = status.Applications[app].Leader; unit == "" {
				return control.Operation{}, notFound("could not determine leader for %q", app)
			}
		}
		units[unit] = true
	}
	for _, app := range r.Applications {
		known, ok := status.Applications[app]
		if !ok {
			return control.Operation{}, notFound("application %q not found", app)
		}
		for unit := range known.Units {
			units[unit] = true
		}
	}
	params := map[string]any{"command": r.Command}
	if r.Timeout > 0 {
		params["timeout"] = r.Timeout.String()
	}
	return c.model.Enqueue(slices.Sorted(maps.Keys(units)), model.ExecAction, params)
}

// getTask returns a task, at once or when it has something new.
func (c *modelWorker) getTask(ctx context.Context, r taskRequest) (model.Action, error) {
	if !r.Wait {
		return c.model.Action(r.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	task, err := c.model.WaitAction(ctx, r.ID, r.Log)
	if err != nil && ctx.Err() != nil {
		return c.model.Action(r.ID)
	}
	return task, err
}

// postResolved resolves failed hooks.
func (c *modelWorker) postResolved(_ context.Context, r control.ResolvedRequest) (none, error) {
	mode := model.ResolveRetry
	if r.NoRetry {
		mode = model.ResolveSkip
	}
	units := r.Units
	if r.All {
		status, err := c.model.Status()
		if err != nil {
			return none{}, err
		}
		for _, app := range status.Applications {
			for _, unit := range app.Units {
				if unit.Error != "" {
					units = append(units, unit.Name)
				}
			}
		}
		slices.Sort(units)
	}
	for _, unit := range units {
		name, err := c.unitName(unit)
		if err != nil {
			return none{}, err
		}
		if err := c.model.Resolve(name, mode); err != nil {
			return none{}, err
		}
	}
	return none{}, nil
}

// postSetLeader moves leadership.
func (c *modelWorker) postSetLeader(_ context.Context, r control.LeaderRequest) (none, error) {
	if r.Application != "" && appOf(r.Unit) != r.Application {
		return none{}, invalid("unit %q is not of application %q", r.Unit, r.Application)
	}
	return none{}, c.model.SetLeader(r.Unit)
}

// unitName resolves "app/leader" and refuses units that are not there.
func (c *modelWorker) unitName(ref string) (string, error) {
	status, err := c.model.Status()
	if err != nil {
		return "", err
	}
	app, ok := status.Applications[appOf(ref)]
	if !ok {
		return "", notFound("application %q not found", appOf(ref))
	}
	if strings.HasSuffix(ref, "/leader") {
		if app.Leader == "" {
			return "", notFound("could not determine leader for %q", app.Name)
		}
		return app.Leader, nil
	}
	if _, ok := app.Units[ref]; !ok {
		return "", notFound("unit %q not found", ref)
	}
	return ref, nil
}
