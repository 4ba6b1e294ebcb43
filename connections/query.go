// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package connections

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrNoKey is the error of a query for something that the document does not have.
var ErrNoKey = errors.New("no such key")

// Tree reads a document, or any JSON, as it is: with keys that this version does not know.
func Tree(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("cannot read the document: %w", err)
	}
	return tree, nil
}

// Get finds what a dotted key names; "" is all. A part may be the place in a list. Keys that have dots themselves are found
// as well: what fits is tried from the shortest on.
func Get(tree any, key string) (any, error) {
	if key == "" {
		return tree, nil
	}
	if found, ok := descend(tree, strings.Split(key, ".")); ok {
		return found, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrNoKey, key)
}

func descend(tree any, parts []string) (any, bool) {
	if len(parts) == 0 {
		return tree, true
	}
	switch node := tree.(type) {
	case map[string]any:
		for n := 1; n <= len(parts); n++ {
			child, there := node[strings.Join(parts[:n], ".")]
			if !there {
				continue
			}
			if found, ok := descend(child, parts[n:]); ok {
				return found, true
			}
		}
	case []any:
		if i, err := strconv.Atoi(parts[0]); err == nil && i >= 0 && i < len(node) {
			return descend(node[i], parts[1:])
		}
	}
	return nil, false
}

// Pointer finds what a JSON pointer (RFC 6901) names.
func Pointer(tree any, pointer string) (any, error) {
	if pointer == "" {
		return tree, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("%w: a pointer begins with /", ErrNoKey)
	}
	for part := range strings.SplitSeq(pointer[1:], "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		var ok bool
		switch node := tree.(type) {
		case map[string]any:
			tree, ok = node[part]
		case []any:
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(node) {
				tree, ok = node[i], true
			}
		}
		if !ok {
			return nil, fmt.Errorf("%w: %s", ErrNoKey, pointer)
		}
	}
	return tree, nil
}

// Raw shows what was found as text: a map as its keys, sorted, one in a line; a list as its values, one in a line; a text as
// it is.
func Raw(found any) string {
	switch v := found.(type) {
	case map[string]any:
		return strings.Join(slices.Sorted(maps.Keys(v)), "\n")
	case []any:
		lines := make([]string, len(v))
		for i, value := range v {
			lines[i] = scalar(value)
		}
		return strings.Join(lines, "\n")
	}
	return scalar(found)
}

func scalar(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return JSON(value)
}

// JSON shows what was found as JSON, in one line.
func JSON(found any) string { return string(canonical(found)) }
