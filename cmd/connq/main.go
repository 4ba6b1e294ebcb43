// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Command connq asks the document of connections, in the workload container. The charm brings it there.
//
// Exit codes: 0, 1 when there is no such thing, 2 when the document cannot be read or the command line is wrong.
package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/connections"
)

const usage = `usage: connq [--file PATH] [--json] COMMAND

  get [KEY]                   what a dotted key names; a map shows its keys
  get --pointer POINTER       the same by a JSON pointer, such as /connections/hash
  configmap NAME [KEY]        the keys of a ConfigMap, or the content of one, byte for byte
  cluster [NAME [SERVICE]]    the connected applications, the services of one, the endpoints of a service
  list                        kind, type, name, state and digest of each connection
  hash                        the hash of all connections
`

// The exit codes.
const (
	exitAbsent = 1
	exitBroken = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// query is one call.
type query struct {
	file    string
	json    bool
	pointer bool
	words   []string
	tree    any
}

func run(args []string, stdout, stderr io.Writer) int {
	q := query{file: connections.Path}
	if err := q.parse(args); err != nil {
		fmt.Fprintf(stderr, "connq: %v\n%s", err, usage)
		return exitBroken
	}
	text, err := os.ReadFile(q.file)
	if err == nil {
		q.tree, err = connections.Tree(text)
	}
	if err != nil {
		fmt.Fprintf(stderr, "connq: %v\n", err)
		return exitBroken
	}
	out, err := q.answer()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "connq: %v\n%s", err, usage)
		return exitBroken
	case err != nil:
		fmt.Fprintf(stderr, "connq: %v\n", err)
		return exitAbsent
	}
	if _, err := io.WriteString(stdout, out); err != nil {
		return exitBroken
	}
	return 0
}

var errUsage = errors.New("wrong command line")

// parse reads the command line.
func (q *query) parse(args []string) error {
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch word {
		case "--json":
			q.json = true
		case "--pointer":
			q.pointer = true
		case "--file":
			if len(args) == 0 {
				return fmt.Errorf("%w: --file needs a path", errUsage)
			}
			q.file, args = args[0], args[1:]
		case "--":
			q.words, args = append(q.words, args...), nil
		default:
			if strings.HasPrefix(word, "--") {
				return fmt.Errorf("%w: unknown option %q", errUsage, word)
			}
			q.words = append(q.words, word)
		}
	}
	if len(q.words) == 0 {
		return fmt.Errorf("%w: no command", errUsage)
	}
	return nil
}

// answer runs the command.
func (q *query) answer() (string, error) {
	command, words := q.words[0], q.words[1:]
	most := map[string]int{"get": 1, "configmap": 2, "cluster": 2, "list": 0, "hash": 0}
	if n, known := most[command]; !known || len(words) > n {
		return "", errUsage
	}
	switch command {
	case "configmap":
		return q.configMap(words)
	case "cluster":
		return q.cluster(words)
	case "list":
		return q.list()
	case "hash":
		return q.show(connections.Get(q.tree, "connections.hash"))
	}
	key := strings.Join(words, "")
	if q.pointer {
		return q.show(connections.Pointer(q.tree, key))
	}
	return q.show(connections.Get(q.tree, key))
}

// show writes what was found.
func (q *query) show(found any, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text := connections.Raw(found)
	if q.json {
		text = connections.JSON(found)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, nil
}

// object finds a map of the document by its way.
func (q *query) object(way ...string) map[string]any {
	node := q.tree
	for _, part := range way {
		m, _ := node.(map[string]any)
		node = m[part]
	}
	m, _ := node.(map[string]any)
	return m
}

// configMap shows the keys of a ConfigMap, whatever its type, or the content of one key.
func (q *query) configMap(words []string) (string, error) {
	if len(words) == 0 {
		return "", errUsage
	}
	for typ := range q.object("connections", "configmaps") {
		way := []string{"connections", "configmaps", typ, words[0]}
		if q.object(way...) == nil {
			continue
		}
		if len(words) == 1 {
			keys := map[string]any{}
			for _, part := range []string{"data", "binaryData"} {
				for key, value := range q.object(append(way, part)...) {
					keys[key] = value
				}
			}
			return q.show(keys, nil)
		}
		return q.content(way, words[1])
	}
	return "", fmt.Errorf("no connected configmap %s", words[0])
}

// content is one key of a ConfigMap, byte for byte.
func (q *query) content(way []string, key string) (string, error) {
	if text, found := q.object(append(way, "data")...)[key].(string); found {
		if q.json {
			return q.show(text, nil)
		}
		return text, nil
	}
	if text, found := q.object(append(way, "binaryData")...)[key].(string); found {
		if q.json {
			return q.show(text, nil)
		}
		content, err := base64.StdEncoding.DecodeString(text)
		return string(content), err
	}
	return "", fmt.Errorf("configmap %s has no key %s", way[len(way)-1], key)
}

// cluster shows connected applications, one's services, or the endpoints of a service.
func (q *query) cluster(words []string) (string, error) {
	clusters := q.object("connections", "clusters")
	if len(words) == 0 {
		return q.show(clusters, nil)
	}
	if _, there := clusters[words[0]]; !there {
		return "", fmt.Errorf("no connected application %s", words[0])
	}
	services := q.object("connections", "clusters", words[0], "services")
	if len(words) == 1 {
		return q.show(services, nil)
	}
	service, there := services[words[1]].(map[string]any)
	if !there {
		return "", fmt.Errorf("application %s has no service %s", words[0], words[1])
	}
	return q.show(service["endpoints"], nil)
}

// list shows every connection, those that are a problem as well.
func (q *query) list() (string, error) {
	text, err := os.ReadFile(q.file)
	if err != nil {
		return "", err
	}
	d, err := connections.ParseDocument(text)
	if err != nil {
		return "", err
	}
	problems := map[string]connections.State{}
	items := d.Connections.Items()
	for _, p := range d.Connections.Problems {
		problems[string(p.Kind)+"/"+p.Name] = p.State
	}
	var out strings.Builder
	line := func(i connections.Item) {
		fmt.Fprintf(&out, "%s\t%s\t%s\t%s\t%s\n", i.Kind, dash(i.Type), i.Name, i.State, dash(connections.Short(i.Digest)))
	}
	for _, i := range items {
		if state, bad := problems[i.Key()]; bad {
			i.State = state
			delete(problems, i.Key())
		}
		line(i)
	}
	for _, p := range d.Connections.Problems {
		if _, left := problems[string(p.Kind)+"/"+p.Name]; left {
			line(connections.Item{Kind: p.Kind, Name: p.Name, State: p.State})
		}
	}
	return out.String(), nil
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
