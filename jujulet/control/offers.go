// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import (
	"context"
	"strings"
)

// OfferURL names an offer: [<controller>:][<user>/]<model>.<offer>[:<endpoint>].
type OfferURL struct {
	Controller string // "" if not named
	User       string // "" if not named
	Model      string // "" if not named
	Offer      string
	Endpoint   string // "" if not named
}

// ParseOfferURL reads an offer's URL; a bare name is an offer of the current model.
func ParseOfferURL(text string) OfferURL {
	var u OfferURL
	rest := text
	// A colon before the name is the controller's, one behind it the endpoint's.
	if head, tail, ok := strings.Cut(text, ":"); ok && strings.ContainsAny(tail, "./") {
		u.Controller, rest = head, tail
	}
	rest, u.Endpoint, _ = strings.Cut(rest, ":")
	if user, tail, ok := strings.Cut(rest, "/"); ok {
		u.User, rest = user, tail
	}
	u.Offer = rest
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		u.Model, u.Offer = rest[:i], rest[i+1:]
	}
	return u
}

// Qualified says whether the URL names a model: it is then of another one.
func (u OfferURL) Qualified() bool { return u.Model != "" }

// ModelRef is how a request names the URL's model.
func (u OfferURL) ModelRef() string {
	ref := u.Model
	if u.User != "" && ref != "" {
		ref = u.User + "/" + ref
	}
	if u.Controller != "" {
		ref = u.Controller + ":" + ref
	}
	return ref
}

// OfferRequest offers endpoints of an application; Name "" is the application's.
type OfferRequest struct {
	Application string   `json:"application"`
	Endpoints   []string `json:"endpoints"`
	Name        string   `json:"name,omitempty"`
}

// RemoveOfferRequest removes an offer; Force ends the relations to it.
type RemoveOfferRequest struct {
	Name  string `json:"name"`
	Force bool   `json:"force,omitempty"`
}

// ConsumeRequest makes an offer of another model, [controller:][user/]model, known
// under an alias; "" is the offer's name.
type ConsumeRequest struct {
	Model string `json:"model"`
	Offer string `json:"offer"`
	Alias string `json:"alias,omitempty"`
}

// Offer offers an application's endpoints and returns the offer's URL.
func (c *Client) Offer(ctx context.Context, r OfferRequest) (string, error) {
	var out string
	return out, c.call(ctx, "offer", r, &out)
}

// RemoveOffer removes an offer.
func (c *Client) RemoveOffer(ctx context.Context, r RemoveOfferRequest) error {
	return c.call(ctx, "remove-offer", r, nil)
}

// Consume makes an offer known and returns its name in this model.
func (c *Client) Consume(ctx context.Context, r ConsumeRequest) (string, error) {
	var out string
	return out, c.call(ctx, "consume", r, &out)
}

// RemoveSAAS begins the end of a consumed offer.
func (c *Client) RemoveSAAS(ctx context.Context, alias string) error {
	return c.call(ctx, "remove-saas", RemoveRequest{Application: alias}, nil)
}
