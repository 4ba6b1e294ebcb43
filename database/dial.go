// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package database

import (
	"context"
	"errors"
	"net"
	"time"
)

// redialEvery is how long a connection may take before it is begun anew.
const redialEvery = 500 * time.Millisecond

// redial connects to address as soon as it answers. One that drops what it is
// sent would be tried by the kernel after 1, 3 and 7 s only, and always along
// the way that was chosen for the first packet. A connection that was not made
// costs the server nothing, but two at a time could both be made, and the one
// that is not used be counted as a connect error: so one follows the other.
func redial(ctx context.Context, network, address string) (net.Conn, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	hosts, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: redialEvery}
	for {
		silent := false
		for _, host := range hosts {
			var conn net.Conn
			if conn, err = dialer.DialContext(ctx, network, net.JoinHostPort(host, port)); err == nil {
				return conn, nil
			}
			var late net.Error
			silent = silent || errors.As(err, &late) && late.Timeout()
		}
		if !silent || ctx.Err() != nil {
			return nil, err
		}
	}
}
