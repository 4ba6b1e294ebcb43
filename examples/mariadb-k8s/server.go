// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package main

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/drawbridge-k8s/drawbridge/database"
	"github.com/drawbridge-k8s/drawbridge/workload"
)

const (
	service    = "mariadb"
	adminUser  = "charm"
	startLimit = 20 * time.Second
)

// server is MariaDB in the workload container. All of it is in one folder there:
// the data, and the password of the charm's own account, which is made with the
// data, read back from there and gone with it. The account logs in from
// 127.0.0.1 only.
type server struct {
	socket string // the container's Pebble
	folder string // in the container
	port   int
}

// ensure brings the server up and logs in. The caller closes admin.
func (s server) ensure(ctx context.Context) (admin *database.Admin, started bool, err error) {
	c, err := workload.Dial(ctx, s.socket)
	if err != nil {
		return nil, false, err
	}
	defer c.Close()
	password, err := s.install(ctx, c)
	if err != nil {
		return nil, false, err
	}
	if started, err = s.start(ctx, c); err != nil {
		return nil, false, err
	}
	// Over the pod's loopback, which the two containers share.
	login, address := database.Credentials{Username: adminUser, Password: password}, fmt.Sprintf("127.0.0.1:%d", s.port)
	for begun := time.Now(); ; {
		if admin, err = database.Open(ctx, login, address); err == nil || time.Since(begun) > startLimit {
			return admin, started, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// install makes the data unless it is there, and returns the password of the
// charm's account. The password is written last: without it nothing in the
// folder is of worth.
func (s server) install(ctx context.Context, c *workload.Container) (password string, err error) {
	file := path.Join(s.folder, "password")
	content, found, err := c.ReadFile(ctx, file)
	if err != nil || found {
		return string(content), err
	}
	const script = `rm -rf "$0" && mkdir -p "$0" && exec mariadb-install-db --no-defaults --datadir="$0/data" --tmpdir="$0" \
--user=root --auth-root-authentication-method=socket --skip-test-db --skip-name-resolve --innodb-log-file-size=4M >&2`
	if _, err := c.Run(ctx, "", "sh", "-c", script, s.folder); err != nil {
		return "", err
	}
	password = database.NewPassword()
	account := fmt.Sprintf("CREATE OR REPLACE USER '%[1]s'@'127.0.0.1' IDENTIFIED BY '%[2]s';\n"+
		"GRANT ALL PRIVILEGES ON *.* TO '%[1]s'@'127.0.0.1' WITH GRANT OPTION;\n", adminUser, password)
	_, err = c.WriteFile(ctx, path.Join(s.folder, "init.sql"), account, 0o600)
	if err == nil {
		_, err = c.WriteFile(ctx, file, password, 0o600)
	}
	return password, err
}

// start starts the server unless it runs.
func (s server) start(ctx context.Context, c *workload.Container) (started bool, err error) {
	changed, err := c.Apply(ctx, service, workload.Layer{Services: map[string]workload.LayerService{service: {
		Summary: "MariaDB",
		Command: fmt.Sprintf("mariadbd --no-defaults --user=root --datadir=%[1]s/data --tmpdir=%[1]s --socket=%[1]s/socket --pid-file=%[1]s/pid "+
			"--init-file=%[1]s/init.sql --port=%[2]d --skip-name-resolve --max-connections=500 "+
			"--innodb-buffer-pool-size=8M --innodb-log-file-size=4M", s.folder, s.port),
	}}})
	if err != nil {
		return false, err
	}
	state, err := c.Service(ctx, service)
	switch {
	case err != nil:
		return false, err
	case changed:
		_, err = c.Replan(ctx)
	case !state.Active():
		_, err = c.Start(ctx, service)
	default:
		return false, nil
	}
	return true, err
}
