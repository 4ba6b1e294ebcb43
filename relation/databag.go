// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package relation

import (
	"bytes"
	"encoding/json"
	"sort"
	"strings"
)

// Diff returns what relation-set has to be given so that a databag that reads current reads desired for every key that
// desired names. The empty string deletes a key (Juju 3.6: absent and empty are the same thing), so a key that desired
// maps to "" and that current lacks is not in the result. Keys that desired does not name are left alone.
func Diff(current, desired map[string]string) map[string]string {
	changes := map[string]string{}
	for key, want := range desired {
		if current[key] != want {
			changes[key] = want
		}
	}
	return changes
}

// Mirror returns the text of the `data` key for a remote application databag: a JSON object of the databag without its
// own `data`, keys sorted, so that an unchanged databag always gives the same text.
func Mirror(remote map[string]string) string {
	keys := make([]string, 0, len(remote))
	for key := range remote {
		if key != keyData {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	var text strings.Builder
	text.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(quoteJSON(key))
		text.WriteString(": ")
		text.WriteString(quoteJSON(remote[key]))
	}
	text.WriteByte('}')
	return text.String()
}

// jsonList returns a JSON list of strings, spaced as the other charms of this protocol write it.
func jsonList(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = quoteJSON(item)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quoteJSON returns text as a JSON string, leaving <, > and & readable.
func quoteJSON(text string) string {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic("internal error: a string does not encode as JSON")
	}
	return strings.TrimSuffix(buffer.String(), "\n")
}
