// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Command packcharm builds a charm written in Go and packs it as Juju accepts
// it: one static binary named dispatch, the charm's YAML files, and a
// manifest.yaml made from the platforms of charmcraft.yaml. With -program it
// also packs a program beside dispatch that the charm carries into a workload.
// The archive is reproducible: the same sources and the same Go give the same
// bytes.
//
//	go run ./tools/packcharm [-arch amd64] [-out DIR] [-version V] [-program PACKAGE] CHARM_FOLDER MAIN_PACKAGE
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// copied are the files of a charm folder that belong in its archive, when they
// are there.
var copied = []string{"metadata.yaml", "config.yaml", "actions.yaml", "LICENSE"}

// epoch is the modification time of every file in the archive: the first
// moment that a zip file can express.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ERROR", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("packcharm", flag.ContinueOnError)
	arch := flags.String("arch", "amd64", "architecture: amd64 or arm64")
	out := flags.String("out", ".", "folder that receives the archive")
	version := flags.String("version", "", "version, shown by `dispatch version` and written to the archive")
	program := flags.String("program", "", "package of a program to pack beside dispatch, under the last part of its name")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return errors.New("usage: packcharm [-arch ARCH] [-out DIR] [-version V] [-program PACKAGE] CHARM_FOLDER MAIN_PACKAGE")
	}
	path, err := pack(ctx, options{
		folder: flags.Arg(0), mainPackage: flags.Arg(1), arch: *arch, out: *out, version: *version,
		program: *program,
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, path)
	return nil
}

type options struct {
	folder, mainPackage, arch, out, version string
	// program is the package of a second binary; "" for none.
	program string
}

// pack builds the binary and writes the archive <name>_<arch>.charm. It gives
// back the archive's path.
func pack(ctx context.Context, o options) (string, error) {
	var metadata struct {
		Name string `yaml:"name"`
	}
	if err := readYAML(filepath.Join(o.folder, "metadata.yaml"), &metadata); err != nil {
		return "", err
	}
	manifest, err := manifest(filepath.Join(o.folder, "charmcraft.yaml"), o.arch)
	if err != nil {
		return "", err
	}
	files := map[string]file{"manifest.yaml": {data: manifest, mode: 0o644}}
	for _, name := range copied {
		data, err := os.ReadFile(filepath.Join(o.folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("cannot read %s: %w", name, err)
		}
		files[name] = file{data: data, mode: 0o644}
	}
	if o.version != "" {
		files["version"] = file{data: []byte(o.version + "\n"), mode: 0o644}
	}
	binary, err := build(ctx, o, o.mainPackage)
	if err != nil {
		return "", err
	}
	files["dispatch"] = file{data: binary, mode: 0o755}
	if o.program != "" {
		if binary, err = build(ctx, o, o.program); err != nil {
			return "", err
		}
		files[filepath.Base(o.program)] = file{data: binary, mode: 0o755}
	}
	path := filepath.Join(o.out, metadata.Name+"_"+o.arch+".charm")
	return path, writeArchive(path, files)
}

// build compiles a package, static and without symbols.
func build(ctx context.Context, o options, mainPackage string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "packcharm-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a build folder: %w", err)
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "dispatch")
	ldflags := "-s -w -buildid="
	if o.version != "" {
		ldflags += " -X main.version=" + o.version
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", binary, mainPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+o.arch)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cannot build %s: %w", mainPackage, err)
	}
	return os.ReadFile(binary)
}

// manifest makes manifest.yaml (Juju: charm/v12 Manifest) for one architecture
// from the platforms of charmcraft.yaml, whose keys are BASE@CHANNEL:ARCH.
func manifest(charmcraft, arch string) ([]byte, error) {
	var project struct {
		Platforms map[string]any `yaml:"platforms"`
	}
	if err := readYAML(charmcraft, &project); err != nil {
		return nil, err
	}
	type base struct {
		Name          string   `yaml:"name"`
		Channel       string   `yaml:"channel"`
		Architectures []string `yaml:"architectures"`
	}
	var bases []base
	for platform := range project.Platforms {
		series, platformArch, found := strings.Cut(platform, ":")
		name, channel, ok := strings.Cut(series, "@")
		if !found || !ok {
			return nil, fmt.Errorf("cannot read platform %q in %s: expected BASE@CHANNEL:ARCH", platform, charmcraft)
		}
		if platformArch == arch {
			bases = append(bases, base{name, channel, []string{arch}})
		}
	}
	if len(bases) == 0 {
		return nil, fmt.Errorf("cannot pack for %q: %s has no such platform", arch, charmcraft)
	}
	sort.Slice(bases, func(i, j int) bool { return bases[i].Channel < bases[j].Channel })
	return yaml.Marshal(map[string]any{"bases": bases})
}

type file struct {
	data []byte
	mode fs.FileMode
}

// writeArchive writes the files in name order with a fixed time, to a
// temporary name first, so that a half-written archive is never found.
func writeArchive(path string, files map[string]file) error {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	for _, name := range names {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: epoch}
		header.SetMode(files[name].mode)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return fmt.Errorf("cannot pack %s: %w", name, err)
		}
		if _, err := w.Write(files[name].data); err != nil {
			return fmt.Errorf("cannot pack %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("cannot finish archive: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot make folder: %w", err)
	}
	temporary := path + ".partial"
	if err := os.WriteFile(temporary, buffer.Bytes(), 0o644); err != nil {
		return fmt.Errorf("cannot write archive: %w", err)
	}
	return os.Rename(temporary, path)
}

func readYAML(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", filepath.Base(path), err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	return nil
}
