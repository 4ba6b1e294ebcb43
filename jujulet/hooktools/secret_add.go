// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
	"github.com/rs/xid"
	"gopkg.in/yaml.v3"
)

// maxSecret bounds a secret's content, as base64, in bytes.
const maxSecret = 1000000

var (
	secretKey     = regexp.MustCompile(`^([a-z](?:-?[a-z0-9]){2,})$`)
	rotatePolicy  = []string{"never", "hourly", "daily", "weekly", "monthly", "quarterly", "yearly"}
	errNotLeader  = errors.New("this unit is not the leader")
	expireLayouts = []string{time.RFC3339, "2006-01-02T15:04:05"}
)

// secretOptions are the options that secret-add and secret-set share.
type secretOptions struct {
	label, description, rotate, owner, file string
	expire                                  *time.Time
}

func (c *call) secretFlags() *secretOptions {
	o := &secretOptions{}
	c.flags.text(&o.label, "label")
	c.flags.text(&o.description, "description")
	c.flags.text(&o.file, "file")
	c.flags.text(&o.owner, "owner")
	c.flags.text(&o.rotate, "rotate")
	c.flags.value(func(v string) error {
		t, err := expireTime(v)
		o.expire = t
		return err
	}, "expire")
	return o
}

func expireTime(text string) (*time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		if d <= 0 {
			return nil, fmt.Errorf("negative expire duration %q", text)
		}
		t := time.Now().Add(d).UTC()
		return &t, nil
	}
	for _, layout := range expireLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			t = t.UTC()
			return &t, nil
		}
	}
	return nil, fmt.Errorf("expire time or duration %q not valid", text)
}

func (o *secretOptions) check() error {
	if o.rotate != "" && !slices.Contains(rotatePolicy, o.rotate) {
		return usagef("rotate policy %q not valid", o.rotate)
	}
	if o.owner != "" && o.owner != "application" && o.owner != "unit" {
		return usagef("secret owner %q not valid", o.owner)
	}
	return nil
}

// fill copies the given options into an operation.
func (o *secretOptions) fill(op *model.SecretOp) {
	given := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	op.Label, op.Description, op.Rotate, op.Expire = given(o.label), given(o.description), given(o.rotate), o.expire
	if op.Rotate != nil && *op.Rotate == "never" {
		empty := ""
		op.Rotate = &empty
	}
}

// secretContent reads k=v, k#base64=v and k#file=path arguments and --file; the
// values of the result are base64.
func (c *call) secretContent(args []string, file string) (map[string]string, error) {
	out := map[string]string{}
	if file != "" {
		var err error
		if out, err = c.secretFile(file); err != nil {
			return nil, err
		}
	}
	given, err := keyValues(args, false)
	if err != nil {
		if strings.HasPrefix(err.Error(), "expected") {
			for _, a := range args {
				if k, v, ok := strings.Cut(a, "="); ok && strings.TrimSpace(v) == "" {
					return nil, usagef("key value %q not valid", k+"=")
				}
			}
		}
		return nil, err
	}
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if err := addSecretValue(out, k, given[k]); err != nil {
			return nil, err
		}
	}
	size := 0
	for _, v := range out {
		size += len(v)
	}
	if size > maxSecret {
		return nil, usagef("secret content too large: %d bytes", size)
	}
	return out, nil
}

func addSecretValue(out map[string]string, key, value string) error {
	name, kind, _ := strings.Cut(key, "#")
	if !secretKey.MatchString(name) {
		return usagef("key %q not valid", name)
	}
	switch kind {
	case "":
		out[name] = base64.StdEncoding.EncodeToString([]byte(value))
	case "base64":
		if _, err := base64.StdEncoding.DecodeString(value); err != nil {
			return usagef("key %q is not base64 encoded: %v", name, err)
		}
		out[name] = value
	case "file":
		raw, err := os.ReadFile(value)
		if err != nil {
			return usagef("reading content for secret key %q: %v", name, err)
		}
		out[name] = base64.StdEncoding.EncodeToString(raw)
	default:
		return usagef("key %q not valid", key)
	}
	return nil
}

// secretFile reads a YAML map of strings. The path is the agent's, except "-" and
// /dev/stdin, which are the client's standard input.
func (c *call) secretFile(name string) (map[string]string, error) {
	var raw []byte
	var err error
	if name == "-" || name == "/dev/stdin" {
		raw, err = c.readStdin()
	} else {
		raw, err = readFile(name)
	}
	if err != nil {
		return nil, err
	}
	var values map[string]string
	if err := yaml.Unmarshal(raw, &values); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if err := addSecretValue(out, k, values[k]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4*maxSecret))
}

// secretAdd buffers a new secret and prints its URI, which is final.
func secretAdd(c *call) error {
	o := c.secretFlags()
	args, err := c.parse()
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	content, err := c.secretContent(args, o.file)
	if err != nil {
		return err
	}
	if len(content) == 0 {
		return usagef("missing secret value or filename")
	}
	op := model.SecretOp{Op: "add", ID: xid.New().String(), Owner: "application", Content: content}
	if o.owner == "unit" {
		op.Owner = "unit"
	}
	o.fill(&op)
	if op.Owner == "application" {
		leads, err := c.hook.isLeader(c.ctx)
		if err != nil {
			return err
		}
		if !leads {
			return errNotLeader
		}
	}
	if op.Label != nil {
		if err := c.checkNewLabel(*op.Label, op.Owner); err != nil {
			return err
		}
	}
	c.hook.secrets.touch(op.ID)
	c.hook.secrets.adds[op.ID] = &op
	fmt.Fprintf(&c.stdout, "secret:%s\n", op.ID)
	return nil
}

// checkNewLabel refuses a label that another secret of the owner has.
func (c *call) checkNewLabel(label, owner string) error {
	list, err := c.hook.managed(c.ctx)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.Label == label && m.Owner == owner {
			return fmt.Errorf("secret with label %q already exists", label)
		}
	}
	return nil
}

// secretSet buffers new content, which replaces all keys, or new metadata.
func secretSet(c *call) error {
	o := c.secretFlags()
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("missing secret URI")
	}
	id, err := secretID(args[0])
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	content, err := c.secretContent(args[1:], o.file)
	if err != nil {
		return err
	}
	if err := c.mayManage(id); err != nil {
		return err
	}
	op := model.SecretOp{Op: "set", ID: id, Content: content}
	o.fill(&op)
	c.hook.secrets.update(op)
	return nil
}

// mayManage refuses a secret that is not this unit's to manage.
func (c *call) mayManage(id string) error {
	_, err := c.hook.manageable(c.ctx, id)
	return err
}
