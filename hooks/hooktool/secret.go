// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
)

// Secret is a secret to add, owned by the application.
type Secret struct {
	Label       string // unique among the application's secrets
	Description string
	Content     map[string]string // keys of three or more lower-case letters, digits and dashes; no empty value
}

// SecretRef names a secret to read, by id, by label, or both (then the label
// is given to the secret named by the id).
type SecretRef struct {
	ID      string
	Label   string
	Refresh bool // from now on track the latest revision, and read it
	Peek    bool // read the latest revision without tracking it
}

// SecretInfo describes a secret that this unit may manage.
type SecretInfo struct {
	ID       string // bare: without "secret:"
	Label    string
	Owner    string // "application" or "unit"
	Revision int    // the latest
}

// SecretAdd adds a secret owned by the application and returns its id
// ("secret:..."), which may be published in the same hook. Leader only.
func (c *Client) SecretAdd(ctx context.Context, s Secret) (string, error) {
	var out []byte
	err := c.withContent(s.Content, func(path string) error {
		args := []string{"--file", path}
		if s.Label != "" {
			args = append(args, "--label", s.Label)
		}
		if s.Description != "" {
			args = append(args, "--description", s.Description)
		}
		var err error
		out, err = c.run(ctx, nil, "secret-add", args...)
		return err
	})
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(out))
	if id == "" {
		return "", errors.New("cannot add a secret: secret-add printed no id")
	}
	return id, nil
}

// SecretGet returns a secret's content.
func (c *Client) SecretGet(ctx context.Context, ref SecretRef) (map[string]string, error) {
	var args []string
	if ref.Label != "" {
		args = append(args, "--label", ref.Label)
	}
	if ref.Refresh {
		args = append(args, "--refresh")
	}
	if ref.Peek {
		args = append(args, "--peek")
	}
	if ref.ID != "" {
		args = append(args, "--", ref.ID)
	}
	v := map[string]string{}
	err := c.read(ctx, &v, "secret-get", args...)
	return v, err
}

// SecretSet replaces the whole content of a secret. Juju 3.6: content that is
// the same makes no revision. Leader only.
func (c *Client) SecretSet(ctx context.Context, id string, content map[string]string) error {
	return c.withContent(content, func(path string) error {
		return c.do(ctx, "secret-set", "--file", path, "--", id)
	})
}

// SecretGrant lets the remote application of a relation read a secret; it is
// safe to repeat. Leader only.
func (c *Client) SecretGrant(ctx context.Context, id, relationID string) error {
	return c.do(ctx, "secret-grant", "--relation", relationID, "--", id)
}

// SecretRevoke takes back what SecretGrant gave. Leader only.
func (c *Client) SecretRevoke(ctx context.Context, id, relationID string) error {
	return c.do(ctx, "secret-revoke", "--relation", relationID, "--", id)
}

// SecretRemove removes a secret with all its revisions. Leader only.
func (c *Client) SecretRemove(ctx context.Context, id string) error {
	return c.do(ctx, "secret-remove", "--", id)
}

// SecretRemoveRevision removes one revision of a secret. Leader only.
func (c *Client) SecretRemoveRevision(ctx context.Context, id string, revision int) error {
	return c.do(ctx, "secret-remove", "--revision", revisionArg(revision), "--", id)
}

// SecretIDs returns the bare ids of the secrets that this unit may manage,
// sorted.
func (c *Client) SecretIDs(ctx context.Context) ([]string, error) {
	var v []string
	err := c.read(ctx, &v, "secret-ids")
	sort.Strings(v)
	return v, err
}

// SecretInfo describes a secret that this unit may manage, named by id or by
// the owner's label; for any other the error is one for IsNotFound.
func (c *Client) SecretInfo(ctx context.Context, ref SecretRef) (SecretInfo, error) {
	type entry struct {
		Revision int    `json:"revision"`
		Label    string `json:"label"`
		Owner    string `json:"owner"`
	}
	var args []string
	if ref.ID != "" {
		args = append(args, "--", ref.ID)
	} else {
		args = append(args, "--label", ref.Label)
	}
	var raw map[string]entry
	if err := c.read(ctx, &raw, "secret-info-get", args...); err != nil {
		return SecretInfo{}, err
	}
	for id, e := range raw {
		return SecretInfo{ID: id, Label: e.Label, Owner: e.Owner, Revision: e.Revision}, nil
	}
	return SecretInfo{}, &Error{Tool: "secret-info-get", Code: 1, Message: "secret not found"}
}

// withContent calls use with the absolute path of a file that holds content
// and is gone when withContent returns. Juju 3.6: the agent opens the file
// itself, in its own working directory, and does not take standard input.
func (c *Client) withContent(content map[string]string, use func(path string) error) error {
	f, err := os.CreateTemp(c.tempDir, "content-") // created with mode 0600
	if err != nil {
		return fmt.Errorf("cannot hand over secret content: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(document(content))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot hand over secret content: %w", err)
	}
	return use(f.Name())
}
