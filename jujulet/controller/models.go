// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"github.com/drawbridge-k8s/drawbridge/jujulet/control"
)

// currentModel is the name of the model that is meant when none is named: the
// one that was switched to, else the only one.
func (c *Controller) currentModel() (string, error) {
	chosen, err := c.keys.read(currentKey)
	if err != nil {
		return "", err
	}
	all := c.allWorkers()
	for _, w := range all {
		if w.info.Name == string(chosen) || len(all) == 1 {
			return w.info.Name, nil
		}
	}
	return "", &control.Error{Kind: control.KindNotFound, Message: `No selected model.

To switch to one of these models, use "jujulet switch <model>"; to add a model, use "jujulet add-model <model>".`}
}
