#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Process 1 of a lab host that boots systemd: turns the namespaces it was started in (pid,
# mount, uts, ipc, net, cgroup) into a machine of its own and becomes systemd.
#
# Environment: HOST_NAME, HOST_LAYERS (file layers, topmost first, separated by ":"),
# HOST_MOUNT (an empty directory), HOST_DISK (file for its disk), HOST_DISK_SIZE, HOST_LOG
# (takes what is written to its console), HOST_NET (lines for ip -batch), HOST_ADDRESS,
# HOST_CGROUPS (lines: type, options, directory), HOST_VISIBLE (a directory to show
# read-only), HOST_SCRIPTS (where this file is).
# Talks to its starter: prints "PID n", waits for a line (the cables are plugged in),
# prints "READY" when systemd has started everything.
set -eu
umask 022
# /proc is still the lab's here, so this is our number as the lab sees it.
read -r pid _ </proc/self/stat
echo "PID $pid"
read -r _

printf '%s' "$HOST_NET" | ip -batch -
hostname "$HOST_NAME"
# In a chroot / is no mount point; then the lab's own namespace is private already.
mount --make-rprivate / 2>/dev/null || :
HOST_ROOT=$HOST_MOUNT/root

# refuse WHAT: one sentence about what the machine does not let a host do.
refuse() {
  echo "Hosts with systemd cannot run here: $1." >&2
  exit 1
}

# shellcheck source=lab/cloud/systemd/boot/files.sh
. "$HOST_SCRIPTS/files.sh"
# shellcheck source=lab/cloud/systemd/boot/devices.sh
. "$HOST_SCRIPTS/devices.sh"
# shellcheck source=lab/cloud/systemd/boot/kernel.sh
. "$HOST_SCRIPTS/kernel.sh"

make_disk
make_root
make_identity
make_devices
make_kernel_files
mount_cgroups

cd "$HOST_ROOT"
mkdir .machine
pivot_root . .machine || refuse "the machine is a chroot, run the lab outside of it"
umount -l /.machine
rmdir /.machine
# Kubernetes' mounts in containers have to be seen by the host and the other way round.
mount --make-rshared /

# systemd closes what it inherits: a child of it reports when it is ready.
(
  state=
  until [ "$state" = running ] || [ "$state" = degraded ]; do
    sleep 0.1
    state=$(systemctl is-system-running --wait 2>/dev/null) || :
  done
  echo READY
) &
exec env -i container=lab PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd </dev/null >/dev/console 2>&1
