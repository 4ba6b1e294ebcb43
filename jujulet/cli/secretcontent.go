// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxSecret is Juju's bound of a secret's content, encoded, in bytes.
const maxSecret = 1000 * 1000

var secretKeyPattern = regexp.MustCompile(`^[a-z](?:-?[a-z0-9]){2,}$`)

// secretContent reads key[#base64|#file]=value arguments and a YAML file of them, whose values win. Values come out
// encoded, keys without their suffix.
func secretContent(args []string, file string) (map[string]string, error) {
	values := map[string]string{}
	for _, arg := range args {
		key, value, found := strings.Cut(arg, "=")
		if !found || key == "" || strings.Trim(value, "=") == "" {
			return nil, fmt.Errorf("key value %q not valid", arg)
		}
		if name, isFile := strings.CutSuffix(key, "#file"); isFile {
			data, err := readSecretFile(value)
			if err != nil {
				return nil, fmt.Errorf("reading content for secret key %q: %w", name, err)
			}
			key, value = name, string(data)
		}
		values[key] = value
	}
	if file != "" {
		data, err := readSecretFile(file)
		if err != nil {
			return nil, err
		}
		more := map[string]string{}
		if err := yaml.Unmarshal(data, &more); err != nil {
			return nil, err
		}
		maps.Copy(values, more)
	}
	return encodeSecret(values)
}

// readSecretFile reads a file that may be the content of a secret.
func readSecretFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxSecret {
		return nil, fmt.Errorf("secret content in file %q too large: %d bytes", path, info.Size())
	}
	return os.ReadFile(path)
}

// encodeSecret encodes the values that are not marked as encoded already, and checks keys and sizes.
func encodeSecret(values map[string]string) (map[string]string, error) {
	out, size := map[string]string{}, 0
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := values[key]
		name, encoded := strings.CutSuffix(key, "#base64")
		if !encoded {
			value = base64.StdEncoding.EncodeToString([]byte(value))
		} else if _, err := base64.StdEncoding.DecodeString(value); err != nil {
			return nil, fmt.Errorf("value of key %q is not base64: %w", name, err)
		}
		if !secretKeyPattern.MatchString(name) {
			return nil, fmt.Errorf("key %q not valid", name)
		}
		out[name] = value
		size += len(value)
	}
	if size > maxSecret {
		return nil, fmt.Errorf("base64 encoded secret content too large: %d bytes", size)
	}
	return out, nil
}
