// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"

	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
	"github.com/drawbridge-k8s/drawbridge/relation"
)

// request writes what we ask the backend for, once, in one flush. It is never changed later: the database charms do not
// take a change, some fail on it.
func (p *pass) request(ctx context.Context) error {
	b := &p.backend
	if b.id == "" || b.own == nil {
		return nil
	}
	written, err := relation.ParseRequest(b.own)
	if err == nil && written.Asked() {
		if written.ExtraUserRoles != p.config.BackendRole && !invalid(p.configErrs, optBackendRole) {
			p.blocked("cannot change %s from %q to %q: remove the relation %s and relate again", optBackendRole,
				clipText(written.ExtraUserRoles, 60), p.config.BackendRole, endpointBackend)
		}
		return nil
	}
	if p.dry || invalid(p.configErrs, optBackendRole) {
		return nil
	}
	changes := relation.Diff(b.own, relation.BackendRequest(p.config.BackendRole).Bag())
	if err := p.tools.RelationSetApp(ctx, b.id, changes); err != nil && !hooktool.IsNotFound(err) {
		return err
	}
	return nil
}
