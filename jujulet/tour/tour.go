// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// Options say how a tour is made.
type Options struct {
	// Out is the folder for tour.json, and for the state folder of the tour's own cluster while it lasts.
	Out string
	// Charms is the folder with the three packed charms.
	Charms string
	// Units is the number of units of drawbridge-k8s.
	Units int
	// Steps selects steps by name; none means all. The first one is always run.
	Steps []string
	// Keep leaves the cluster up at the end.
	Keep bool
	// Story is where the tour is narrated.
	Story io.Writer
	// Render shows a status as `jujulet status` does.
	Render func(model.Status) string
	// Up starts the cluster of a state folder, with update-status off, and returns the stage; Down ends it and removes the
	// state folder.
	Up   func(ctx context.Context, state string) (Stage, error)
	Down func(ctx context.Context, state string) error
}

// cleanTimeout bounds the end of a tour that was interrupted.
const cleanTimeout = 60 * time.Second

// Run makes the tour, writes tour.json, and returns the report. An error is something that kept the tour from going on; a
// promise that was not kept is in the report. Whatever happens, nothing is left behind unless it is to be kept.
func Run(ctx context.Context, o Options) (report Report, err error) {
	selected, err := selectSteps(o.Steps)
	if err != nil {
		return report, err
	}
	if err := checkCharms(o.Charms); err != nil {
		return report, err
	}
	unlock, err := lock(o.Out)
	if err != nil {
		return report, err
	}
	defer unlock()
	state, err := filepath.Abs(filepath.Join(o.Out, "tour"))
	if err != nil {
		return report, fmt.Errorf("cannot find the state folder: %w", err)
	}
	story := &narrator{out: o.Story, begin: time.Now()}
	if err := o.Down(ctx, state); err != nil { // of a tour that was killed
		return report, err
	}
	defer func() { err = errors.Join(err, clean(ctx, o, story, state)) }()
	story.write(fmt.Sprintf("A tour in %d steps. update-status is off: only events drive the charms.\n", len(selected)))
	report, err = play(ctx, o, story, selected, state)
	if writing := report.Write(filepath.Join(o.Out, "tour.json")); writing != nil {
		err = errors.Join(err, writing)
	}
	story.write("\n")
	_ = report.Table(o.Story) // as for the story
	return report, err
}

// clean ends the cluster, also when the tour was interrupted.
func clean(ctx context.Context, o Options, story *narrator, state string) error {
	if o.Keep && ctx.Err() == nil {
		story.write(fmt.Sprintf("\nThe cluster stays up: export JUJULET_STATE=%s\n", state))
		return nil
	}
	if ctx.Err() != nil {
		story.write("\ninterrupted: the cluster is being removed\n")
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	return o.Down(ending, state)
}

// play runs the steps on a new cluster. Steps behind one that could not end are reported as failed.
func play(ctx context.Context, o Options, story *narrator, selected []step, state string) (Report, error) {
	report := Report{Passed: true, Steps: []StepReport{}}
	g, begun, err := arrive(ctx, o, story, state)
	if err != nil {
		return Report{Steps: report.Steps}, err
	}
	observing, stop := context.WithCancel(ctx)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer stop()
	followers.Go(func() { g.seen.followJournal(observing) })
	followers.Go(func() { g.seen.followService(observing, g.namespace) })
	followers.Go(func() { g.tellStatuses(observing) })
	for i, s := range selected {
		if err != nil {
			report.Steps = append(report.Steps, newStepReport(s.name, 0, []string{"not run"}))
			continue
		}
		if i > 0 {
			begun = time.Now()
		}
		story.title(i+1, len(selected), s.name, s.what)
		if i == 0 {
			story.restart(begun)
		}
		var out outcome
		out, err = s.run(g, observing)
		report.Steps = append(report.Steps, g.conclude(s, time.Since(begun), out, err))
	}
	report.Passed = len(report.Failed()) == 0
	if errors.Is(err, errStuck) {
		err = nil
	}
	return report, err
}

// arrive starts the cluster.
func arrive(ctx context.Context, o Options, story *narrator, state string) (*guide, time.Time, error) {
	begun := time.Now()
	stage, err := o.Up(ctx, state)
	if err != nil {
		return nil, begun, err
	}
	status, err := stage.Status(ctx)
	if err != nil {
		return nil, begun, err
	}
	g := &guide{options: o, stage: stage, story: story, seen: newObserver(stage), namespace: status.Model.Name, domain: status.Model.Domain}
	return g, begun, nil
}

// conclude tells how a step ended.
func (g *guide) conclude(s step, took time.Duration, out outcome, err error) StepReport {
	if err != nil && !errors.Is(err, errStuck) {
		out.problems = append(out.problems, err.Error())
	}
	r := newStepReport(s.name, took, out.problems)
	r.PublishedAfterAnswerMS, r.Rows, r.DatabagChangedWhilePending = out.delayMS, out.rows, out.moved
	r.DocumentAfterChangeMS = out.followMS
	result := "passed"
	if out.delayMS != nil {
		result += fmt.Sprintf(": told %d ms after the first answer", *out.delayMS)
	}
	if out.followMS != nil {
		result += fmt.Sprintf(": every document followed within %d ms", *out.followMS)
	}
	if !r.Passed {
		result = "FAILED: " + strings.Join(out.problems, "; ")
	}
	g.story.say("%s %s", s.name, result)
	return r
}

// tellStatuses tells each new status that a charm sets.
func (g *guide) tellStatuses(ctx context.Context) {
	told := map[string]string{}
	for next := 0; ; {
		var entries []model.JournalEntry
		if g.seen.await(ctx, func() bool { entries = g.seen.entries[next:]; return len(entries) > 0 }) != nil {
			return
		}
		next += len(entries)
		for _, e := range entries {
			for _, s := range e.Statuses {
				text := s.Status
				if s.Message != "" {
					text += ": " + s.Message
				}
				if told[e.Unit] != text {
					told[e.Unit] = text
					g.story.sayAt(e.Time, "%s %s", e.Unit, text)
				}
			}
		}
	}
}

// checkCharms names a charm that is missing before anything is started.
func checkCharms(folder string) error {
	for _, name := range []string{backendCharm, bridgeCharm, clientCharm} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("cannot find %s in %s (\"make charms\" packs it)", name, folder)
		}
	}
	return nil
}

// lock keeps two tours from sharing one output folder.
func lock(folder string) (func(), error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the output folder: %w", err)
	}
	path := filepath.Join(folder, "tour.lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the output folder: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot make a tour in %s: another one is being made there", folder)
	}
	return func() {
		_ = os.Remove(path)
		file.Close()
	}, nil
}
