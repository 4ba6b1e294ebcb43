// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"io"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/k8sservice"
	"github.com/drawbridge-k8s/drawbridge/probe"
)

// Watch is the body of `drawbridge watch`: it works on the orders that the leader's hooks give it, and wakes the charm with
// a Pebble notice of the gateway container. It returns when ctx ends, when a hook ends it, or when another watch runs.
func Watch(ctx context.Context, o Options, dir string, getenv func(string) string, stdin io.Reader) error {
	session := o.Session
	var hanging func() []string
	if session == nil {
		s := &lastingSessions{ctx: context.WithoutCancel(ctx)} // the watch lets sessions end when it does
		defer s.close()
		session, hanging = s.with, s.hanging
	}
	o = New(o).o
	return probe.RunWatch(ctx, stdin, probe.WatchDeps{
		Dir:   dir,
		Build: o.Build,
		Session: func(login probe.Login) probe.Session {
			return session(database.Credentials{Username: login.Username, Password: login.Password})
		},
		Cluster: func(namespace string) (*k8sservice.Client, error) {
			options, err := k8sservice.InClusterOptions(getenv, o.Root)
			if err != nil {
				return nil, err
			}
			options.Transport = o.Transport
			if namespace != "" {
				options.Namespace = namespace
			}
			return k8sservice.NewClient(options)
		},
		Hanging:  hanging,
		Notifier: probe.PebbleNotifier(o.PebbleSocket(Container), probe.NoticeKey),

		Connections: probe.PebbleNotifier(o.PebbleSocket(Container), connections.NoticeKey),
	})
}

// lastingSessions are the sessions of a watch. What was begun with credentials that have changed since is not given up
// either: a stalled server would count it.
type lastingSessions struct {
	ctx         context.Context
	credentials database.Credentials // of the last of all
	all         []*database.Sessions
}

// with is called by the watch's loop only.
func (s *lastingSessions) with(c database.Credentials) probe.Session {
	if len(s.all) == 0 || c != s.credentials {
		s.credentials = c
		s.all = append(s.all, database.NewSessions(s.ctx, c))
	}
	return s.all[len(s.all)-1].Session
}

// hanging is called by the watch's loop only.
func (s *lastingSessions) hanging() []string {
	var addresses []string
	for _, sessions := range s.all {
		addresses = append(addresses, sessions.Hanging()...)
	}
	return addresses
}

func (s *lastingSessions) close() {
	for _, sessions := range s.all {
		sessions.Close()
	}
}
