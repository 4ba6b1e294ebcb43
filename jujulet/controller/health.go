// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Periods of the probes of a container, in seconds. Juju 3.6 sets the
// kubelet's probes so; before 3.6 the readiness period was 30 s.
const (
	startPeriod int32 = 1
	readyPeriod int32 = 5
)

// probeTimeout bounds one probe, as a kubelet does by default.
const probeTimeout = time.Second

// health probes Pebble's health on a pod's address.
type health struct {
	client *http.Client
	second time.Duration // the unit of the periods; tests shorten it
}

// newHealth returns probes that keep no connection.
func newHealth() *health {
	return &health{
		client: &http.Client{Timeout: probeTimeout, Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext:       (&net.Dialer{Timeout: probeTimeout}).DialContext,
		}},
		second: time.Second,
	}
}

// probe asks once whether Pebble at address:port is at level.
func (h *health) probe(ctx context.Context, address string, port int, level string) bool {
	url := fmt.Sprintf("http://%s/v1/health?level=%s", net.JoinHostPort(address, strconv.Itoa(port)), level)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	return resp.StatusCode >= 200 && resp.StatusCode < 400
}

// watch probes one container until ctx ends: the startup probe until it
// succeeds, then readiness, often until the first success and at its period
// after it. report is called after each probe: a container that was
// started again meanwhile is ready again without one that has failed.
func (h *health) watch(ctx context.Context, address string, port int, report func(started, ready bool)) {
	for !h.probe(ctx, address, port, "alive") {
		if !sleep(ctx, time.Duration(startPeriod)*h.second) {
			return
		}
	}
	report(true, false)
	once := false
	for ctx.Err() == nil {
		ready := h.probe(ctx, address, port, "ready")
		if ctx.Err() != nil {
			return
		}
		report(true, ready)
		once = once || ready
		period := startPeriod
		if once {
			period = readyPeriod
		}
		if !sleep(ctx, time.Duration(period)*h.second) {
			return
		}
	}
}

// sleep waits; false says that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
