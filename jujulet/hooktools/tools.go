// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"fmt"
	"strconv"
)

// tool is one hook tool.
type tool struct {
	usage   string
	summary string
	run     func(*call) error
}

// tools is the table of all tools by name.
func tools() map[string]tool {
	t := map[string]tool{
		"relation-get":            {"[options] <key> <unit id>", "Get relation settings.", relationGet},
		"relation-set":            {"[options] key=value [key=value ...]", "Set relation settings.", relationSet},
		"relation-ids":            {"[options] <name>", "List all relation IDs for the given endpoint.", relationIDs},
		"relation-list":           {"[options]", "List relation units.", relationList},
		"relation-model-get":      {"[options]", "Get details about the model hosting a related application.", relationModelGet},
		"config-get":              {"[options] [<key>]", "Print application configuration.", configGet},
		"is-leader":               {"[options]", "Print application leadership status.", isLeader},
		"goal-state":              {"[options]", "Print the status of the charm's peers and related units.", goalState},
		"status-set":              {"[options] <maintenance | blocked | waiting | active> [message]", "Set status information.", statusSet},
		"status-get":              {"[options]", "Print status information.", statusGet},
		"application-version-set": {"<new-version>", "Specify which version of the application is deployed.", applicationVersionSet},
		"state-get":               {"[options] [<key>]", "Print server-side-state value.", stateGet},
		"state-set":               {"[options] key=value [key=value ...]", "Set server-side-state values.", stateSet},
		"state-delete":            {"<key>", "Delete server-side-state key value pairs.", stateDelete},
		"secret-add":              {"[options] [key[#base64|#file]=value...]", "Add a new secret.", secretAdd},
		"secret-set":              {"[options] <ID> [key[#base64]=value...]", "Update an existing secret.", secretSet},
		"secret-get":              {"[options] <ID> [key[#base64]]", "Get the content of a secret.", secretGet},
		"secret-info-get":         {"[options] <ID>", "Get a secret's metadata info.", secretInfoGet},
		"secret-ids":              {"[options]", "Print secret IDs.", secretIDs},
		"secret-grant":            {"[options] <ID>", "Grant access to a secret.", secretGrant},
		"secret-revoke":           {"[options] <ID>", "Revoke access to a secret.", secretRevoke},
		"secret-remove":           {"[options] <ID>", "Remove an existing secret.", secretRemove},
		"juju-log":                {"[options] <message>", "Write a message to the juju log.", jujuLog},
		"action-get":              {"[options] [<key>[.<key>.<key>...]]", "Get action parameters.", actionGet},
		"action-set":              {"<key>=<value> [<key>=<value> ...]", "Set action results.", actionSet},
		"action-fail":             {"[\"<failure message>\"]", "Set action fail status with message.", actionFail},
		"action-log":              {"<message>", "Record a progress message for the current action.", actionLog},
		"network-get":             {"[options] <binding-name>", "Get network config.", networkGet},
		"unit-get":                {"[options] <setting>", "Print public-address or private-address.", unitGet},
		"open-port":               {"[options] <port>[/<protocol>]", "Register a request to open a port or port range.", openPort},
		"close-port":              {"[options] <port>[/<protocol>]", "Register a request to close a port or port range.", closePort},
		"opened-ports":            {"[options]", "List all ports or port ranges opened by the unit.", openedPorts},
		"leader-get":              {"[options] [<key>]", "Print application leadership settings.", leaderGet},
		"leader-set":              {"<key>=<value> [...]", "Write application leadership settings.", leaderSet},
		"resource-get":            {"[options] <resource name>", "Get the path to the locally cached resource file.", resourceGet},
		"credential-get":          {"[options]", "Access cloud credentials.", credentialGet},
		"juju-reboot":             {"[options]", "Reboot the host machine.", jujuReboot},
		"storage-list":            {"[options] [<storage-name>]", "List storage attached to the unit.", storageList},
		"storage-get":             {"[options] [<key>]", "Print information for the storage instance with the specified ID.", storageGet},
		"storage-add":             {"<charm storage name>[=count] ...", "Add storage instances.", storageAdd},
	}
	for _, name := range Names() {
		if _, ok := t[name]; !ok {
			t[name] = tool{"", "Not supported for sidecar charms.", notSupported}
		}
	}
	return t
}

// notSupported stands for tools that sidecar charms cannot use.
func notSupported(*call) error {
	return fmt.Errorf("not supported for sidecar charms")
}

func atoi(s string) (int, error) { return strconv.Atoi(s) }
