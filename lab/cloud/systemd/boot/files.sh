#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The disk and the file system of a host that boots systemd; see init.sh.

# A file system of its own: containerd puts overlays on it, which an overlay cannot carry,
# and a host can fill it without filling the machine's. Its file is gone from the first
# moment, so the kernel frees it when the host has ended, whatever ended it. Nothing has to
# survive a crash of the machine: no journal, no flushes.
make_disk() {
  rm -f "$HOST_DISK"
  truncate -s "$HOST_DISK_SIZE" "$HOST_DISK"
  mkfs.ext4 -q -O ^has_journal -E lazy_itable_init=1,nodiscard -m 0 "$HOST_DISK"
  mount -t ext4 -o loop,nobarrier,noatime "$HOST_DISK" "$HOST_MOUNT" ||
    refuse "the kernel refuses a loop device with ext4 as the host's disk"
  rm "$HOST_DISK"
}

make_root() {
  mkdir "$HOST_ROOT" "$HOST_MOUNT/changes" "$HOST_MOUNT/changes.work"
  mount -t overlay lab -o \
    "lowerdir=$HOST_LAYERS,upperdir=$HOST_MOUNT/changes,workdir=$HOST_MOUNT/changes.work" \
    "$HOST_ROOT" || refuse "the kernel refuses an overlay over $HOST_LAYERS"
  # What Kubernetes puts there may not lie on an overlay, or is measured as a disk. The
  # whole of it: kubespray removes directories such as /var/lib/kubelet, which it could
  # not if they were mount points.
  mkdir "$HOST_MOUNT/var"
  cp -a "$HOST_ROOT/var/." "$HOST_MOUNT/var"
  mount --bind "$HOST_MOUNT/var" "$HOST_ROOT/var"
  # /tmp stays on the disk: kubespray's downloads would be the host's memory.
  mount -t tmpfs -o mode=0755,size=512m run "$HOST_ROOT/run"
  mkdir "$HOST_ROOT/run/lock"
  # For root to see what this host has written itself, and nothing else.
  mkdir -m 0700 "$HOST_ROOT/run/lab"
  mkdir "$HOST_ROOT/run/lab/disk"
  mount --bind "$HOST_MOUNT" "$HOST_ROOT/run/lab/disk"
  mkdir -p "$HOST_ROOT$HOST_VISIBLE"
  mount --bind "$HOST_VISIBLE" "$HOST_ROOT$HOST_VISIBLE"
  mount -o remount,bind,ro "$HOST_ROOT$HOST_VISIBLE"
}

make_identity() {
  echo "$HOST_NAME" >"$HOST_ROOT/etc/hostname"
  printf '127.0.0.1 localhost\n%s %s\n' "${HOST_ADDRESS:-127.0.1.1}" "$HOST_NAME" \
    >"$HOST_ROOT/etc/hosts"
  tr -d - </proc/sys/kernel/random/uuid >"$HOST_ROOT/etc/machine-id"
  key=$HOST_ROOT/etc/ssh/ssh_host_ed25519_key
  ssh-keygen -q -t ed25519 -N '' -C "$HOST_NAME" -f "$key"
}
