// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"net/http"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// offerHandlers serves relations across models.
func (c *modelWorker) offerHandlers(mux *http.ServeMux) {
	plain(c, mux, "offer", func(_ context.Context, r control.OfferRequest) (string, error) {
		name, err := c.model.Offer(r.Application, r.Endpoints, r.Name)
		return model.OfferURL(c.info.Name, name), err
	})
	plain(c, mux, "remove-offer", func(_ context.Context, r control.RemoveOfferRequest) (none, error) {
		return none{}, c.model.RemoveOffer(r.Name, r.Force)
	})
	plain(c, mux, "consume", func(_ context.Context, r control.ConsumeRequest) (string, error) {
		from, err := c.worker(r.Model)
		if err != nil {
			return "", err
		}
		return c.model.Consume(from.info.Name, r.Offer, r.Alias)
	})
	plain(c, mux, "remove-saas", func(_ context.Context, r control.RemoveRequest) (none, error) {
		return none{}, c.model.RemoveSAAS(r.Application)
	})
}
