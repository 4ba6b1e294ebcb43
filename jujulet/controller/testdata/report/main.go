// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Command report is the only program of an image of the tests: it says what it sees, and stays if it is asked to.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	dir, err := os.Getwd()
	fmt.Println("folder", dir, err)
	for _, name := range []string{"COLOUR", "PATH", "HOME", "JUJU_CONTAINER_NAME"} {
		fmt.Println(name, os.Getenv(name))
	}
	fmt.Println("user", os.Getuid())
	entries, err := os.ReadDir("/")
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	fmt.Println("root", strings.Join(names, " "), err)
	if slices.Contains(os.Args, "stay") {
		time.Sleep(time.Hour)
	}
}
