// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drawbridge-k8s/drawbridge/jujulet/cluster"
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// faults make the API answer wrongly on purpose. They last as long as this process.
type faults struct {
	clock func() time.Time

	mu   sync.Mutex
	list []*fault
	next int
}

// fault is one of them, with what is left of it.
type fault struct {
	control.Fault
	until time.Time // zero: no end
}

// faultCodes are the answers that can be asked for.
var faultCodes = []int{400, 401, 403, 404, 409, 410, 422, 429, 500, 502, 503, 504}

// checkFault refuses what would do nothing, or something else than it says.
func checkFault(f control.Fault) error {
	switch {
	case f.Answer == "" && f.Delay == 0:
		return invalid("a fault needs an answer or a delay")
	case f.Answer == control.FaultCut || f.Answer == control.FaultTimeout || f.Answer == "":
	default:
		if code, err := strconv.Atoi(f.Answer); err != nil || !slices.Contains(faultCodes, code) {
			return invalid("cannot answer %q: expected %s, %s or one of %v", f.Answer, control.FaultCut, control.FaultTimeout, faultCodes)
		}
	}
	if f.Times < 0 || f.For < 0 || f.Delay < 0 || f.RetryAfter < 0 {
		return invalid("a fault's times and durations must be positive")
	}
	return nil
}

// change adds a fault, removes all, or does nothing, and returns what there is.
func (s *faults) change(r control.FaultChange) ([]control.Fault, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Clear {
		s.list = nil
	}
	if r.Add != nil {
		if err := checkFault(*r.Add); err != nil {
			return nil, err
		}
		s.next++
		added := &fault{Fault: *r.Add}
		added.ID = s.next
		if added.For > 0 {
			added.until = s.clock().Add(added.For)
		}
		s.list = append(s.list, added)
	}
	s.expire()
	out := []control.Fault{}
	for _, f := range s.list {
		shown := f.Fault
		if !f.until.IsZero() {
			shown.For = f.until.Sub(s.clock())
		}
		out = append(out, shown)
	}
	return out, nil
}

// expire removes faults whose time is over.
func (s *faults) expire() {
	now := s.clock()
	s.list = slices.DeleteFunc(s.list, func(f *fault) bool { return !f.until.IsZero() && !now.Before(f.until) })
}

// take returns the first fault that fits a request, and counts it.
func (s *faults) take(r *http.Request) *fault {
	verb, resource, name := requestOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	for i, f := range s.list {
		if f.Verb != "" && f.Verb != verb || f.Resource != "" && f.Resource != resource || f.Name != "" && f.Name != name {
			continue
		}
		taken := *f
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.list = slices.Delete(s.list, i, i+1)
			}
		}
		return &taken
	}
	return nil
}

// meet lets a request meet its fault; it is laid over the API. The operator's own requests, which carry the token
// admin, pass.
func (s *faults) meet(r *http.Request, admin string) error {
	if r.Header.Get("Authorization") == "Bearer "+admin {
		return nil
	}
	f := s.take(r)
	if f == nil {
		return nil
	}
	if f.Delay > 0 && !sleep(r.Context(), f.Delay) {
		return cluster.ErrDisconnect
	}
	switch f.Answer {
	case "":
		return nil
	case control.FaultCut:
		return cluster.ErrDisconnect
	case control.FaultTimeout:
		<-r.Context().Done()
		return cluster.ErrDisconnect
	}
	code, err := strconv.Atoi(f.Answer)
	if err != nil {
		return fmt.Errorf("cannot make fault %d: %w", f.ID, err)
	}
	verb, resource, name := requestOf(r)
	return apierrors.NewGenericServerResponse(
		code, verb, schema.GroupResource{Resource: resource}, name, "a fault of jujulet", f.RetryAfter, true)
}

// requestOf tells the verb, the resource and the name of a request, as the rules of RBAC name them. What is no
// resource has none.
func requestOf(r *http.Request) (verb, resource, name string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		parts = nil
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" {
		parts = parts[2:]
	}
	if len(parts) > 0 {
		resource = parts[0]
	}
	if len(parts) > 1 {
		name = parts[1]
	}
	watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	switch r.Method {
	case http.MethodPost:
		verb = "create"
	case http.MethodPut:
		verb = "update"
	case http.MethodPatch:
		verb = "patch"
	case http.MethodDelete:
		if verb = "delete"; name == "" {
			verb = "deletecollection"
		}
	default:
		switch {
		case watch:
			verb = "watch"
		case name == "":
			verb = "list"
		default:
			verb = "get"
		}
	}
	return verb, resource, name
}

// postFault changes the faults of the API.
func (c *Controller) postFault(_ context.Context, r control.FaultChange) ([]control.Fault, error) {
	token, err := c.adminToken()
	if err != nil {
		return nil, err
	}
	list, err := c.faults.change(r)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		c.api.SetFault(nil)
		return list, nil
	}
	c.api.SetFault(func(request *http.Request) error { return c.faults.meet(request, token) })
	return list, nil
}
