// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// secretGet prints a secret's content or one of its values.
func secretGet(c *call) error {
	var q model.SecretRead
	out := c.outputFlags("yaml", "json")
	c.flags.text(&q.Label, "label")
	c.flags.boolean(&q.Peek, "peek")
	c.flags.boolean(&q.Refresh, "refresh")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if q.ID, err = secretID(args[0]); err != nil {
			return err
		}
		args = args[1:]
	}
	if q.ID == "" && q.Label == "" {
		return usagef("require either a secret URI or label")
	}
	if q.Peek && q.Refresh {
		return usagef("specify one of --peek or --refresh but not both")
	}
	key := ""
	if len(args) > 0 {
		key, args = args[0], args[1:]
	}
	if err := noArgs(args); err != nil {
		return err
	}
	content, err := c.hook.readSecret(c.ctx, q)
	if err != nil {
		return err
	}
	return c.writeSecret(out, content, key)
}

func (c *call) writeSecret(out *output, content map[string]string, key string) error {
	if key == "" {
		plain := map[string]string{}
		for _, k := range slices.Sorted(maps.Keys(content)) {
			v := content[k]
			raw, err := base64.StdEncoding.DecodeString(v)
			if err != nil {
				return err
			}
			plain[k] = string(raw)
		}
		return c.write(out, plain)
	}
	name, encoded := strings.CutSuffix(key, "#base64")
	v, ok := content[name]
	if !ok {
		return fmt.Errorf("secret key value %q not found", name)
	}
	if encoded {
		return c.write(out, v)
	}
	raw, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		return err
	}
	return c.write(out, string(raw))
}

// secretInfoGet prints the metadata of a secret that the unit manages.
func secretInfoGet(c *call) error {
	var label string
	out := c.outputFlags("yaml", "json")
	c.flags.text(&label, "label")
	args, err := c.parse()
	if err != nil {
		return err
	}
	id := ""
	if len(args) > 0 {
		if id, err = secretID(args[0]); err != nil {
			return err
		}
		args = args[1:]
	}
	if id == "" && label == "" {
		return usagef("require either a secret URI or label")
	}
	if id != "" && label != "" {
		return usagef("specify either a secret URI or label but not both")
	}
	if err := noArgs(args); err != nil {
		return err
	}
	list, err := c.hook.managed(c.ctx)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.ID == id || (id == "" && m.Label == label) {
			return c.write(out, map[string]any{m.ID: secretInfo(m)})
		}
	}
	if id == "" {
		id = label
	}
	return &model.Error{Kind: model.NotFound, Message: fmt.Sprintf("secret %q not found", id)}
}

// secretDetails is one secret of secret-info-get.
type secretDetails struct {
	Revision    int            `json:"revision" yaml:"revision"`
	Label       string         `json:"label" yaml:"label"`
	Owner       string         `json:"owner" yaml:"owner"`
	Description string         `json:"description,omitempty" yaml:"description,omitempty"`
	Rotation    string         `json:"rotation,omitempty" yaml:"rotation,omitempty"`
	Expiry      *time.Time     `json:"expiry,omitempty" yaml:"expiry,omitempty"`
	Rotates     *time.Time     `json:"rotates,omitempty" yaml:"rotates,omitempty"`
	Access      []secretAccess `json:"access,omitempty" yaml:"access,omitempty"`
}

type secretAccess struct {
	Target string `json:"target" yaml:"target"`
	Scope  string `json:"scope" yaml:"scope"`
	Role   string `json:"role" yaml:"role"`
}

func secretInfo(m model.SecretMeta) secretDetails {
	d := secretDetails{
		Revision: m.Latest, Label: m.Label, Owner: m.Owner, Description: m.Description,
		Rotation: m.Rotate, Expiry: m.Expire, Rotates: m.NextRotate,
	}
	for _, a := range m.Access {
		d.Access = append(d.Access, secretAccess{subjectTag(a.Target), relationTag(a.Scope), a.Role})
	}
	return d
}

// subjectTag and relationTag are Juju's tags of "foo", "foo/0" and "bar:db foo:db",
// which is how accesses are shown.
func subjectTag(name string) string {
	if strings.Contains(name, "/") {
		return model.Tag(name)
	}
	return "application-" + name
}

func relationTag(key string) string {
	return "relation-" + strings.NewReplacer(":", ".", " ", "#").Replace(key)
}

