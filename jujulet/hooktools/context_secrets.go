// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rs/xid"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// secretBuffer holds a hook's secret operations until its commit.
type secretBuffer struct {
	order   []string // ids in the order of their first operation
	adds    map[string]*model.SecretOp
	sets    map[string]*model.SecretOp
	removes map[string]*model.SecretOp
	grants  map[string][]model.SecretOp // grants and revocations, in order
	tracks  map[string]bool
}

func newSecretBuffer() secretBuffer {
	return secretBuffer{
		adds: map[string]*model.SecretOp{}, sets: map[string]*model.SecretOp{},
		removes: map[string]*model.SecretOp{}, grants: map[string][]model.SecretOp{}, tracks: map[string]bool{},
	}
}

func (b *secretBuffer) touch(id string) {
	if !slices.Contains(b.order, id) {
		b.order = append(b.order, id)
	}
}

// ops returns the operations in the order in which they can be applied.
func (b *secretBuffer) ops() []model.SecretOp {
	var out []model.SecretOp
	for _, id := range b.order {
		if op := b.adds[id]; op != nil {
			out = append(out, *op)
		}
		if op := b.sets[id]; op != nil {
			out = append(out, *op)
		}
		out = append(out, b.grants[id]...)
		if b.tracks[id] {
			out = append(out, model.SecretOp{Op: "track", ID: id})
		}
		if op := b.removes[id]; op != nil {
			out = append(out, *op)
		}
	}
	return out
}

// update merges a secret-set into what is pending.
func (b *secretBuffer) update(op model.SecretOp) {
	b.touch(op.ID)
	into := b.adds[op.ID]
	if into == nil {
		if into = b.sets[op.ID]; into == nil {
			b.sets[op.ID] = &op
			return
		}
	}
	if op.Label != nil {
		into.Label = op.Label
	}
	if op.Description != nil {
		into.Description = op.Description
	}
	if op.Rotate != nil {
		into.Rotate = op.Rotate
	}
	if op.Expire != nil {
		into.Expire = op.Expire
	}
	if len(op.Content) > 0 {
		into.Content = op.Content
	}
}

// drop forgets a secret that was added in this very hook.
func (b *secretBuffer) drop(id string) {
	delete(b.adds, id)
	delete(b.sets, id)
	delete(b.grants, id)
	delete(b.tracks, id)
	b.order = slices.DeleteFunc(b.order, func(o string) bool { return o == id })
}

// secretID reads "secret:<id>", a bare id, or "secret://<model>/<id>".
func secretID(text string) (string, error) {
	id := text
	if rest, ok := strings.CutPrefix(text, "secret:"); ok {
		id = rest[strings.LastIndex(rest, "/")+1:]
	}
	if _, err := xid.FromString(id); err != nil {
		return "", usagef("secret URI %q not valid", text)
	}
	return id, nil
}

// managed lists what the unit may manage, with this hook's own changes.
func (c *Context) managed(ctx context.Context) ([]model.SecretMeta, error) {
	list, err := c.Backend.ManagedSecrets(ctx, c.Unit)
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	for _, id := range slices.Sorted(maps.Keys(c.secrets.adds)) {
		op := c.secrets.adds[id]
		m := model.SecretMeta{ID: id, Owner: op.Owner, Latest: 1, Expire: op.Expire}
		setIf(&m.Label, op.Label)
		setIf(&m.Description, op.Description)
		setIf(&m.Rotate, op.Rotate)
		list = append(list, m)
	}
	list = slices.DeleteFunc(list, func(m model.SecretMeta) bool {
		op := c.secrets.removes[m.ID]
		return op != nil && op.Revision == 0
	})
	for i := range list {
		c.pendingMeta(&list[i])
	}
	return list, nil
}

func setIf(p *string, v *string) {
	if v != nil {
		*p = *v
	}
}

// pendingMeta lays pending changes over what the model says.
func (c *Context) pendingMeta(m *model.SecretMeta) {
	if op := c.secrets.sets[m.ID]; op != nil {
		setIf(&m.Label, op.Label)
		setIf(&m.Description, op.Description)
		setIf(&m.Rotate, op.Rotate)
		if op.Expire != nil {
			m.Expire = op.Expire
		}
	}
	for _, op := range c.secrets.grants[m.ID] {
		subject := op.Subject
		if subject == "" && op.Relation != nil {
			subject = c.relations[*op.Relation].RemoteApp
		}
		m.Access = slices.DeleteFunc(slices.Clone(m.Access), func(a model.SecretAccess) bool { return a.Target == subject })
		if op.Op == "grant" {
			scope := c.relations[*op.Relation].Key
			m.Access = append(m.Access, model.SecretAccess{Target: subject, Scope: scope, Role: "view"})
		}
	}
}

// manageable returns the secret if the unit may manage it.
func (c *Context) manageable(ctx context.Context, id string) (model.SecretMeta, error) {
	list, err := c.managed(ctx)
	if err != nil {
		return model.SecretMeta{}, err
	}
	for _, m := range list {
		if m.ID == id {
			return m, nil
		}
	}
	return model.SecretMeta{}, &model.Error{Kind: model.NotFound, Message: fmt.Sprintf("secret %q not found", id)}
}

// readSecret returns a secret's content (base64 values) as secret-get shows it in
// this hook: pending values of added secrets; of changed ones with peek and refresh.
func (c *Context) readSecret(ctx context.Context, q model.SecretRead) (map[string]string, error) {
	if q.ID == "" {
		q.ID = c.pendingLabel(q.Label)
		if q.ID != "" {
			q.Label = ""
		}
	}
	if op := c.secrets.adds[q.ID]; op != nil {
		if q.Label != "" {
			op.Label = &q.Label
		}
		return op.Content, nil
	}
	if op := c.secrets.sets[q.ID]; op != nil && len(op.Content) > 0 && (q.Peek || q.Refresh) {
		if q.Refresh {
			c.secrets.tracks[q.ID] = true
		}
		return op.Content, nil
	}
	v, err := c.Backend.ReadSecret(ctx, c.Unit, q)
	if err != nil {
		return nil, err
	}
	// Found by a label that the pending change does not carry.
	if op := c.secrets.sets[v.ID]; op != nil && len(op.Content) > 0 && (q.Peek || q.Refresh) {
		if q.Refresh {
			c.secrets.tracks[v.ID] = true
		}
		return op.Content, nil
	}
	return v.Content, nil
}

// pendingLabel finds a secret that carries the label since this hook.
func (c *Context) pendingLabel(label string) string {
	if label == "" {
		return ""
	}
	for _, ops := range []map[string]*model.SecretOp{c.secrets.adds, c.secrets.sets} {
		for id, op := range ops {
			if op.Label != nil && *op.Label == label {
				return id
			}
		}
	}
	return ""
}
