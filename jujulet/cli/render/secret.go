// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// Secret is one secret in the documents of `juju secrets` and `show-secret`.
type Secret struct {
	Revision    int              `json:"revision" yaml:"revision"`
	Checksum    string           `json:"checksum,omitempty" yaml:"checksum,omitempty"`
	Expires     *time.Time       `json:"expires,omitempty" yaml:"expires,omitempty"`
	Rotation    string           `json:"rotation,omitempty" yaml:"rotation,omitempty"`
	Rotates     *time.Time       `json:"rotates,omitempty" yaml:"rotates,omitempty"`
	Owner       string           `json:"owner,omitempty" yaml:"owner,omitempty"`
	Description string           `json:"description,omitempty" yaml:"description,omitempty"`
	Name        string           `json:"name,omitempty" yaml:"name,omitempty"`
	Label       string           `json:"label,omitempty" yaml:"label,omitempty"`
	Created     time.Time        `json:"created" yaml:"created"`
	Updated     time.Time        `json:"updated" yaml:"updated"`
	Content     *SecretContent   `json:"content,omitempty" yaml:"content,omitempty"`
	Revisions   []SecretRevision `json:"revisions,omitempty" yaml:"revisions,omitempty"`
	Access      []SecretAccess   `json:"access,omitempty" yaml:"access,omitempty"`
}

// SecretContent is a secret's content: below the key Data in JSON, without it in YAML, as juju has it.
type SecretContent struct {
	Data map[string]string `json:"Data" yaml:",inline"`
}

// SecretRevision is one revision of a [Secret].
type SecretRevision struct {
	Revision int        `json:"revision" yaml:"revision"`
	Backend  string     `json:"backend,omitempty" yaml:"backend,omitempty"`
	Created  time.Time  `json:"created" yaml:"created"`
	Updated  time.Time  `json:"updated" yaml:"updated"`
	Expires  *time.Time `json:"expires,omitempty" yaml:"expires,omitempty"`
}

// SecretAccess says who may read a [Secret].
type SecretAccess struct {
	Target string `json:"target" yaml:"target"`
	Scope  string `json:"scope" yaml:"scope"`
	Role   string `json:"role" yaml:"role"`
}

// SecretOptions select what is shown of a secret.
type SecretOptions struct {
	// Backend is the name of what keeps the contents; with it the revisions are shown.
	Backend string
	// Access shows who may read the secret.
	Access bool
}

// ShowSecret returns the document of one secret. Juju 3.6: times are UTC, to the second.
func ShowSecret(s control.Secret, o SecretOptions) Secret {
	out := Secret{
		Revision: s.Revision, Checksum: s.Checksum, Expires: moment(s.Expires), Rotation: s.Rotation, Rotates: moment(s.Rotates),
		Owner: s.Owner, Description: s.Description, Name: s.Name, Label: s.Label, Created: second(s.Created), Updated: second(s.Updated),
	}
	if len(s.Content) > 0 {
		out.Content = &SecretContent{s.Content}
	}
	if o.Backend != "" {
		for _, r := range s.Revisions {
			out.Revisions = append(out.Revisions, SecretRevision{
				Revision: r.Revision, Backend: o.Backend, Created: second(r.Created), Updated: second(r.Created), Expires: moment(r.Expires),
			})
		}
	}
	if o.Access {
		for _, a := range s.Access {
			out.Access = append(out.Access, SecretAccess{a.Target, a.Scope, a.Role})
		}
	}
	return out
}

func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// moment is nil for what never comes.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = second(t)
	return &t
}

// Secrets writes secrets, by id, as `juju secrets` does.
func Secrets(w io.Writer, secrets map[string]Secret, now time.Time) error {
	t := newTable("ID", "Name", "Owner", "Rotation", "Revision", "Last updated")
	t.right[4] = true
	ids := slices.SortedFunc(maps.Keys(secrets), func(a, b string) int {
		x, y := secrets[a], secrets[b]
		return cmp.Or(cmp.Compare(x.Owner, y.Owner), cmp.Compare(y.Revision, x.Revision), cmp.Compare(a, b))
	})
	for _, id := range ids {
		s := secrets[id]
		name := s.Name
		if name == "" {
			name = "-"
		}
		t.add(plain(id), plain(name), plain(s.Owner), plain(s.Rotation), plain(strconv.Itoa(s.Revision)), plain(age(s.Updated, now)))
	}
	return t.write(w, false)
}

// age is how long ago something was, in juju's words.
func age(when, now time.Time) string {
	since := now.Sub(when)
	count := func(n int, unit string) string {
		if n != 1 {
			unit += "s"
		}
		return fmt.Sprintf("%d %s ago", n, unit)
	}
	switch {
	case since >= 24*time.Hour:
		return when.Format("2006-01-02")
	case since >= time.Hour:
		return count(int(since.Hours()), "hour")
	case since >= time.Minute:
		return count(int(since.Minutes()), "minute")
	case since >= 2*time.Second:
		return count(int(since.Seconds()), "second")
	default:
		return "just now"
	}
}
