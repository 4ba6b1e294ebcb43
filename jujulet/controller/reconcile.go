// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// reconcile makes Kubernetes objects and pods what the model asks for. It is
// called after every change of the model, by one goroutine.
func (c *modelWorker) reconcile(ctx context.Context) error {
	status, err := c.model.Status()
	if err != nil {
		return fmt.Errorf("cannot read the model: %w", err)
	}
	c.setStatus(status)
	for _, name := range slices.Sorted(maps.Keys(status.Applications)) {
		app := status.Applications[name]
		if err := c.ensureApplication(app); err != nil {
			c.log.Error("cannot update objects", "application", name, "error", err)
			continue
		}
		for _, unit := range slices.Sorted(maps.Keys(app.Units)) {
			c.ensureUnit(ctx, app.Units[unit])
		}
		c.rollout(app)
	}
	c.stopForgotten(status)
	c.removeVolumes(status)
	return c.removeForgotten(status)
}

// ensureUnit starts what a living unit lacks, and ends the pod of a dead one.
func (c *modelWorker) ensureUnit(ctx context.Context, status model.UnitStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u, running := c.units[status.Name]
	switch {
	case !running && !status.Dead:
		u = c.newUnit(status)
		c.units[status.Name] = u
		u.start(ctx)
	case status.Dead && !c.ending[status.Name]:
		c.ending[status.Name] = true
		c.work.Go(func() { c.buryUnit(status.Name, u) })
	}
}

// buryUnit ends the pod of a unit that has run its last hook and then forgets
// the unit.
func (c *modelWorker) buryUnit(name string, u *unit) {
	if u != nil {
		u.stop()
	}
	if err := c.model.UnitGone(name); err != nil && model.KindOf(err) != model.NotFound {
		c.log.Error("cannot remove unit", "unit", name, "error", err)
	}
	c.mu.Lock()
	delete(c.units, name)
	delete(c.ending, name)
	delete(c.pods, name)
	c.mu.Unlock()
	c.poke()
}

// poke has follow reconcile once more: the model does not know of everything
// that it depends on.
func (c *modelWorker) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// stopForgotten ends pods of units that the model does not know any more.
func (c *modelWorker) stopForgotten(status model.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.units)) {
		u := c.units[name]
		if _, ok := status.Applications[u.app].Units[name]; ok || c.ending[name] {
			continue
		}
		c.ending[name] = true
		c.work.Go(func() { c.buryUnit(name, u) })
	}
}

// ensureApplication makes the objects of an application as they should be.
func (c *modelWorker) ensureApplication(app model.ApplicationStatus) error {
	if err := c.ensureAccount(app); err != nil {
		return fmt.Errorf("cannot give rights to %q: %w", app.Name, err)
	}
	if err := c.ensureStatefulSet(app); err != nil {
		return err
	}
	service, err := c.ensureService(applicationService(c.info.Name, app), app.Ports)
	if err != nil {
		return err
	}
	if _, err := c.ensureService(endpointsService(c.info.Name, app), nil); err != nil {
		return err
	}
	if id := string(service.GetUID()); id != app.ProviderID {
		if err := c.model.SetServiceID(app.Name, id); err != nil {
			return err
		}
	}
	if address := serviceAddress(service); address != "" && address != app.Address {
		return c.model.SetServiceAddress(app.Name, address)
	}
	return nil
}

// ensureAccount gives an application the rights that go with its trust.
func (c *modelWorker) ensureAccount(app model.ApplicationStatus) error {
	if trusted, known := c.trusted[app.Name]; known && trusted == app.Trust {
		return nil
	}
	rules := cluster.UntrustedRules(c.info.Name)
	if app.Trust {
		rules = cluster.TrustedRules()
	}
	token, err := c.keys.token(c.account(app.Name))
	if err != nil {
		return err
	}
	if err := c.api.SetAccount(c.info.Name, app.Name, token, rules); err != nil {
		return err
	}
	c.trusted[app.Name] = app.Trust
	return nil
}

