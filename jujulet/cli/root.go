// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const rootLong = `jujulet runs Juju sidecar charms on this machine, without a Juju controller and without a Kubernetes
cluster: every unit gets a pod of its own, its hooks run as the Juju unit agent runs them, and a small
embedded Kubernetes gives the Services their addresses.

The verbs are juju's. Start with "jujulet up", or see all of it at work with "jujulet tour".`

const rootExample = `    jujulet up
    jujulet deploy ./my-charm_amd64.charm --resource my-image=host
    jujulet status
    jujulet down`

// Groups of verbs in help.
const (
	groupModel   = "model"
	groupObserve = "observe"
	groupMachine = "machine"
)

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "jujulet",
		Short:         "Run Juju charms on this machine",
		Long:          rootLong,
		Example:       rootExample,
		Version:       a.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.PersistentFlags().StringVar(&a.state, "state", "", "State folder (default $JUJULET_STATE, else ~/.local/share/jujulet)")
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddGroup(
		&cobra.Group{ID: groupMachine, Title: "The cluster on this machine:"},
		&cobra.Group{ID: groupModel, Title: "Changing the model, as with juju:"},
		&cobra.Group{ID: groupObserve, Title: "Looking at it, as with juju:"},
	)
	addAll(root, groupMachine, newUp(a), newDown(a), newTour(a), newCluster(a), newShell(a), newKill(a), newSetLeader(a), newFire(a))
	addAll(root, groupModel, newAddModel(a), newDestroyModel(a), newSwitch(a), newModelConfig(a))
	addAll(root, groupModel, newOffer(a), newRemoveOffer(a), newConsume(a), newRemoveSAAS(a))
	addAll(root, groupModel, newDeploy(a), newConfig(a), newIntegrate(a), newRemoveRelation(a), newScaleApplication(a),
		newRemoveApplication(a), newTrust(a), newRun(a), newExec(a), newResolved(a))
	addAll(root, groupModel, newRefresh(a), newAttachResource(a), newRemoveStorage(a))
	addAll(root, groupObserve, newStorage(a), newShowStorage(a))
	addAll(root, groupModel, newAddUnit(a), newRemoveUnit(a), newCancelTask(a), newSSH(a), newSCP(a),
		newAddSecret(a), newUpdateSecret(a), newGrantSecret(a), newRevokeSecret(a), newRemoveSecret(a))
	addAll(root, groupObserve, newModels(a), newShowModel(a), newWhoami(a), newControllers(a), newOffers(a), newFindOffers(a), newShowOffer(a))
	addAll(root, groupObserve, newStatus(a), newShowUnit(a), newShowTask(a), newDebugLog(a), newWaitFor(a), newVersion(a))
	addAll(root, groupObserve, newOperations(a), newShowOperation(a), newActions(a), newShowAction(a), newSecrets(a), newShowSecret(a), newModelConstraints(a), newShowApplication(a))
	a.inModel(root)
	a.jujuFlags(root)
	addRefused(root)
	refuseUnknownHelp(root)
	return root
}

// refuseUnknownHelp refuses help on a verb that does not exist: without it "jujulet stauts --help" and "jujulet help stauts"
// print the help of the whole and succeed.
func refuseUnknownHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		help.Run = nil
		help.RunE = func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || cmd == root && len(rest) > 0 {
				return unknownCommand(root, strings.Join(args, " "))
			}
			return cmd.Help()
		}
	}
}

// unknownHelp returns the error for --help behind a verb that does not exist.
func unknownHelp(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil || cmd != root {
		return nil
	}
	name, help := "", false
	for i := 0; i < len(rest) && rest[i] != "--"; i++ {
		switch arg := rest[i]; {
		case arg == "--help" || arg == "-h":
			help = true
		case arg == "--state":
			i++ // its value
		case name == "" && !strings.HasPrefix(arg, "-"):
			name = arg
		}
	}
	if !help || name == "" {
		return nil
	}
	return unknownCommand(root, name)
}

// withoutModel are the verbs that are not about one model, or name it themselves. As with juju.
var withoutModel = []string{
	"up", "down", "tour", "version", "models", "add-model", "destroy-model", "show-model", "switch", "whoami", "controllers",
}

// inModel adds the flag that names the model to every verb about one.
func (a *app) inModel(root *cobra.Command) {
	for _, c := range root.Commands() {
		if !slices.Contains(withoutModel, c.Name()) {
			c.PersistentFlags().StringVarP(&a.model, "model", "m", "", "Model to operate in: [<controller>:][<user>/]<model>")
		}
	}
}

func addAll(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		c.DisableFlagsInUseLine = false
		root.AddCommand(c)
	}
}

// unknownCommand is juju's error for a verb that does not exist, with the nearest one as a hint.
func unknownCommand(cmd *cobra.Command, name string) error {
	err := usageErrorf("jujulet: %q is not a jujulet command. See \"jujulet --help\".", name)
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return hintf(err, "did you mean %q?", near[0])
	}
	return err
}

// noArgs refuses arguments as juju does.
func noArgs(_ *cobra.Command, args []string) error { return checkEmpty(args) }

func checkEmpty(args []string) error {
	if len(args) == 0 {
		return nil
	}
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = fmt.Sprintf("%q", arg)
	}
	return usageErrorf("unrecognized args: [%s]", strings.Join(quoted, " "))
}

func asError[T error](err error, target *T) bool { return errors.As(err, target) }
