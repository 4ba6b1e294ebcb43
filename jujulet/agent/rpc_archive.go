// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// archivePartSize is how many bytes of a charm go into one answer. Codecs keep buffers as big as the biggest message that
// they have seen, for each agent and as long as it is connected.
const archivePartSize = 256 << 10

// archivePart is a piece of a charm's archive of Size bytes.
type archivePart struct {
	Hash string `json:"hash"`
	Size int    `json:"size"`
	Data []byte `json:"data"`
}

// archiveParts hands a charm's archive out in parts. It holds the archive from the first part until the last.
type archiveParts struct {
	source Controller

	mu   sync.Mutex
	held *model.CharmArchive
}

// read returns the part at an offset.
func (p *archiveParts) read(ctx context.Context, unit string, offset int) (archivePart, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if offset == 0 || p.held == nil {
		archive, err := p.source.CharmArchive(ctx, unit)
		if err != nil {
			return archivePart{}, err
		}
		p.held = archive
	}
	size := len(p.held.Data)
	if offset < 0 || offset > size {
		return archivePart{}, fmt.Errorf("cannot read charm at %d: it has %d bytes", offset, size)
	}
	end := min(offset+archivePartSize, size)
	part := archivePart{Hash: p.held.Hash, Size: size, Data: p.held.Data[offset:end]}
	if end == size {
		p.held = nil
	}
	return part, nil
}

// errCharmChanged says that the parts are of two charms.
var errCharmChanged = errors.New("the charm was changed meanwhile")

// CharmArchive implements Controller.
func (r *Remote) CharmArchive(ctx context.Context, _ string) (*model.CharmArchive, error) {
	archive := &model.CharmArchive{}
	for {
		part, err := ask[archivePart](ctx, r, "CharmArchive", len(archive.Data))
		if err != nil {
			return nil, err
		}
		if archive.Data == nil {
			archive.Hash, archive.Data = part.Hash, make([]byte, 0, part.Size)
		}
		if part.Hash != archive.Hash {
			return nil, errCharmChanged
		}
		archive.Data = append(archive.Data, part.Data...)
		if len(archive.Data) >= part.Size {
			return archive, nil
		}
		if len(part.Data) == 0 {
			return nil, fmt.Errorf("cannot read charm: %d of %d bytes came", len(archive.Data), part.Size)
		}
	}
}
