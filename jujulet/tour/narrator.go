// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// narrator tells the story: a line for each thing that happens, with the seconds since the step's own beginning.
type narrator struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
}

func (n *narrator) write(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, _ = io.WriteString(n.out, text) // a story nobody listens to changes nothing
}

// title begins a step.
func (n *narrator) title(number, of int, name, what string) {
	n.restart(time.Now())
	n.write(fmt.Sprintf("\n[%d/%d] %s: %s\n", number, of, name, what))
}

// restart sets the moment from which seconds are counted.
func (n *narrator) restart(at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begin = at
}

// say tells what happens now.
func (n *narrator) say(format string, args ...any) { n.sayAt(time.Now(), format, args...) }

// sayAt tells what happened at a moment.
func (n *narrator) sayAt(at time.Time, format string, args ...any) {
	n.mu.Lock()
	begin := n.begin
	n.mu.Unlock()
	n.write(fmt.Sprintf("%8.2f s  %s\n", at.Sub(begin).Seconds(), fmt.Sprintf(format, args...)))
}

// command tells which command a user would type.
func (n *narrator) command(text string) { n.say("$ jujulet %s", text) }

// block tells several lines, such as a status.
func (n *narrator) block(text string) {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimRight("            | "+line, " \n") + "\n")
	}
	n.write(out.String())
}