// secretIDs lists the bare ids of what the unit manages.
func secretIDs(c *call) error {
	out := c.outputFlags("smart", "yaml", "json")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if err := noArgs(args); err != nil {
		return err
	}
	list, err := c.hook.managed(c.ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return c.write(out, ids)
}

// secretGrant buffers the access of a relation's remote side.
func secretGrant(c *call) error {
	var unit string
	rel := c.relationFlag()
	c.flags.text(&unit, "unit")
	args, err := c.parse()
	if err != nil {
		return err
	}
	id, err := secretURI(args)
	if err != nil {
		return err
	}
	r, err := rel.get()
	if err != nil {
		return err
	}
	if unit != "" {
		if !unitPattern.MatchString(unit) {
			return usagef("unit %q not valid", unit)
		}
		if app, _, _ := strings.Cut(unit, "/"); app != r.RemoteApp {
			return usagef("cannot specify unit %q in relation to application %q", unit, r.RemoteApp)
		}
	}
	if err := noArgs(args[1:]); err != nil {
		return err
	}
	m, err := c.hook.manageable(c.ctx, id)
	if err != nil {
		return err
	}
	if err := c.leadsOwner(id); err != nil {
		return err
	}
	granted, err := alreadyGranted(m, r, unit)
	if err != nil || granted {
		return err
	}
	b := &c.hook.secrets
	b.touch(id)
	number := r.ID
	b.grants[id] = append(b.grants[id], model.SecretOp{Op: "grant", ID: id, Relation: &number, Subject: unit})
	return nil
}

// alreadyGranted says whether a grant changes nothing. An application cannot be
// granted what single units of it have.
func alreadyGranted(m model.SecretMeta, r model.RelationView, unit string) (bool, error) {
	subject := unit
	if unit == "" {
		subject = r.RemoteApp
	}
	for _, a := range m.Access {
		app, _, isUnit := strings.Cut(a.Target, "/")
		switch {
		case app != r.RemoteApp:
		case a.Target == subject || !isUnit:
			return true, nil
		case unit == "":
			return false, errors.New("any unit level grants need to be revoked before granting access to the corresponding application")
		}
	}
	return false, nil
}

// secretURI reads the first positional argument, a secret's URI.
func secretURI(args []string) (string, error) {
	if len(args) == 0 {
		return "", usagef("missing secret URI")
	}
	return secretID(args[0])
}

// secretRevoke buffers the end of an access.
func secretRevoke(c *call) error {
	var app, unit string
	rel := c.relationFlag()
	c.flags.text(&app, "app", "application")
	c.flags.text(&unit, "unit")
	args, err := c.parse()
	if err != nil {
		return err
	}
	id, err := secretURI(args)
	if err != nil {
		return err
	}
	switch {
	case app != "" && !appPattern.MatchString(app):
		return usagef("application %q not valid", app)
	case unit != "" && !unitPattern.MatchString(unit):
		return usagef("unit %q not valid", unit)
	case app != "" && unit != "":
		return usagef("specify only one of application or unit")
	}
	if r, err := rel.get(); err == nil { // in a relation hook, that of the hook
		if app != "" {
			return usagef("do not specify both relation and app")
		}
		app = r.RemoteApp
	}
	if app == "" && unit == "" {
		return usagef("missing relation or application or unit")
	}
	if err := noArgs(args[1:]); err != nil {
		return err
	}
	if err := c.leadsOwner(id); err != nil {
		return err
	}
	b := &c.hook.secrets
	b.touch(id)
	for _, subject := range []string{app, unit} {
		if subject != "" {
			b.grants[id] = append(b.grants[id], model.SecretOp{Op: "revoke", ID: id, Subject: subject})
		}
	}
	return nil
}

// secretRemove buffers the removal of a secret or of one revision.
func secretRemove(c *call) error {
	revision := 0
	c.flags.integer(&revision, "revision")
	args, err := c.parse()
	if err != nil {
		return err
	}
	id, err := secretURI(args)
	if err != nil {
		return err
	}
	if err := noArgs(args[1:]); err != nil {
		return err
	}
	if err := c.leadsOwner(id); err != nil {
		return err
	}
	b := &c.hook.secrets
	if b.adds[id] != nil {
		b.drop(id)
		return nil
	}
	b.touch(id)
	b.removes[id] = &model.SecretOp{Op: "remove", ID: id, Revision: max(revision, 0)}
	return nil
}
