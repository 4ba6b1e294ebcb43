// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// largestBody is how many bytes the body of a request may have.
const largestBody = 3 << 20

// call is one HTTP request on its way to an answer.
type call struct {
	*Server
	w     http.ResponseWriter
	r     *http.Request
	user  user
	query url.Values
	action
	version string
	kind    *kind
}

// serve answers one request: fault, account, rights, table of kinds, verb.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	c := &call{Server: s, w: w, r: r, query: r.URL.Query()}
	if f := s.fault.Load(); f != nil {
		if err := (*f)(r); err != nil {
			if errors.Is(err, ErrDisconnect) {
				panic(http.ErrAbortHandler)
			}
			c.fail(err)
			return
		}
	}
	if err := c.authenticate(); err != nil {
		c.fail(err)
		return
	}
	if err := c.answer(); err != nil {
		c.fail(err)
	}
}

func (c *call) authenticate() error {
	header := c.r.Header.Get("Authorization")
	if header == "" {
		return nil
	}
	scheme, token, _ := strings.Cut(header, " ")
	a := c.accounts.find(strings.TrimSpace(token))
	if !strings.EqualFold(scheme, "Bearer") || a == nil {
		return apierrors.NewUnauthorized("Unauthorized")
	}
	c.user = user{a}
	return nil
}

func (c *call) answer() error {
	if !c.parse() {
		if !c.user.allowsPath(c.r.URL.Path) {
			return pathForbidden(c.user, c.r)
		}
		return c.nonResource()
	}
	if c.action.resource == "selfsubjectaccessreviews" && c.group == "authorization.k8s.io" {
		return c.accessReview()
	}
	if err := c.authorize(c.action); err != nil {
		return err
	}
	if c.kind = c.lookup(); c.kind == nil {
		return unknownPath(c.action)
	}
	return c.dispatch()
}

func (c *call) dispatch() error {
	if c.kind.namespaced && c.namespace == "" && !slices.Contains([]string{"list", "watch"}, c.verb) {
		return methodNotAllowed(c.action)
	}
	switch c.verb {
	case "get":
		return c.get()
	case "list":
		return c.listAll()
	case "watch":
		return c.watch()
	case "create":
		return c.create()
	case "update":
		return c.put()
	case "patch":
		return c.patch()
	case "delete":
		return c.remove()
	case "deletecollection":
		return c.removeAll()
	}
	return methodNotAllowed(c.action)
}

// authorize asks for the right to do a.
func (c *call) authorize(a action) error {
	if _, ok := c.user.allows(a); ok {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.group, Resource: a.resource}, a.name, c.user.refusal(a))
}

func pathForbidden(u user, r *http.Request) error {
	verb := strings.ToLower(r.Method)
	//lint:ignore ST1005 the text is Kubernetes' own
	err := apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("User %q cannot %s path %q", u.name(), verb, r.URL.Path))
	err.ErrStatus.Message = fmt.Sprintf("forbidden: User %q cannot %s path %q", u.name(), verb, r.URL.Path)
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

// parse reads the path; false means that it names no resource.
func (c *call) parse() bool {
	parts := strings.Split(strings.Trim(c.r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		c.version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		c.group, c.version, parts = parts[1], parts[2], parts[3:]
	default:
		return false
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		c.namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	c.resource = parts[0]
	if len(parts) > 1 {
		c.action.name = parts[1]
	}
	if len(parts) > 2 {
		c.subresource = strings.Join(parts[2:], "/")
	}
	c.verb = c.verbOf()
	return true
}

func (c *call) verbOf() string {
	named := c.action.name != ""
	switch c.r.Method {
	case http.MethodGet, http.MethodHead:
		if isTrue(c.query.Get("watch")) {
			if !named {
				c.action.name = nameSelected(c.query.Get("fieldSelector"))
			}
			return "watch"
		}
		if named {
			return "get"
		}
		c.action.name = nameSelected(c.query.Get("fieldSelector"))
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	return strings.ToLower(c.r.Method)
}

func isTrue(v string) bool { return v == "true" || v == "1" }

// lookup finds the row of the table for a request; nil means 404. Pods of the exec kind and the like
// are not served.
func (c *call) lookup() *kind {
	for _, k := range c.rules.kinds {
		if k.plural != c.resource || k.gvk.Group != c.group || k.gvk.Version != c.version {
			continue
		}
		if c.subresource != "" && (c.subresource != "status" || !k.hasStatus) {
			return nil
		}
		if !k.namespaced && c.namespace != "" && k.Kind != Namespace {
			return nil
		}
		return k
	}
	return nil
}

func unknownPath(a action) error {
	err := apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{Group: a.group, Resource: a.resource}, "", "404 page not found", 0, true)
	err.ErrStatus.Message = "the server could not find the requested resource"
	return err
}

func methodNotAllowed(a action) error {
	err := apierrors.NewMethodNotSupported(schema.GroupResource{Group: a.group, Resource: a.resource}, a.verb)
	err.ErrStatus.Message = "the server does not allow this method on the requested resource"
	return err
}

// fail answers with an error: as a Status if it is one, else as the 500 without a reason that real
// servers give for errors they have no name for.
func (c *call) fail(err error) {
	var known apierrors.APIStatus
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if errors.As(err, &known) {
		status = known.Status()
		if status.Status == "" {
			status.Status = metav1.StatusFailure
		}
		if status.Code == 0 {
			status.Code = http.StatusInternalServerError
		}
	}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		c.w.Header().Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	c.json(int(status.Code), status)
}

func (c *call) json(code int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		c.options.Logger.Error("cannot encode an answer", "error", err)
		code, data = http.StatusInternalServerError, []byte("{}")
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Cache-Control", "no-cache, private")
	c.w.WriteHeader(code)
	if _, err := c.w.Write(append(data, '\n')); err != nil {
		c.options.Logger.Debug("cannot send an answer", "error", err)
	}
}

// object answers with an object, in the form that the client asked for.
func (c *call) object(code int, obj Object) error {
	if c.wantsTable() {
		table, err := c.table([]Object{obj}, obj.GetResourceVersion())
		if err != nil {
			return err
		}
		c.json(code, table)
		return nil
	}
	c.json(code, obj)
	return nil
}
