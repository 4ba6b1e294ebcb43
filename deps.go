//go:build deps

package drawbridge

import (
	_ "github.com/canonical/pebble/client"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/google/uuid"
	_ "github.com/miekg/dns"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/rs/xid"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/require"
	_ "github.com/vishvananda/netlink"
	_ "go.etcd.io/bbolt"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "gopkg.in/yaml.v3"
	_ "k8s.io/api/apps/v1"
	_ "k8s.io/api/authorization/v1"
	_ "k8s.io/api/core/v1"
	_ "k8s.io/api/discovery/v1"
	_ "k8s.io/apimachinery/pkg/util/managedfields"
	_ "k8s.io/client-go/applyconfigurations"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/rest"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/yaml"
	_ "sigs.k8s.io/structured-merge-diff/v6/typed"
	_ "k8s.io/kube-openapi/pkg/util/proto"
	_ "github.com/evanphx/json-patch/v5"
	_ "gopkg.in/evanphx/json-patch.v4"
)