// serviceAddress is an application's address: of its load balancer if its
// Service has one, else the cluster's.
func serviceAddress(s *corev1.Service) string {
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			if ingress.IP != "" {
				return ingress.IP
			}
			if ingress.Hostname != "" {
				return ingress.Hostname
			}
		}
	}
	return s.Spec.ClusterIP
}

// ensureStatefulSet makes the StatefulSet, or brings its size and template up
// to date; its uid stays.
func (c *modelWorker) ensureStatefulSet(app model.ApplicationStatus) error {
	wanted := statefulSet(c.info.Name, app)
	live, err := cluster.Get[*appsv1.StatefulSet](c.admin, wanted.Namespace, wanted.Name)
	if apierrors.IsNotFound(err) {
		_, err = c.admin.Create(wanted)
		return err
	}
	if err != nil {
		return err
	}
	if live.Spec.Replicas != nil && *live.Spec.Replicas == *wanted.Spec.Replicas &&
		slices.EqualFunc(live.Spec.Template.Spec.Containers, wanted.Spec.Template.Spec.Containers, sameName) {
		return nil
	}
	_, err = cluster.Change(c.admin, wanted.Namespace, wanted.Name, func(o *appsv1.StatefulSet) error {
		o.Spec.Replicas = wanted.Spec.Replicas
		o.Spec.Template = wanted.Spec.Template
		return nil
	})
	return err
}

// sameName compares containers: what they are otherwise follows from their names.
func sameName(a, b corev1.Container) bool { return a.Name == b.Name }

// ensureService makes a Service, or brings the ports that are Juju's up to
// date; all else that somebody changed stays.
func (c *modelWorker) ensureService(wanted *corev1.Service, opened []string) (*corev1.Service, error) {
	live, err := cluster.Get[*corev1.Service](c.admin, wanted.Namespace, wanted.Name)
	if apierrors.IsNotFound(err) {
		created, err := c.admin.Create(wanted)
		if err != nil {
			return nil, err
		}
		return created.(*corev1.Service), nil
	}
	if err != nil {
		return nil, err
	}
	if wanted.Spec.ClusterIP == corev1.ClusterIPNone || reflect.DeepEqual(live.Spec.Ports, servicePorts(live.Spec.Ports, opened)) {
		return live, nil
	}
	return cluster.Change(c.admin, wanted.Namespace, wanted.Name, func(o *corev1.Service) error {
		o.Spec.Ports = servicePorts(o.Spec.Ports, opened)
		return nil
	})
}

// removeForgotten deletes the objects of applications that the model does not
// know any more. What charms made goes by its owner, the StatefulSet.
func (c *modelWorker) removeForgotten(status model.Status) error {
	sets, err := cluster.List[*appsv1.StatefulSet](c.admin, c.info.Name, labelManagedBy+"="+managedByJuju)
	if err != nil {
		return fmt.Errorf("cannot list stateful sets: %w", err)
	}
	for _, set := range sets {
		if _, ok := status.Applications[set.Name]; ok || c.hasUnits(set.Name) {
			continue
		}
		if err := c.removeObjects(set.Name); err != nil {
			return fmt.Errorf("cannot remove the objects of %q: %w", set.Name, err)
		}
	}
	return nil
}

// hasUnits reports whether pods of an application are still there.
func (c *modelWorker) hasUnits(app string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.units {
		if u.app == app {
			return true
		}
	}
	return false
}

// removeObjects deletes all that an application had. The StatefulSet goes
// last: while it is there, a restart finds the rest again.
func (c *modelWorker) removeObjects(app string) error {
	delete(c.trusted, app)
	if err := c.api.RemoveAccount(c.info.Name, app); err != nil {
		return err
	}
	if err := c.keys.removeToken(c.account(app)); err != nil {
		return err
	}
	for _, object := range []struct {
		kind cluster.Kind
		name string
	}{{cluster.Service, endpointsName(app)}, {cluster.Service, app}, {cluster.StatefulSet, app}} {
		if err := c.admin.Delete(object.kind, c.info.Name, object.name); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
