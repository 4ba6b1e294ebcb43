// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// maxRequest bounds the body of a request, in bytes.
const maxRequest = 16 << 20

// maxWait bounds a call that waits for something, so that a client that has
// gone keeps nothing.
const maxWait = time.Minute

// handler returns the control socket's handler. What is about one model is the
// worker's of that model.
func (c *Controller) handler() http.Handler {
	mux := http.NewServeMux()
	plain(c, mux, "info", c.getInfo)
	plain(c, mux, "shutdown", c.postShutdown)
	plain(c, mux, "changed", c.getChanged) // of any model: what one waits for may be the end of its model
	c.modelsHandlers(mux)
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		worker, err := c.worker(r.URL.Query().Get(control.ModelParameter))
		if err != nil {
			refuse(w, err)
			return
		}
		worker.requests.ServeHTTP(w, r)
	})
	mux.Handle(control.KubernetesPrefix+"/", http.StripPrefix(control.KubernetesPrefix, c.asAdmin(c.api.Handler())))
	return mux
}

// logs is whose log takes what a handler has to say.
type logs interface{ logger() *slog.Logger }

func (c *Controller) logger() *slog.Logger { return c.log }

// plain serves a call with one request and one answer.
func plain[In, Out any](c logs, mux *http.ServeMux, name string, serve func(context.Context, In) (Out, error)) {
	mux.HandleFunc("POST /v1/"+name, func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := readRequest(r, &in); err != nil {
			refuse(w, err)
			return
		}
		out, err := serve(r.Context(), in)
		if err != nil {
			c.logger().Debug("request refused", "request", name, "error", err)
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(out); err != nil {
			c.logger().Debug("cannot answer", "request", name, "error", err)
		}
	})
}

// none is the answer, or the request, that says nothing.
type none struct{}

// readRequest decodes a body; an empty one and null are the zero value.
func readRequest(r *http.Request, into any) error {
	err := json.NewDecoder(io.LimitReader(r.Body, maxRequest)).Decode(into)
	if err != nil && !errors.Is(err, io.EOF) {
		return invalid("cannot read the request: %v", err)
	}
	return nil
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	refusal := asRefusal(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(refusal.Kind.HTTPStatus())
	_ = json.NewEncoder(w).Encode(refusal)
}

// asRefusal turns any error into what the client is told.
func asRefusal(err error) *control.Error {
	var refusal *control.Error
	var known *model.Error
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &known):
		return &control.Error{Kind: kindOf(known.Kind), Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &control.Error{Kind: control.KindTimeout, Message: err.Error()}
	case apierrors.IsNotFound(err), errors.Is(err, os.ErrNotExist):
		return &control.Error{Kind: control.KindNotFound, Message: err.Error()}
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return &control.Error{Kind: control.KindConflict, Message: err.Error()}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &control.Error{Kind: control.KindInvalid, Message: err.Error()}
	default:
		return &control.Error{Kind: control.KindInternal, Message: err.Error()}
	}
}

// kindOf says how a client is told of what the model refuses.
func kindOf(kind model.ErrorKind) control.Kind {
	switch kind {
	case model.NotFound:
		return control.KindNotFound
	case model.Exists, model.NotLeader, model.Permission:
		return control.KindConflict
	case model.Invalid, model.Quota:
		return control.KindInvalid
	default:
		return control.KindInternal
	}
}

func invalid(format string, args ...any) error {
	return &control.Error{Kind: control.KindInvalid, Message: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &control.Error{Kind: control.KindNotFound, Message: fmt.Sprintf(format, args...)}
}

// stream writes JSON values, one a line, each at once.
type stream struct {
	w       http.ResponseWriter
	encoder *json.Encoder
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	s := &stream{w, json.NewEncoder(w)}
	s.flush()
	return s
}

func (s *stream) flush() {
	if flusher, ok := s.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// send writes one value.
func (s *stream) send(value any) error {
	if err := s.encoder.Encode(value); err != nil {
		return err
	}
	s.flush()
	return nil
}

// asAdmin passes requests on with an administrator's rights.
func (c *Controller) asAdmin(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := c.adminToken()
		if err != nil {
			refuse(w, err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+token)
		api.ServeHTTP(w, r)
	})
}

// serveControl answers the control socket until ctx ends.
func (c *Controller) serveControl(ctx context.Context, l net.Listener) error {
	return serveHTTP(ctx, l, c.handler(), time.Second)
}

// serveHTTP serves until ctx ends; then what runs has grace to end.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, grace time.Duration) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		cancel() // streams end with it
		ending, cancelEnd := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancelEnd()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	if !stop() {
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// listenControl makes the control socket, for its owner alone.
func listenControl(runtime string) (net.Listener, error) {
	path := control.SocketPath(runtime)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot remove the old control socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on the control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot protect the control socket: %w", err)
	}
	return l, nil
}
