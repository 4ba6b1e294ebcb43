// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktool

import (
	"fmt"
	"sort"
	"strings"
	"unicode"
)

// document writes a map of strings as a text that is JSON and YAML alike and
// keeps every value as it is, sorted by key. Neither encoder will do: YAML
// readers refuse control characters that JSON leaves raw, and a plain YAML
// scalar such as yes or ~ is read as something else by some versions.
func document(values map[string]string) []byte {
	var b strings.Builder
	b.WriteByte('{')
	for i, key := range sortedKeys(values) {
		if i > 0 {
			b.WriteString(", ")
		}
		quote(&b, key)
		b.WriteString(": ")
		quote(&b, values[key])
	}
	b.WriteString("}\n")
	return []byte(b.String())
}

// quote writes s in double quotes. Invalid UTF-8 becomes U+FFFD.
func quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r <= 0xffff && !unicode.IsPrint(r):
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
