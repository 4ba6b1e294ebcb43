// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package controller

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drawbridge-k8s/drawbridge/jujulet/agent"
)

// agentDial bounds how long an agent looks for its controller.
const agentDial = 10 * time.Second

// AgentMain is a unit's agent in its charm container: the hidden command
// [AgentCommand] with the flags --unit, --socket and --update-status. It
// returns the exit code: 0 when the unit is dead. SIGTERM lets it run the stop
// hook first, as the end of a pod does in Kubernetes.
func AgentMain(args []string) int {
	flags := flag.NewFlagSet(AgentCommand, flag.ContinueOnError)
	_ = flags.String("model", "", "name of the model; in the command line for those who look for the process")
	unit := flags.String("unit", "", "name of the unit")
	socket := flags.String("socket", "", "socket of the controller")
	updateStatus := flags.Duration("update-status", 0, "mean interval of update-status; 0 is off")
	if err := flags.Parse(args[1:]); err != nil {
		return 2
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := runAgentProcess(*unit, *socket, *updateStatus, log); err != nil {
		fmt.Fprintf(os.Stderr, "ERROR %v\n", err)
		return 1
	}
	return 0
}

// runAgentProcess connects to the controller and runs the agent.
func runAgentProcess(unit, socket string, updateStatus time.Duration, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dialing, stop := context.WithTimeout(ctx, agentDial)
	defer stop()
	controller, err := agent.Dial(dialing, socket)
	if err != nil {
		return fmt.Errorf("cannot reach the controller: %w", err)
	}
	a, err := agent.New(agent.Options{Controller: controller, Unit: unit, UpdateStatus: updateStatus, Logger: log})
	if err != nil {
		return fmt.Errorf("cannot start the agent: %w", err)
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, unix.SIGTERM)
	defer signal.Stop(terminated)
	go func() {
		select {
		case <-terminated:
			a.Shutdown()
		case <-ctx.Done():
		}
	}()
	if err := a.Run(ctx); err != nil && !errors.Is(err, agent.ErrDead) {
		return fmt.Errorf("cannot go on: %w", err)
	}
	return nil
}
