// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package carry

import (
	"context"
	"errors"
	"fmt"

	"github.com/drawbridge-k8s/drawbridge/connections"
	"github.com/drawbridge-k8s/drawbridge/hooks/hooktool"
)

// mostAnswer bounds the answer of query-connection, in bytes: it stands in an argument list.
const mostAnswer = 64 << 10

// Query answers the action query-connection from the document that the pass found in the container: its parameters are
// key, a dotted key ("" is the whole document), and json. An error is what a person is told.
func Query(ctx context.Context, tools *hooktool.Client, r Report) (map[string]string, error) {
	params, err := tools.ActionGet(ctx)
	if err != nil {
		return nil, err
	}
	key, _ := params["key"].(string)
	asJSON, _ := params["json"].(bool)
	if r.File == nil {
		return nil, errors.New("there is no document in the workload yet")
	}
	tree, err := connections.Tree(r.File)
	if err != nil {
		return nil, err
	}
	found, err := connections.Get(tree, key)
	if err != nil {
		return nil, err
	}
	value := connections.Raw(found)
	if asJSON || key == "" {
		value = connections.JSON(found)
	}
	if len(value) > mostAnswer {
		return nil, fmt.Errorf("the answer has %d bytes, more than %d: give a key such as connections.hash", len(value), mostAnswer)
	}
	return map[string]string{"value": value}, nil
}
