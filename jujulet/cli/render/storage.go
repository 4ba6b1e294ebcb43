// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"cmp"
	"io"
	"slices"
	"strconv"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Storage is the document of `juju storage --format json|yaml`, and a part of
// that of `juju status --storage`.
type Storage struct {
	Instances   map[string]StorageInstance `json:"storage,omitempty" yaml:"storage,omitempty"`
	Filesystems map[string]Filesystem      `json:"filesystems,omitempty" yaml:"filesystems,omitempty"`
	Volumes     map[string]Volume          `json:"volumes,omitempty" yaml:"volumes,omitempty"`
}

// StorageInstance is one storage instance; what `juju show-storage` prints by id.
type StorageInstance struct {
	Kind        string              `json:"kind" yaml:"kind"`
	Life        string              `json:"life,omitempty" yaml:"life,omitempty"`
	Status      Value               `json:"status" yaml:"status"`
	Persistent  bool                `json:"persistent" yaml:"persistent"`
	Attachments *StorageAttachments `json:"attachments,omitempty" yaml:"attachments,omitempty"`
}

// StorageAttachments are the units of a [StorageInstance].
type StorageAttachments struct {
	Units map[string]StorageAttachment `json:"units" yaml:"units"`
}

// StorageAttachment is one unit's view of its storage.
type StorageAttachment struct {
	Location string `json:"location,omitempty" yaml:"location,omitempty"`
	Life     string `json:"life,omitempty" yaml:"life,omitempty"`
}

// Filesystem is the filesystem of a [StorageInstance].
type Filesystem struct {
	ProviderID  string                                   `json:"provider-id,omitempty" yaml:"provider-id,omitempty"`
	Volume      string                                   `json:"volume,omitempty" yaml:"volume,omitempty"`
	Storage     string                                   `json:"storage,omitempty" yaml:"storage,omitempty"`
	Attachments *DeviceAttachments[FilesystemAttachment] `json:"attachments,omitempty" yaml:"attachments,omitempty"`
	Pool        string                                   `json:"pool,omitempty" yaml:"pool,omitempty"`
	Size        uint64                                   `json:"size" yaml:"size"` // MiB
	Life        string                                   `json:"life,omitempty" yaml:"life,omitempty"`
	Status      Value                                    `json:"status,omitempty" yaml:"status,omitempty"`
}

// Volume is the volume of a [Filesystem].
type Volume struct {
	ProviderID  string                               `json:"provider-id,omitempty" yaml:"provider-id,omitempty"`
	Storage     string                               `json:"storage,omitempty" yaml:"storage,omitempty"`
	Attachments *DeviceAttachments[VolumeAttachment] `json:"attachments,omitempty" yaml:"attachments,omitempty"`
	Pool        string                               `json:"pool,omitempty" yaml:"pool,omitempty"`
	Size        uint64                               `json:"size" yaml:"size"` // MiB
	Persistent  bool                                 `json:"persistent" yaml:"persistent"`
	Life        string                               `json:"life,omitempty" yaml:"life,omitempty"`
	Status      Value                                `json:"status,omitempty" yaml:"status,omitempty"`
}

// DeviceAttachments are the units, once as hosts and once as owners.
type DeviceAttachments[T any] struct {
	Containers map[string]T                 `json:"containers,omitempty" yaml:"containers,omitempty"`
	Units      map[string]StorageAttachment `json:"units,omitempty" yaml:"units,omitempty"`
}

// FilesystemAttachment is where a filesystem is mounted.
type FilesystemAttachment struct {
	MountPoint string `json:"mount-point" yaml:"mount-point"`
	ReadOnly   bool   `json:"read-only" yaml:"read-only"`
	Life       string `json:"life,omitempty" yaml:"life,omitempty"`
}

// VolumeAttachment is how a volume is attached.
type VolumeAttachment struct {
	ReadOnly bool   `json:"read-only" yaml:"read-only"`
	Life     string `json:"life,omitempty" yaml:"life,omitempty"`
}

// StorageDocument returns the document of a model's storage. Juju 3.6: a status
// without any has an empty one.
func StorageDocument(all []model.StorageStatus, o Options) *Storage {
	out := &Storage{
		Instances: map[string]StorageInstance{}, Filesystems: map[string]Filesystem{}, Volumes: map[string]Volume{},
	}
	for _, s := range all {
		number, life, status := strconv.Itoa(s.Number), string(s.Life), o.value(s.Status)
		instance := StorageInstance{Kind: s.Kind, Life: life, Status: status}
		filesystem := Filesystem{
			ProviderID: s.ClaimUID, Volume: number, Storage: s.ID, Pool: s.Pool, Size: s.Size, Life: life, Status: status,
		}
		volume := Volume{ProviderID: s.Volume, Storage: s.ID, Pool: s.Pool, Size: s.Size, Life: life, Status: status}
		if s.Unit != "" {
			units := map[string]StorageAttachment{s.Unit: {Location: s.Location, Life: life}}
			instance.Attachments = &StorageAttachments{Units: units}
			filesystem.Attachments = &DeviceAttachments[FilesystemAttachment]{
				Containers: map[string]FilesystemAttachment{s.Unit: {s.Location, s.ReadOnly, life}}, Units: units,
			}
			volume.Attachments = &DeviceAttachments[VolumeAttachment]{
				Containers: map[string]VolumeAttachment{s.Unit: {s.ReadOnly, life}}, Units: units,
			}
		}
		out.Instances[s.ID], out.Filesystems[number], out.Volumes[number] = instance, filesystem, volume
	}
	return out
}

// StorageTabular writes the table of `juju storage`.
func StorageTabular(w io.Writer, all []model.StorageStatus, o Options) error {
	t := newTable("Unit", "Storage ID", "Type", "Pool", "Size", "Status", "Message")
	for _, s := range byUnit(all) {
		t.add(plain(s.Unit), plain(s.ID), plain(s.Kind), plain(s.Pool), plain(model.HumanStorageSize(s.Size)),
			cell{s.Status.Status, statusColour(s.Status.Status)}, plain(s.Status.Message))
	}
	return t.write(w, o.Colour)
}

// storageTable is the section of `juju status --storage`.
func storageTable(s model.Status) *table {
	t := newTable("Storage Unit", "Storage ID", "Type", "Pool", "Mountpoint", "Size", "Status", "Message")
	for _, s := range byUnit(s.Storage) {
		location := s.Location
		if s.Unit == "" {
			location = ""
		}
		t.add(plain(s.Unit), plain(s.ID), plain(s.Kind), plain(s.Pool), plain(location), plain(model.HumanStorageSize(s.Size)),
			cell{s.Status.Status, statusColour(s.Status.Status)}, plain(s.Status.Message))
	}
	return t
}

// byUnit sorts as juju does: by the text of the unit, then by id.
func byUnit(all []model.StorageStatus) []model.StorageStatus {
	return slices.SortedFunc(slices.Values(all), func(a, b model.StorageStatus) int {
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), naturally(a.ID, b.ID))
	})
}
