// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// volumesFolder is where the content of storage is kept, below the state folder:
// one folder for each model, and in it one for each volume.
const volumesFolder = "storage"

// volumeFolder is the folder of a volume; of all of them for "".
func (c *modelWorker) volumeFolder(volume string) string {
	return filepath.Join(c.config.State, volumesFolder, c.info.UUID, volume)
}

// storageOf lists what is attached to a unit, as last read from the model.
func (c *modelWorker) storageOf(unit string) []model.StorageStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []model.StorageStatus
	for _, s := range c.status.Storage {
		if s.Unit == unit {
			out = append(out, s)
		}
	}
	return out
}

// makeVolumes makes the folders of a unit's storage; those that are there stay as
// they are. Anybody in the pod may write to a new one, as with the provisioners of
// small clusters: the folder above keeps others of this machine away.
func (c *modelWorker) makeVolumes(unit string) error {
	for _, s := range c.storageOf(unit) {
		path := c.volumeFolder(s.Volume)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := makeFolder(filepath.Dir(path)); err != nil {
			return err
		}
		if err := os.Mkdir(path, 0o777); err != nil {
			return fmt.Errorf("cannot make storage %s: %w", s.ID, err)
		}
		if err := os.Chmod(path, 0o777); err != nil {
			return fmt.Errorf("cannot make storage %s: %w", s.ID, err)
		}
	}
	return nil
}

// removeVolumes removes the folders of volumes that the model does not know any
// more. Storage is forgotten after the pod that had it is gone.
func (c *modelWorker) removeVolumes(status model.Status) {
	folder := c.volumeFolder("")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // there is none
	}
	known := map[string]bool{}
	for _, s := range status.Storage {
		known[s.Volume] = true
	}
	for _, entry := range entries {
		if known[entry.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(folder, entry.Name())); err != nil {
			c.log.Error("cannot remove storage", "volume", entry.Name(), "error", err)
		}
	}
}
