// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package tour

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Report is the result of a tour; it is written to tour.json.
type Report struct {
	Passed bool         `json:"passed"`
	Steps  []StepReport `json:"steps"`
}

// StepReport is the result of one step. A step that is no switch has no delay, one that reads nothing no rows.
type StepReport struct {
	Name    string  `json:"name"`
	Passed  bool    `json:"passed"`
	Seconds float64 `json:"seconds"`
	// PublishedAfterAnswerMS is the time from the first answer of the new address in the client's network to the commit
	// that told the client, in milliseconds; negative when the client was told too early.
	PublishedAfterAnswerMS *int64 `json:"published_after_answer_ms"`
	// DocumentAfterChangeMS is the time from the change of a connected ConfigMap until the last unit had recorded that its
	// workload has it, in milliseconds.
	DocumentAfterChangeMS *int64 `json:"document_after_change_ms"`
	// Rows is how many rows were read through the published addresses, or how many units' documents.
	Rows                       *int `json:"rows"`
	DatabagChangedWhilePending bool `json:"databag_changed_while_pending"`

	// Problems say why a step failed.
	Problems []string `json:"-"`
}

// newStepReport is a step that took this long; it has passed unless there are problems.
func newStepReport(name string, took time.Duration, problems []string) StepReport {
	return StepReport{
		Name: name, Passed: len(problems) == 0, Seconds: float64(took.Round(10*time.Millisecond)) / float64(time.Second), Problems: problems,
	}
}

// Failed returns the names of the steps that failed.
func (r Report) Failed() []string {
	var names []string
	for _, s := range r.Steps {
		if !s.Passed {
			names = append(names, s.Name)
		}
	}
	return names
}

// Write stores the report as JSON, replacing the file at once.
func (r Report) Write(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write report: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot write report: %w", err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write report: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("cannot write report: %w", err)
	}
	return nil
}

// Table writes the report for people.
func (r Report) Table(w io.Writer) error {
	rows := [][]string{{"Step", "Result", "Seconds", "Told after answer", "Document after change", "Rows", "Databag while pending"}}
	for _, s := range r.Steps {
		row := []string{s.Name, "failed", strconv.FormatFloat(s.Seconds, 'f', 1, 64), "-", "-", "-", "untouched"}
		if s.Passed {
			row[1] = "passed"
		}
		if s.PublishedAfterAnswerMS != nil {
			row[3] = fmt.Sprintf("%d ms", *s.PublishedAfterAnswerMS)
		}
		if s.DocumentAfterChangeMS != nil {
			row[4] = fmt.Sprintf("%d ms", *s.DocumentAfterChangeMS)
		}
		if s.Rows != nil {
			row[5] = strconv.Itoa(*s.Rows)
		}
		if s.DatabagChangedWhilePending {
			row[6] = "changed"
		}
		rows = append(rows, row)
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], len(text))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		for i, text := range row[:len(row)-1] {
			fmt.Fprintf(&out, "%-*s  ", widths[i], text)
		}
		out.WriteString(row[len(row)-1] + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}
