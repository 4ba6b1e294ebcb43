// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// RoundTripper sends requests to Handler without a socket; the host in the URL is ignored. Bodies of
// watches stream.
func (s *Server) RoundTripper() http.RoundTripper { return direct{s.Handler()} }

// direct calls a handler in a goroutine of its own and hands over the answer as it is written.
type direct struct{ handler http.Handler }

// RoundTrip returns once the handler has begun to answer.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	reader, writer := io.Pipe()
	w := &answer{header: http.Header{}, body: writer, begun: make(chan struct{})}
	request := r.Clone(ctx)
	if request.Body == nil {
		request.Body = http.NoBody
	}
	request.RequestURI = r.URL.RequestURI()
	request.RemoteAddr = "direct"
	// The handler ends when it has answered, or when the body of the answer is closed, which cancels ctx
	// and makes its writes fail.
	go func() {
		defer request.Body.Close()
		defer func() {
			if p := recover(); p != nil {
				err := io.ErrUnexpectedEOF
				if p != http.ErrAbortHandler {
					err = fmt.Errorf("internal error: handler panicked: %v", p)
				}
				w.abort(err)
			}
		}()
		d.handler.ServeHTTP(w, request)
		w.WriteHeader(http.StatusOK)
		_ = writer.Close()
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
		cancel()
		_ = reader.CloseWithError(ctx.Err())
		return nil, ctx.Err()
	}
	if w.failed != nil {
		cancel()
		return nil, w.failed
	}
	stop := context.AfterFunc(ctx, func() { _ = reader.CloseWithError(context.Cause(ctx)) })
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)), StatusCode: w.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, ContentLength: -1, Request: r,
		Body: &answerBody{reader, func() { stop(); cancel() }},
	}, nil
}

// answer is the ResponseWriter of direct.
type answer struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	begun  chan struct{}
	// code, sent and failed are set before begun is closed.
	code   int
	sent   http.Header
	failed error
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	a.once.Do(func() {
		a.code, a.sent = code, a.header.Clone()
		close(a.begun)
	})
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush does nothing: what is written is there at once.
func (a *answer) Flush() {}

func (a *answer) abort(err error) {
	a.once.Do(func() {
		a.failed = err
		close(a.begun)
	})
	_ = a.body.CloseWithError(err)
}

// answerBody ends the handler when it is closed.
type answerBody struct {
	*io.PipeReader
	end func()
}

func (b *answerBody) Close() error {
	err := b.PipeReader.Close()
	b.end()
	return err
}
