// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"text/scanner"
	"unicode"
)

// query is a parsed condition of wait-for, such as
//
//	status=="active" && (leader || agent-status!="error")
//
// It knows == != < <= > >=, && || !, parentheses, text in " or ', whole numbers, true and false, and the names of what it is asked about.
type query interface {
	eval(fields map[string]any) (any, error)
}

type (
	literal  struct{ value any }
	field    struct{ name string }
	negation struct{ of query }
	binary   struct {
		op          string
		left, right query
	}
)

func (l literal) eval(map[string]any) (any, error) { return l.value, nil }

func (f field) eval(fields map[string]any) (any, error) {
	value, ok := fields[f.name]
	if !ok {
		return nil, fmt.Errorf("cannot evaluate query: unknown name %q", f.name)
	}
	return value, nil
}

func (n negation) eval(fields map[string]any) (any, error) {
	value, err := truth(n.of, fields)
	return !value, err
}

func (b binary) eval(fields map[string]any) (any, error) {
	if b.op == "&&" || b.op == "||" {
		left, err := truth(b.left, fields)
		if err != nil || left == (b.op == "||") {
			return left, err
		}
		return truth(b.right, fields)
	}
	left, err := b.left.eval(fields)
	if err != nil {
		return nil, err
	}
	right, err := b.right.eval(fields)
	if err != nil {
		return nil, err
	}
	return compare(b.op, left, right)
}

func compare(op string, left, right any) (bool, error) {
	switch op {
	case "==":
		return left == right, nil
	case "!=":
		return left != right, nil
	}
	a, ok := left.(int)
	b, also := right.(int)
	if !ok || !also {
		return false, fmt.Errorf("cannot evaluate query: %s compares numbers only", op)
	}
	switch op {
	case "<":
		return a < b, nil
	case "<=":
		return a <= b, nil
	case ">":
		return a > b, nil
	case ">=":
		return a >= b, nil
	}
	return false, fmt.Errorf("internal error: operator %q", op)
}

// truth evaluates a condition to yes or no.
func truth(q query, fields map[string]any) (bool, error) {
	value, err := q.eval(fields)
	if err != nil {
		return false, err
	}
	yes, ok := value.(bool)
	if !ok {
		return false, fmt.Errorf("cannot evaluate query: %v is neither true nor false", value)
	}
	return yes, nil
}

// parseQuery reads a condition and checks the names in it.
func parseQuery(text string, names map[string]bool) (query, error) {
	p := &parser{names: names}
	if err := p.scan(text); err != nil {
		return nil, fmt.Errorf("cannot parse query %q: %w", text, err)
	}
	q, err := p.alternative(0)
	if err == nil && p.at < len(p.tokens) {
		err = fmt.Errorf("unexpected %q", p.tokens[p.at])
	}
	if err != nil {
		return nil, fmt.Errorf("cannot parse query %q: %w", text, err)
	}
	return q, nil
}

type parser struct {
	tokens []string
	at     int
	names  map[string]bool
}

// scan cuts the text into tokens; a text literal keeps its quotes, as ".
func (p *parser) scan(text string) error {
	var s scanner.Scanner
	s.Init(strings.NewReader(text))
	s.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanStrings
	s.IsIdentRune = func(r rune, i int) bool {
		return unicode.IsLetter(r) || (i > 0 && (unicode.IsDigit(r) || r == '-' || r == '_'))
	}
	var failure error
	s.Error = func(_ *scanner.Scanner, message string) { failure = fmt.Errorf("%s", message) }
	for token := s.Scan(); token != scanner.EOF && failure == nil; token = s.Scan() {
		word := s.TokenText()
		switch {
		case token == '\'':
			var b strings.Builder
			for r := s.Next(); r != '\''; r = s.Next() {
				if r == scanner.EOF {
					return fmt.Errorf("text is not terminated")
				}
				b.WriteRune(r)
			}
			word = strconv.Quote(b.String())
		case strings.Contains("=!<>&|", word) && s.Peek() != scanner.EOF && strings.Contains("== != <= >= && ||", word+string(s.Peek())):
			word += string(s.Next())
		}
		p.tokens = append(p.tokens, word)
	}
	return failure
}

// levels are the operators from the loosest to the tightest.
var levels = [][]string{{"||"}, {"&&"}, {"==", "!=", "<", "<=", ">", ">="}}

func (p *parser) alternative(level int) (query, error) {
	if level == len(levels) {
		return p.operand()
	}
	left, err := p.alternative(level + 1)
	for err == nil {
		op := p.take(levels[level]...)
		if op == "" {
			return left, nil
		}
		var right query
		right, err = p.alternative(level + 1)
		left = binary{op, left, right}
	}
	return nil, err
}

// take consumes the next token if it is one of these.
func (p *parser) take(tokens ...string) string {
	if p.at >= len(p.tokens) {
		return ""
	}
	for _, token := range tokens {
		if p.tokens[p.at] == token {
			p.at++
			return token
		}
	}
	return ""
}

func (p *parser) operand() (query, error) {
	if p.take("!") != "" {
		of, err := p.operand()
		return negation{of}, err
	}
	if p.take("(") != "" {
		inner, err := p.alternative(0)
		if err == nil && p.take(")") == "" {
			err = fmt.Errorf("missing )")
		}
		return inner, err
	}
	if p.at >= len(p.tokens) {
		return nil, fmt.Errorf("unexpected end")
	}
	token := p.tokens[p.at]
	p.at++
	if token == "true" || token == "false" {
		return literal{token == "true"}, nil
	}
	if n, err := strconv.Atoi(token); err == nil {
		return literal{n}, nil
	}
	if text, err := strconv.Unquote(token); err == nil {
		return literal{text}, nil
	}
	if p.names[token] {
		return field{token}, nil
	}
	if unicode.IsLetter(rune(token[0])) {
		return nil, fmt.Errorf("unknown name %q", token)
	}
	return nil, fmt.Errorf("unexpected %q", token)
}
