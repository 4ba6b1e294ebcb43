// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

package hooktools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drawbridge-k8s/drawbridge/jujulet/model"
)

// resourceGet prints the path of a resource's file, without a newline.
func resourceGet(c *call) error {
	args, err := c.parse()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("missing required resource name")
	}
	if err := noArgs(args[1:]); err != nil {
		return err
	}
	name := args[0]
	declared, ok := c.hook.Info.Declared[name]
	given := c.hook.Info.Resources[name]
	if declared.Type == "oci-image" {
		given, _ = model.SplitImage(given)
	}
	if !ok || given == "" {
		return fmt.Errorf("could not download resource: resource %q not found", name)
	}
	dir := filepath.Join(c.hook.ResourceDir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("could not download resource: %w", err)
	}
	file := filepath.Join(dir, declared.Filename)
	if declared.Type == "oci-image" {
		file = filepath.Join(dir, "content.yaml")
		text := fmt.Sprintf("registrypath: %s\nusername: \"\"\npassword: \"\"\n", given)
		err = os.WriteFile(file, []byte(text), 0o600)
	} else {
		var content []byte
		if content, err = c.hook.Backend.Resource(c.ctx, c.hook.Unit, name); err == nil {
			err = os.WriteFile(file, content, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("could not download resource: %w", err)
	}
	fmt.Fprint(&c.stdout, file)
	return nil
}

// cloudSpec is what credential-get prints on Kubernetes: the pod's own service
// account.
type cloudSpec struct {
	Type       string          `json:"type" yaml:"type"`
	Name       string          `json:"name" yaml:"name"`
	Region     string          `json:"region,omitempty" yaml:"region"`
	Endpoint   string          `json:"endpoint" yaml:"endpoint"`
	Identity   string          `json:"-" yaml:"identityendpoint"`
	Storage    string          `json:"-" yaml:"storageendpoint"`
	Credential cloudCredential `json:"credential" yaml:"credential"`
	CA         []string        `json:"cacertificates,omitempty" yaml:"cacertificates"`
	SkipTLS    bool            `json:"-" yaml:"skiptlsverify"`
	Controller bool            `json:"-" yaml:"iscontrollercloud"`
}

type cloudCredential struct {
	AuthType   string            `json:"auth-type" yaml:"authtype"`
	Attributes map[string]string `json:"attrs" yaml:"attributes"`
	Redacted   []string          `json:"-" yaml:"redacted"`
}

// credentialGet prints the cloud's credential to trusted charms.
func credentialGet(c *call) error {
	out := c.outputFlags("smart", "yaml", "json")
	args, err := c.parse()
	if err != nil {
		return err
	}
	if err := noArgs(args); err != nil {
		return err
	}
	if !c.hook.Info.Trust || c.hook.Token == nil {
		return errors.New("cannot access cloud credentials: getting model credentials: permission denied")
	}
	token, ca, err := c.hook.Token()
	if err != nil {
		return fmt.Errorf("cannot access cloud credentials: %w", err)
	}
	cloud, region, _ := strings.Cut(c.hook.Info.Info.CloudRegion, "/")
	spec := cloudSpec{
		Type: "kubernetes", Name: cloud, Region: region, Endpoint: "https://kubernetes.default.svc",
		Credential: cloudCredential{AuthType: "oauth2", Attributes: map[string]string{"Token": token}},
	}
	if ca != "" {
		spec.CA = []string{ca}
	}
	return c.write(out, spec)
}
