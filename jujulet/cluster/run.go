// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cluster

import "context"

// Run runs the controllers until ctx ends: garbage collection by owner, and endpoint slices for Services
// with a selector. Without it objects are stored and served, nothing else happens to them.
func (s *Server) Run(ctx context.Context) error {
	s.store.mu.Lock()
	w := s.store.watch()
	s.store.mu.Unlock()
	defer s.close(w)
	for {
		if err := s.Settle(); err != nil {
			s.options.Logger.Error("controllers failed", "error", err)
		}
		select {
		case <-w.wake:
			w.take()
		case <-ctx.Done():
			return nil
		case <-s.closed:
			return nil
		}
	}
}

// Settle runs the controllers until they find nothing to do. Tests call it instead of waiting for Run.
func (s *Server) Settle() error {
	for {
		before := s.Version()
		if err := s.collectGarbage(); err != nil {
			return err
		}
		if err := s.syncEndpointSlices(); err != nil {
			return err
		}
		if s.Version() == before {
			return nil
		}
	}
}

// Version is the global resourceVersion: that of the last change of any object.
func (s *Server) Version() int64 {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	return s.store.version
}
