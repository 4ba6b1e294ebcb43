// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/image"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// addImages adds the images that resources name to the state folder, and returns the resources with their ids. What
// is no image is returned as it is. Images are added here, not in the cluster process, which has no way out of its
// network; so a deploy fails before anything is changed.
func (a *app) addImages(
	ctx context.Context, c *control.Client, images func() (map[string]bool, error), resources map[string]string,
) (map[string]string, error) {
	if !slices.ContainsFunc(slices.Collect(maps.Values(resources)), func(v string) bool { return v != model.HostImage }) {
		return resources, nil
	}
	wanted, err := images()
	if err != nil {
		return nil, err
	}
	out := maps.Clone(resources)
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		value := resources[name]
		if !wanted[name] || value == model.HostImage || isRoot(value) {
			continue
		}
		added, err := a.addImage(ctx, c, value)
		if err != nil {
			return nil, runErrorf("resource %q: %v", name, err)
		}
		for _, note := range added.Notes {
			a.infof("resource %q: %s", name, note)
		}
		if path, err := filepath.Abs(value); err == nil && pathExists(value) {
			value = path
		}
		out[name] = model.PinImage(value, added.ID)
	}
	return out, nil
}

// charmImages tells which resources of a charm are images. None of a charm that cannot be read: the cluster process
// reads it too, and says what is wrong.
func charmImages(charm string) func() (map[string]bool, error) {
	return func() (map[string]bool, error) {
		images := map[string]bool{}
		read, err := model.ReadCharm(charm)
		if err != nil {
			return images, nil
		}
		for name, resource := range read.Meta.Resources {
			images[name] = resource.Type == "oci-image"
		}
		return images, nil
	}
}

// applicationImages tells which resources of an application are images of its containers.
func applicationImages(ctx context.Context, c *control.Client, application string) func() (map[string]bool, error) {
	return func() (map[string]bool, error) {
		status, err := c.Status(ctx)
		if err != nil {
			return nil, err
		}
		images := map[string]bool{}
		for _, container := range status.Applications[application].Containers {
			images[container.Resource] = true
		}
		return images, nil
	}
}

// addImage adds one image to the state folder of a cluster that is up.
func (a *app) addImage(ctx context.Context, c *control.Client, from string) (image.Image, error) {
	if _, err := c.Info(ctx); err != nil {
		return image.Image{}, err
	}
	state, err := a.stateFolder()
	if err != nil {
		return image.Image{}, err
	}
	progress := a.progress(time.Second, 5*time.Second)
	store := image.Store{
		Dir: image.Folder(state), Cache: image.CacheFolder(a.Getenv), Ordinary: os.Geteuid() != 0, Progress: progress,
	}
	return store.Add(ctx, from)
}

// progress returns what prints progress: the first line after a while, so that what is quick says nothing, then one
// at each interval and at each new step.
func (a *app) progress(first, interval time.Duration) func(image.Progress) {
	var mu sync.Mutex
	next, step := a.Now().Add(first), ""
	begun := false
	return func(p image.Progress) {
		mu.Lock()
		defer mu.Unlock()
		now := a.Now()
		if now.Before(next) && !(begun && p.Step != step) {
			return
		}
		begun, step, next = true, p.Step, now.Add(interval)
		a.infof("%s%s", p.Step, amount(p))
	}
}

// amount says how much is done.
func amount(p image.Progress) string {
	const megabyte = 1e6
	switch {
	case p.Done == 0:
		return ""
	case p.Total == 0:
		return fmt.Sprintf(": %.1f MB", float64(p.Done)/megabyte)
	}
	return fmt.Sprintf(": %.1f of %.1f MB", float64(p.Done)/megabyte, float64(p.Total)/megabyte)
}

// isRoot tells whether a value is a folder with a root filesystem, rather than one with an image in it.
func isRoot(value string) bool {
	info, err := os.Stat(value)
	return err == nil && info.IsDir() && !image.IsLayout(value)
}

// pathExists tells whether there is something at a path.
func pathExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// noteDefaults says of which resources the images were not given.
func (a *app) noteDefaults(application string, resources []string) {
	for _, name := range resources {
		a.infof("Note: %s has no image for %q; its container runs on this machine's own files (--resource %s=host).", application, name, name)
	}
}
