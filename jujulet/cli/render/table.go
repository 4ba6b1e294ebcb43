// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package render

import (
	"io"
	"strings"
	"unicode/utf8"
)

// columnGap is the number of spaces between two columns.
const columnGap = 2

// colour is an ANSI colour code; none leaves the text as it is.
type colour string

const (
	none   colour = ""
	green  colour = "32"
	yellow colour = "33"
	red    colour = "31"
	bold   colour = "1"
)

// cell is one field of a table with the colour it has on a terminal.
type cell struct {
	text   string
	colour colour
}

func plain(text string) cell { return cell{text: text} }

// table is a section of the status: columns are as wide as their widest cell, the last one is not padded. right names
// the columns that are aligned to the right, header included.
type table struct {
	rows  [][]cell
	right map[int]bool
}

func newTable(header ...string) *table {
	t := &table{right: map[int]bool{}}
	row := make([]cell, len(header))
	for i, text := range header {
		row[i] = cell{text: text, colour: bold}
	}
	t.rows = append(t.rows, row)
	return t
}

func (t *table) add(row ...cell) { t.rows = append(t.rows, row) }

func (t *table) write(w io.Writer, coloured bool) error {
	var out strings.Builder
	widths := t.widths()
	for _, row := range t.rows {
		for i, c := range row {
			last := i == len(row)-1
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
			if t.right[i] {
				out.WriteString(pad)
				pad = ""
			}
			out.WriteString(paint(c, coloured))
			if !last {
				out.WriteString(pad)
				out.WriteString(strings.Repeat(" ", columnGap))
			}
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (t *table) widths() []int {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	return widths
}

func paint(c cell, coloured bool) string {
	if !coloured || c.colour == none || c.text == "" {
		return c.text
	}
	return "\x1b[" + string(c.colour) + "m" + c.text + "\x1b[0m"
}

// statusColour is the colour of a status or an agent's status.
func statusColour(status string) colour {
	switch status {
	case "active", "idle", "started":
		return green
	case "maintenance", "waiting", "executing", "allocating", "rebooting", "pending":
		return yellow
	case "blocked", "error", "failed", "lost", "terminated":
		return red
	default:
		return none
	}
}
