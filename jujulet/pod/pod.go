// Copyright 2026 The Drawbridge authors.
// SPDX-License-Identifier: GPL-3.0-only

// Package pod is the sandbox in which jujulet runs units: what the kubelet and a
// container runtime are to Kubernetes, as far as a sidecar charm can tell.
//
// Three kinds of process, each a re-exec of the running binary:
//
//   - the cluster process ([StartCluster], [ClusterInit]) lives in its own mount, network
//     and pid namespace and is process 1 there, so that its death removes every pod,
//     mount and link. It owns the [Manager];
//   - one pod-init per pod holds the pod's network, host name and IPC namespace, and
//     starts containers when the Manager asks it to;
//   - one container-init per container has a mount and pid namespace of its own. It builds
//     the root filesystem, runs the main command and whatever [Pod.Exec] asks for, and reaps
//     what they leave behind.
//
// The Manager talks to both inits over unnamed socket pairs. No control socket has a name
// that a charm could find.
//
// A container's root is an overlay of the host's folders (or of a root filesystem folder)
// whose upper layer is a tmpfs of the cluster process: nothing that a charm or a workload
// writes reaches the host, and nothing is left when the cluster process has gone.
package pod

import (
	"io"
	"log/slog"
	"net/netip"
)

// CharmContainer is the name of the container in which the charm and its agent run.
const CharmContainer = "charm"

// FirstWorkloadPort is the TCP port on which the Pebble of the first workload container, in
// the order of their names, serves /v1/health. The next one has the next port.
// Juju 3.6: 38812 belongs to the charm container, 38813 and up to the workloads.
const FirstWorkloadPort = 38813

// Names of the hidden commands, which [Main] handles.
const (
	InitCommand          = "__pod-init"
	ContainerInitCommand = "__container-init"
)

// Options say where and how a [Manager] runs pods.
type Options struct {
	// Dir is the folder below which pods keep their state. It must exist. A tmpfs is mounted on
	// it in the mount namespace of this process. Keep it short: sockets live below it, and a
	// socket's path must be shorter than 108 bytes.
	Dir string
	// Hide lists host folders that no pod may see, such as the state folder.
	Hide []string
	// Pebble is the path of the Pebble daemon for workload containers; see [FindPebble].
	Pebble string
	// Attach connects the network namespace of the process pid to the pod network and gives
	// it the pod's address. Nil leaves the pod without a network.
	Attach func(pid int, s Spec) error
	// Detach undoes Attach when the pod has gone. It may be nil.
	Detach func(s Spec)
	// Quota is how many bytes the containers of one pod may write together, Juju's folder among them, and as much again
	// for each container's /tmp and /run; what is more fails with ENOSPC. 0 means DefaultQuota.
	Quota int64
	// Logger receives what goes wrong outside of any call; nil discards it.
	Logger *slog.Logger
}

// DefaultQuota is a pod's quota where none is given: 4 GiB. It is a limit only; memory is taken as files are written.
const DefaultQuota = 4 << 30

// Spec describes one pod.
type Spec struct {
	// Name is the pod's name, for example "mysql-0".
	Name string
	// Namespace is the Kubernetes namespace, which is the model's name.
	Namespace string
	// App and Node are informative.
	App, Node string
	// Hostname is the host name in the pod; empty means Name.
	Hostname string
	// Subdomain is the name of the headless Service the pod belongs to, such as
	// "mysql-endpoints"; it makes up the pod's full name in /etc/hosts. It may be empty.
	Subdomain string
	// IP is the pod's address, which Options.Attach gives to it.
	IP netip.Addr
	// Token and CA are the content of the service account folder. An empty token means that no such
	// folder is mounted.
	Token, CA []byte
	// Env is the environment that all containers get, such as KUBERNETES_SERVICE_HOST.
	Env []string
	// ControlDir is a folder of the cluster process that the charm container, and no other,
	// sees as /run/ctl. Empty means none.
	ControlDir string
	// Resolv is the content of /etc/resolv.conf.
	Resolv Resolv
	// Containers are started in this order by [Manager.Start].
	Containers []Container
}

// Resolv is the resolver configuration of a pod.
type Resolv struct {
	// Nameservers lists the addresses of name servers. None leaves the pod without.
	Nameservers []netip.Addr
	// Search is the list of search domains.
	Search []string
	// Options are resolver options such as "ndots:5".
	Options []string
}

// Container describes one container of a pod.
type Container struct {
	// Name is unique in the pod. [CharmContainer] gets the charm's mounts; any other with Workload set
	// gets those of a workload.
	Name string
	// Workload says that Pebble is the container's main command and that it has /charm/bin and
	// /charm/container. Command may still replace Pebble.
	Workload bool
	// Root is what the container's files are: "" or "host" for the host's own, else a folder that
	// holds a root filesystem, which is not changed.
	Root string
	// ImageEnv is the environment that comes with Root. All other environment wins over it.
	ImageEnv []string
	// Command is the main command. Empty means Pebble in a workload container, and no main command
	// otherwise (the container then lives until it is stopped).
	Command []string
	// Env is added to the pod's and the container's own environment.
	Env []string
	// Dir is the working folder of the main command; empty means "/". It is made if it is not there.
	Dir string
	// Binds are further folders and files to be seen in the container.
	Binds []Bind
	// Stdout and Stderr receive the output of Command; nil discards it.
	Stdout, Stderr io.Writer
}

// Bind makes a folder or file of the cluster process visible in a container.
type Bind struct {
	// Source is a path in the cluster process.
	Source string `json:"source"`
	// Target is the absolute path in the container. It is created.
	Target string `json:"target"`
	// ReadOnly forbids writing to it from within the container.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// Command is a process to be run in a container.
type Command struct {
	// Args is the program, looked up in the PATH of Env, and its arguments.
	Args []string
	// Env is added to the container's environment; a later value wins.
	Env []string
	// Dir is the working folder; empty means "/".
	Dir string
	// Stdin may be nil for an empty input. An *os.File is handed over as it is, anything else is copied.
	Stdin io.Reader
	// Stdout and Stderr may be nil to discard the output. With TTY, Stderr is not used.
	Stdout, Stderr io.Writer
	// Detach starts the process in a session of its own that outlives the call and the caller.
	Detach bool
	// TTY gives the process a terminal of its own.
	TTY bool
	// Size is the terminal's first size; Resize brings later ones. Both are used with TTY only.
	Size   Size
	Resize <-chan Size
}

// Size is the size of a terminal in characters.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}
