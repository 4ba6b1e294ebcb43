// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// errNoModel is Juju's answer when no model is named and none is current.
const errNoModel = `No model in focus.

Please use "jujulet models" to see models available to you.
You can set current model by running "jujulet switch"
or specify any other model on the command line using the "-m" option.`

// modelsHandlers serves what is about models as a whole.
func (c *Controller) modelsHandlers(mux *http.ServeMux) {
	plain(c, mux, "models", c.getModels)
	plain(c, mux, "add-model", c.postAddModel)
	plain(c, mux, "destroy-model", c.postDestroyModel)
	plain(c, mux, "switch", c.postSwitch)
}

// currentModel is the name of the model that is meant when none is named: the
// one that was switched to, else the only one.
func (c *Controller) currentModel() (string, error) {
	chosen, err := c.keys.read(currentKey)
	if err != nil {
		return "", err
	}
	all := c.allWorkers()
	for _, w := range all {
		if w.info.Name == string(chosen) || len(all) == 1 {
			return w.info.Name, nil
		}
	}
	return "", notFound("%s", errNoModel)
}

// worker returns the worker of the model that a request names, in the form
// [controller:][user/]model; "" is the current model.
func (c *Controller) worker(ref string) (*modelWorker, error) {
	if ref == "" {
		name, err := c.currentModel()
		if err != nil {
			return nil, err
		}
		ref = name
	}
	name := ref
	if controller, rest, given := strings.Cut(ref, ":"); given {
		if name = rest; controller != "" && controller != c.config.Controller {
			return nil, notFound("controller %s not found", controller)
		}
	}
	user, short, qualified := strings.Cut(name, "/")
	if !qualified {
		user, short = control.User, name
	}
	c.workersMu.Lock()
	defer c.workersMu.Unlock()
	if w := c.workers[short]; w != nil && user == control.User {
		return w, nil
	}
	return nil, notFound("model %s:%s/%s not found", c.config.Controller, user, short)
}

// controllerUUID is the controller's own id, made when it is first asked for.
func (c *Controller) controllerUUID() (string, error) {
	id, err := c.keys.get("controller-uuid", func() ([]byte, error) { return []byte(uuid.NewString()), nil })
	return string(id), err
}

// getModels lists the models by name.
func (c *Controller) getModels(context.Context, none) (control.Models, error) {
	id, err := c.controllerUUID()
	if err != nil {
		return control.Models{}, err
	}
	cloud, region, _ := strings.Cut(model.DefaultCloudRegion, "/")
	out := control.Models{
		Controller: c.config.Controller, ControllerUUID: id, Version: model.JujuVersion, Cloud: cloud, Region: region, Models: []control.Model{},
	}
	out.Current, _ = c.currentModel() // none is no error here
	for _, w := range c.allWorkers() {
		view, err := w.view()
		if err != nil {
			continue // removed meanwhile
		}
		out.Models = append(out.Models, view)
	}
	return out, nil
}

// view describes a model.
func (c *modelWorker) view() (control.Model, error) {
	status, err := c.model.Status()
	if err != nil {
		return control.Model{}, err
	}
	secrets, err := c.model.Secrets()
	view := control.Model{
		Name: c.info.Name, UUID: c.info.UUID, CloudRegion: c.info.CloudRegion, Version: c.info.Version, Life: status.Life,
		KubernetesVersion: c.info.KubernetesVersion, Status: status.ModelStatus, Applications: len(status.Applications), Secrets: len(secrets),
	}
	for _, app := range status.Applications {
		view.Units += len(app.Units)
	}
	return view, err
}

