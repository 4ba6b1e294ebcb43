// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/image"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/drawbridge-k8s/drawbridge/jujulet/pod"
)

// image returns an image of the state folder. The client has added it, because this process has no way out of its network.
func (c *Controller) image(id string) (image.Image, error) {
	store := image.Store{Dir: image.Folder(c.config.State)}
	found, err := store.Get(id)
	if errors.Is(err, os.ErrNotExist) {
		return found, notFound("image %s is not in the state folder any more", id)
	}
	return found, err
}

// workload describes a workload container. Juju 3.6: Pebble is the command whatever the image's is, as root whatever the
// image's user is; environment and working folder are the image's.
func (c *Controller) workload(name, resource string) (pod.Container, error) {
	given, id := model.SplitImage(resource)
	workload := pod.Container{Name: name, Workload: true, Root: given}
	if id == "" {
		return workload, nil
	}
	found, err := c.image(id)
	if err != nil {
		return workload, fmt.Errorf("cannot use image %q: %w", given, err)
	}
	workload.Root, workload.ImageEnv, workload.Dir = found.Root, found.Env, found.WorkingDir
	return workload, nil
}

// checkResources refuses what cannot be the root of a container.
func (c *Controller) checkResources(charm *model.Charm, resources map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		declared, ok := charm.Meta.Resources[name]
		if !ok {
			return invalid("unrecognized resource %q", name)
		}
		given, id := model.SplitImage(resources[name])
		if declared.Type != "oci-image" || given == model.HostImage {
			continue
		}
		if id != "" {
			if _, err := c.image(id); err != nil {
				return invalid("resource %q: %v", name, err)
			}
			continue
		}
		if info, err := os.Stat(given); err == nil && info.IsDir() && filepath.IsAbs(given) {
			continue
		}
		return &control.Error{Kind: control.KindUnsupported, Message: fmt.Sprintf(
			"cannot use image %q for resource %q: the client has to add images to the state folder first", given, name)}
	}
	return nil
}
