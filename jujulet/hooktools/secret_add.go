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
	label, description, rotate, owner, file, expires string
	expire                                           *time.Time
}

func (c *call) secretFlags() *secretOptions {
	o := &secretOptions{}
	c.flags.text(&o.label, "label")
	c.flags.text(&o.description, "description")
	c.flags.text(&o.file, "file")
	c.flags.text(&o.owner, "owner")
	c.flags.text(&o.rotate, "rotate")
	c.flags.text(&o.expires, "expire")
	return o
}

func expireTime(text string) (*time.Time, error) {
	for _, layout := range expireLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			t = t.UTC()
			return &t, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, usagef("expire time or duration %q not valid", text)
	}
	if d <= 0 {
		return nil, usagef("negative expire duration %q not valid", text)
	}
	t := time.Now().Add(d).UTC()
	return &t, nil
}

func (o *secretOptions) check() (err error) {
	if o.expires != "" {
		if o.expire, err = expireTime(o.expires); err != nil {
			return err
		}
	}
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
}

// secretContent reads k=v, k#base64=v and k#file=path arguments and --file; the
// values of the result are base64, those of the file win. Values are not trimmed,
// unlike those of other tools. Whatever is wrong is an error of usage: Juju reads
// them with the arguments.
func (c *call) secretContent(args []string, file string) (map[string]string, error) {
	given := map[string]string{}
	for _, a := range args {
		key, value, err := secretPair(a)
		if err != nil {
			return nil, err
		}
		given[key] = value
	}
	out, err := encodeSecret(given)
	if err != nil || file == "" {
		return out, err
	}
	more, err := secretFile(file)
	if err != nil {
		return nil, &usageError{message: err.Error()}
	}
	if more, err = encodeSecret(more); err != nil {
		return nil, err
	}
	maps.Copy(out, more)
	return out, nil
}

// secretPair splits "key=value" and reads the file of "key#file=path". "=" at the
// end is base64's and does not count, so an empty value is refused.
func secretPair(text string) (key, value string, err error) {
	i := strings.Index(strings.TrimRight(text, "="), "=")
	if i < 1 {
		return "", "", usagef("key value %q not valid", text)
	}
	key, value = text[:i], text[i+1:]
	name, isFile := strings.CutSuffix(key, "#file")
	if !isFile {
		return key, value, nil
	}
	raw, err := readFile(value)
	if errors.As(err, new(*tooLarge)) {
		return "", "", usagef("%v", err)
	}
	if err != nil {
		return "", "", usagef("reading content for secret key %q: %v", name, err)
	}
	return name, string(raw), nil
}

// encodeSecret checks keys and sizes and makes every value base64. What a "#base64"
// key has is taken as it is.
func encodeSecret(values map[string]string) (map[string]string, error) {
	out, size := map[string]string{}, 0
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name, encoded := strings.CutSuffix(key, "#base64")
		value := values[key]
		if !encoded {
			value = base64.StdEncoding.EncodeToString([]byte(value))
		}
		if !secretKey.MatchString(name) {
			return nil, usagef("key %q not valid", name)
		}
		if len(value) > maxSecret {
			return nil, usagef("base64 encoded secret content for key %q too large: %d bytes", name, len(value))
		}
		out[name] = value
		size += len(value)
	}
	if size > maxSecret {
		return nil, usagef("base64 encoded secret content too large: %d bytes", size)
	}
	return out, nil
}

// secretFile reads a YAML map of strings. The path is the agent's: there is no
// standard input behind "-".
func secretFile(name string) (map[string]string, error) {
	raw, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return flatYAML(raw)
}

// tooLarge refuses a file of more than a secret can hold.
type tooLarge struct {
	name string
	size int64
}

func (e *tooLarge) Error() string {
	return fmt.Sprintf("secret content in file %q too large: %d bytes", e.name, e.size)
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxSecret {
		return nil, &tooLarge{name, info.Size()}
	}
	return io.ReadAll(io.LimitReader(f, 4*maxSecret))
}

// secretAdd buffers a new secret and prints its URI, which is final.
func secretAdd(c *call) error {
	o := c.secretFlags()
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 && o.file == "" {
		return usagef("missing secret value or filename")
	}
	if err := o.check(); err != nil {
		return err
	}
	content, err := c.secretContent(args, o.file)
	if err != nil {
		return err
	}
	if len(content) == 0 {
		return errors.New("empty secret value not valid")
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
	if err := c.leadsOwner(id); err != nil {
		return err
	}
	op := model.SecretOp{Op: "set", ID: id, Content: content}
	o.fill(&op)
	c.hook.secrets.update(op)
	return nil
}

// leadsOwner refuses a known secret of the application when the unit does not lead
// (any more). A secret that is not this unit's to manage is refused at the commit.
func (c *call) leadsOwner(id string) error {
	list, err := c.hook.managed(c.ctx)
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(list, func(m model.SecretMeta) bool { return m.ID == id && m.Owner == "application" })
	if !known {
		return nil
	}
	leads, err := c.hook.isLeader(c.ctx)
	if err == nil && !leads {
		err = errNotLeader
	}
	return err
}
