// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"fmt"
	"net/netip"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// spec describes the sandbox of the unit's next pod.
func (u *unit) spec(app model.ApplicationStatus, address netip.Addr, folder string) (pod.Spec, error) {
	c := u.c
	charm := pod.Container{
		Name:  pod.CharmContainer,
		Binds: []pod.Bind{{Source: c.config.Jujulet, Target: control.BinaryInPod, ReadOnly: true}},
	}
	spec := pod.Spec{
		Name: podName(u.name), Namespace: c.info.Name, App: u.app, Node: u.node().Name,
		Subdomain:  endpointsName(u.app),
		IP:         address,
		Token:      []byte(c.token(u.app)),
		CA:         c.ca,
		Env:        c.podEnvironment(),
		ControlDir: folder,
		Resolv:     pod.ClusterResolv(c.info.Name, c.plan.Domain, c.plan.DNS),
		Containers: []pod.Container{charm},
	}
	for _, name := range containerNames(app) {
		workload, err := c.workload(name, app.Resources[app.Containers[name].Resource])
		if err != nil {
			return pod.Spec{}, fmt.Errorf("container %q: %w", name, err)
		}
		spec.Containers = append(spec.Containers, workload)
	}
	c.mount(&spec, app, c.storageOf(u.name))
	return spec, nil
}

// mount adds a unit's storage: to the charm container at its own location, to the
// others where the charm wants it. Juju 3.6: read-only is read-only everywhere.
func (c *modelWorker) mount(spec *pod.Spec, app model.ApplicationStatus, storage []model.StorageStatus) {
	for _, s := range storage {
		source := c.volumeFolder(s.Volume)
		for i := range spec.Containers {
			container := &spec.Containers[i]
			if container.Name == pod.CharmContainer {
				container.Binds = append(container.Binds, pod.Bind{Source: source, Target: s.Location, ReadOnly: s.ReadOnly})
				continue
			}
			for _, m := range app.Containers[container.Name].Mounts {
				if m.Storage == s.Name {
					container.Binds = append(container.Binds, pod.Bind{Source: source, Target: m.Location, ReadOnly: s.ReadOnly})
				}
			}
		}
	}
}

// createPod makes the Pod object of a unit; one left over goes first.
func (c *modelWorker) createPod(app model.ApplicationStatus, unit, node string) (*corev1.Pod, error) {
	owner, err := cluster.Get[*appsv1.StatefulSet](c.admin, c.info.Name, app.Name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the stateful set of %q: %w", app.Name, err)
	}
	wanted := podObject(owner, app, unit, node)
	created, err := c.admin.Create(wanted)
	if apierrors.IsAlreadyExists(err) {
		if err := c.admin.Delete(cluster.Pod, wanted.Namespace, wanted.Name); err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("cannot remove the old pod %q: %w", wanted.Name, err)
		}
		created, err = c.admin.Create(wanted)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create pod %q: %w", wanted.Name, err)
	}
	return created.(*corev1.Pod), nil
}

// removePod deletes a Pod object, unless another one has its name by now.
func (c *modelWorker) removePod(object *corev1.Pod) {
	live, err := cluster.Get[*corev1.Pod](c.admin, object.Namespace, object.Name)
	if err != nil || live.UID != object.UID {
		return
	}
	if err := c.admin.Delete(cluster.Pod, object.Namespace, object.Name); err != nil && !apierrors.IsNotFound(err) {
		c.log.Warn("cannot delete pod", "pod", object.Name, "error", err)
	}
}
