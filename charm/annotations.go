// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package charm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxAnnotations is Kubernetes' own bound on all annotations of an object together.
const maxAnnotations = 256 << 10

// ourDomain is the domain of our own labels and annotations.
const ourDomain = "drawbridge-k8s.charm/"

func (r *configReader) annotations() map[string]string {
	value := r.text(optAnnotations, "{}")
	annotations, err := parseAnnotations(value)
	if err != nil {
		r.fail(optAnnotations, value, `a JSON object of strings such as {"example.com/a": "b"}`)
		r.errs[len(r.errs)-1].Why = err.Error()
		return nil
	}
	return annotations
}

// parseAnnotations reads a JSON object of strings; empty text is an empty object. encoding/json would take null for an
// object and the last of two equal keys, so the tokens are read one by one.
func parseAnnotations(text string) (map[string]string, error) {
	if strings.TrimSpace(text) == "" {
		return map[string]string{}, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	first, err := decoder.Token()
	if err != nil {
		return nil, errors.New("it is not JSON")
	}
	if first != json.Delim('{') {
		return nil, errors.New("it is not an object")
	}
	annotations := map[string]string{}
	for decoder.More() {
		key, value, err := nextAnnotation(decoder)
		if err != nil {
			return nil, err
		}
		if _, twice := annotations[key]; twice {
			return nil, fmt.Errorf("key %q stands there twice", clipText(key, 60))
		}
		annotations[key] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("it is not JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return annotations, checkAnnotations(annotations)
}

// nextAnnotation reads one key and its value.
func nextAnnotation(decoder *json.Decoder) (key, value string, err error) {
	token, err := decoder.Token()
	if err != nil {
		return "", "", errors.New("it is not JSON")
	}
	key = token.(string) // the decoder gives nothing else for a key
	token, err = decoder.Token()
	if err != nil {
		return "", "", errors.New("it is not JSON")
	}
	value, ok := token.(string)
	if !ok {
		return "", "", fmt.Errorf("the value of key %q is not a string", clipText(key, 60))
	}
	return key, value, nil
}

// checkAnnotations applies Kubernetes' own rules, and keeps our own keys ours.
func checkAnnotations(annotations map[string]string) error {
	total := 0
	for key, value := range annotations {
		total += len(key) + len(value)
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			return fmt.Errorf("key %q is not an annotation's name", clipText(key, 60))
		}
		if strings.HasPrefix(key, ourDomain) {
			return fmt.Errorf("key %q belongs to the charm", clipText(key, 60))
		}
	}
	if total > maxAnnotations {
		return fmt.Errorf("it is larger than %d KiB", maxAnnotations>>10)
	}
	return nil
}

// clipText shortens text for a message.
func clipText(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
