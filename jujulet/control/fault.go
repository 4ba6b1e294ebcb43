// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package control

import "time"

// Answers of a Fault that are no status.
const (
	// FaultCut ends the connection without an answer.
	FaultCut = "cut"
	// FaultTimeout does not answer until the client gives up.
	FaultTimeout = "timeout"
)

// Fault is what the Kubernetes API does wrongly on purpose with requests that fit: all those that Verb, Resource and
// Name do not exclude.
type Fault struct {
	ID       int    `json:"id,omitempty"`
	Verb     string `json:"verb,omitempty"`     // as RBAC names it; "" fits all
	Resource string `json:"resource,omitempty"` // such as "services"; "" fits all
	Name     string `json:"name,omitempty"`     // of an object; "" fits all
	// Answer is a status such as "409", FaultCut or FaultTimeout; "" goes on as usual after Delay.
	Answer     string        `json:"answer,omitempty"`
	RetryAfter int           `json:"retry-after,omitempty"` // seconds
	Delay      time.Duration `json:"delay,omitempty"`
	Times      int           `json:"times,omitempty"` // requests it still meets; 0 is all
	For        time.Duration `json:"for,omitempty"`   // how long it still lasts; 0 has no end
}

// FaultChange removes all faults, and then adds one.
type FaultChange struct {
	Clear bool   `json:"clear,omitempty"`
	Add   *Fault `json:"add,omitempty"`
}