// postAddModel makes a model with its namespace and a worker of its own.
func (c *Controller) postAddModel(_ context.Context, r control.AddModelRequest) (control.Model, error) {
	if r.Name == "default" || strings.HasPrefix(r.Name, "kube-") {
		return control.Model{}, &control.Error{Kind: control.KindConflict, Message: fmt.Sprintf(
			"cannot create model %[1]q: a namespace called %[1]q already exists on this k8s cluster. Please pick a different model name.", r.Name)}
	}
	m, err := c.store.AddModel(r.Name, r.Config)
	if model.KindOf(err) == model.Exists {
		return control.Model{}, &control.Error{Kind: control.KindConflict, Message: fmt.Sprintf(
			"failed to create new model: model %q for %s already exists", r.Name, control.User)}
	}
	if err != nil {
		return control.Model{}, err
	}
	w, err := c.newWorker(m)
	if err != nil {
		return control.Model{}, err
	}
	c.launch(w)
	if !r.NoSwitch {
		if err := c.keys.set(currentKey, []byte(r.Name)); err != nil {
			return control.Model{}, err
		}
	}
	c.log.Info("model added", "model", r.Name)
	c.changes.bump()
	return w.view()
}

// postDestroyModel begins the end of a model.
func (c *Controller) postDestroyModel(_ context.Context, r control.DestroyModelRequest) (none, error) {
	w, err := c.worker(r.Model)
	if err != nil {
		return none{}, err
	}
	args := model.DestroyModelArgs{Force: r.Force, Wait: r.Timeout}
	if r.NoWait {
		args.Wait = -1
	}
	if err := w.model.Destroy(args); err != nil {
		return none{}, err
	}
	w.poke()
	return none{}, nil
}

// postSwitch makes another model the current one; "" only tells which it is.
func (c *Controller) postSwitch(_ context.Context, r control.SwitchRequest) (control.SwitchResult, error) {
	var out control.SwitchResult
	out.From, _ = c.currentModel()
	out.To = out.From
	if r.Target == "" {
		return out, nil
	}
	if strings.TrimSuffix(r.Target, ":") == c.config.Controller {
		return out, nil
	}
	w, err := c.worker(r.Target)
	if err != nil {
		if strings.Contains(r.Target, ":") {
			return out, err
		}
		return out, notFound("%q is not the name of a model or controller", r.Target)
	}
	out.To = w.info.Name
	return out, c.keys.set(currentKey, []byte(out.To))
}

// advance goes on with the end of a dying model and says whether it has gone;
// else after which time to look again, 0 for never.
func (c *modelWorker) advance() (bool, time.Duration) {
	c.mu.Lock()
	life := c.status.Life
	c.mu.Unlock()
	if life != model.Dying {
		return false, 0
	}
	empty, again, err := c.model.DestroyStep()
	if err != nil {
		c.log.Error("cannot destroy the model", "error", err)
		return false, time.Second
	}
	if !empty || c.busy() {
		return false, again
	}
	if err := c.remove(); err != nil {
		c.log.Error("cannot remove the model", "error", err)
		return false, time.Second
	}
	return true, 0
}

// busy reports whether pods of the model are still there.
func (c *modelWorker) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.units) > 0
}

// remove forgets the model with its namespace and all that is in it.
func (c *modelWorker) remove() error {
	if err := c.admin.Delete(cluster.Namespace, "", c.info.Name); err != nil && !isAbsent(err) {
		return fmt.Errorf("cannot remove the namespace %q: %w", c.info.Name, err)
	}
	if err := os.RemoveAll(c.volumeFolder("")); err != nil {
		return fmt.Errorf("cannot remove the storage of %q: %w", c.info.Name, err)
	}
	if err := c.store.RemoveModel(c.info.Name); err != nil {
		return err
	}
	c.workersMu.Lock()
	delete(c.workers, c.info.Name)
	c.workersMu.Unlock()
	c.Controller.log.Info("model removed", "model", c.info.Name)
	c.changes.bump()
	return nil
}

// getModelConfig returns the model's configuration.
func (c *modelWorker) getModelConfig(context.Context, none) (map[string]model.ModelConfigValue, error) {
	return c.model.ModelConfig()
}

// postModelConfig resets and sets keys of the model's configuration, and returns
// those that are not known.
func (c *modelWorker) postModelConfig(_ context.Context, r control.ModelConfigChange) ([]string, error) {
	return c.model.SetModelConfig(r.Set, r.Reset)
}
