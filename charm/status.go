// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
)

// cause is one thing that a person should know: a status and its text.
type cause struct {
	status hooktool.Status
	text   string
}

// severity orders statuses as Juju does when it derives the application's.
func severity(status hooktool.Status) int {
	switch status {
	case hooktool.Blocked:
		return 3
	case hooktool.Maintenance:
		return 2
	case hooktool.Waiting:
		return 1
	default:
		return 0
	}
}

// blocked, waiting and maintenance record a cause. Blocked is for what only a person can mend.
func (p *pass) blocked(format string, args ...any) { p.cause(hooktool.Blocked, format, args...) }
func (p *pass) waiting(format string, args ...any) { p.cause(hooktool.Waiting, format, args...) }
func (p *pass) maintenance(format string, args ...any) {
	p.cause(hooktool.Maintenance, format, args...)
}

func (p *pass) cause(status hooktool.Status, format string, args ...any) {
	p.causes = append(p.causes, cause{status, fmt.Sprintf(format, args...)})
}

// worst returns the status to show: the worst cause, the first of its kind, and how many more there are; without a cause
// active, with its text and the notes.
func (p *pass) worst() (hooktool.Status, string) {
	if len(p.causes) == 0 {
		return hooktool.Active, strings.Join(append([]string{p.active}, p.notes...), "; ")
	}
	causes := append([]cause{}, p.causes...)
	sort.SliceStable(causes, func(i, j int) bool { return severity(causes[i].status) > severity(causes[j].status) })
	text := causes[0].text
	if more := len(causes) - 1; more > 0 {
		text += fmt.Sprintf(" (+%d more)", more)
	}
	return causes[0].status, text
}

// report sets the unit's status if it is not the one that Juju has (Juju sets some itself, around install and stop), and
// then logs every cause, since the status shows but one.
func (p *pass) report(ctx context.Context) error {
	status, text := p.worst()
	haveStatus, haveText, err := p.tools.StatusGet(ctx)
	if err != nil {
		return err
	}
	if status == haveStatus && text == haveText {
		return nil
	}
	if err := p.tools.StatusSet(ctx, status, text); err != nil {
		return err
	}
	for _, c := range p.causes {
		p.log.Info("not settled", "status", string(c.status), "cause", c.text)
	}
	return nil
}
