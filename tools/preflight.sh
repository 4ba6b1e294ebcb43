#!/bin/sh
# Copyright 2026 The Drawbridge authors.
# SPDX-License-Identifier: GPL-3.0-only
#
# States what this machine lacks to run Drawbridge's tour and tests, the command
# that cures it, and runs that command after a yes. YES=1 or CI=true skips the
# question.
set -eu

say() { printf '%s\n' "$*"; }
die() { printf 'ERROR %s\n' "$*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || die "cannot run here: jujulet makes pods from Linux namespaces, and this is $(uname -s). Use a Debian machine or virtual machine."
root=""
[ "$(id -u)" != 0 ] || root=1
[ -n "$root" ] || [ "${1:-}" != test ] || die "cannot test: the tests need root. Run as root: sudo -E make $*"
command -v go >/dev/null 2>&1 || die "cannot find go. Install Go 1.26.5 or newer: https://go.dev/dl/"
go env GOVERSION | awk '{
	split(substr($1, 3), v, "."); n = v[1] * 1000000 + v[2] * 1000 + v[3]
	if (n < 1026005) { printf "ERROR cannot build with %s: Go 1.26.5 or newer is needed (https://go.dev/dl/)\n", $1 > "/dev/stderr"; exit 1 }
}'
may() { unshare "$@" --mount --net --pid --fork true 2>/dev/null; }
if ! may && ! may --user --map-root-user; then
	forbids() { # setting value cure
		[ "$(cat "/proc/sys/$(echo "$1" | tr . /)" 2>/dev/null)" != "$2" ] ||
			die "cannot make namespaces: $1 is $2. Allow them with: sudo sysctl -w $1=$3, or run as root, with sudo -E"
	}
	forbids user.max_user_namespaces 0 10000
	forbids kernel.unprivileged_userns_clone 0 1
	forbids kernel.apparmor_restrict_unprivileged_userns 1 0
	die "cannot make namespaces: unshare(2) was refused. Run as root: sudo -E make $*. In a container, start it with the right to make namespaces: --privileged, or --security-opt seccomp=unconfined --security-opt systempaths=unconfined."
fi

packages=""
lack() { # command package reason
	if ! command -v "$1" >/dev/null 2>&1 && [ ! -x "/usr/sbin/$1" ]; then
		say "missing: $1 ($3), in package $2"
		packages="$packages $2"
	fi
}
lack haproxy haproxy "the gateway that each unit runs"
lack mariadbd mariadb-server-core "the database of the example backend"
lack mariadb mariadb-client-core "its command line client"
case "${1:-}" in
test)
	lack ss iproute2 "lists listeners in pods"
	lack ps procps "lists processes in pods"
	;;
esac
case "${1:-}" in
test | test-interop)
	lack python3 python3 "a server in pods, and charms and tools in Python"
	# Debian splits off what makes virtual environments.
	if ! /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null; then
		say "missing: python3 -m venv (the tests' Python packages), in package python3-venv"
		packages="$packages python3-venv"
	fi
	;;
esac
[ -n "$packages" ] || exit 0

[ -n "$root" ] || die "cannot install packages: this needs root. Run: sudo apt-get install --no-install-recommends$packages"
say "install with: apt-get install --no-install-recommends$packages"
if [ "${YES:-}" != 1 ] && [ "${CI:-}" != true ]; then
	[ -t 0 ] || die "cannot ask: no terminal. Run the command above, or set YES=1."
	printf 'Run it now? [y/N] '
	read -r answer
	case "$answer" in y | Y | yes) ;; *) die "cannot go on without:$packages" ;; esac
fi
command -v apt-get >/dev/null 2>&1 || die "cannot install: apt-get is not here. Install$packages with this system's own tool."

# Keep the packages' own services from starting: only pods use these programs.
policy=/usr/sbin/policy-rc.d
made_policy=""
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	made_policy=1
fi
trap '[ -z "$made_policy" ] || rm -f "$policy"' EXIT
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086 # a list of package names
apt-get install -q -y --no-install-recommends $packages
case "$packages" in
*" haproxy"*)
	if command -v systemctl >/dev/null 2>&1; then
		systemctl disable haproxy.service >/dev/null 2>&1 || true
	fi
	;;
esac
