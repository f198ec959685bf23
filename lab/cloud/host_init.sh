#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Process 1 of a lab host: turns the namespaces it was started in (pid, mount, uts, ipc,
# net) into a machine with its own file system and address, then goes on as host_main.sh.
#
# Environment: HOST_NAME, HOST_LAYERS (file layers above /, topmost first, separated by
# ":"), HOST_MOUNT (an empty directory), HOST_DISK (size of its disk), HOST_NET (lines for
# ip -batch), HOST_ADDRESS, HOST_MASKS (directories to hide, one per line) and HOST_VISIBLE
# (a directory to show read-only).
# Talks to its starter: prints "PID n", waits for a line (the cables are plugged in).
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
mount -t tmpfs -o "mode=0755,size=$HOST_DISK" lab-disk "$HOST_MOUNT"
root=$HOST_MOUNT/root
mkdir "$root"

# overlay DIR: the machine's DIR below, the layers above it, this host's changes on top.
overlay() {
  lower=
  IFS=:
  for layer in $HOST_LAYERS; do
    [ ! -d "$layer$1" ] || lower=$lower$layer$1:
  done
  unset IFS
  changes=$HOST_MOUNT/changes$(echo "$1" | tr / -)
  mkdir "$changes" "$changes.work"
  mount -t overlay lab -o \
    "lowerdir=$lower$1,upperdir=$changes,workdir=$changes.work" "$root$1" && return
  echo "The kernel refuses an overlay file system over $1 of this machine, and every" \
    "lab host needs one. It must be ext4, xfs, btrfs or tmpfs, or an overlay that is" \
    "not nested itself: run the lab on the machine itself or in a virtual machine," \
    "not in a container inside a container." >&2
  exit 1
}
overlay /
# An overlay shows one file system: what the machine keeps on others is added.
for dir in /usr /var; do
  ! mountpoint -q "$dir" || overlay "$dir"
done

mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
# The kernel is shared and was started once; a host shows its own time of start.
cat "$root/proc/sys/kernel/random/uuid" >"$HOST_MOUNT/boot_id"
mount --bind "$HOST_MOUNT/boot_id" "$root/proc/sys/kernel/random/boot_id"
mount -t sysfs -o nosuid,nodev,noexec,ro sysfs "$root/sys"
mount -t tmpfs -o mode=0755 dev "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
for device in null zero full random urandom tty; do
  : >"$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for number in 0:stdin 1:stdout 2:stderr; do
  ln -s "fd/${number%:*}" "$root/dev/${number#*:}"
done
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t tmpfs -o mode=0755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mkdir -p "$root/run/sshd" "$root/run/lock" "$root/run/haproxy"
# For root to see what this host has written itself, and nothing else.
mkdir -m 0700 "$root/run/lab"
mkdir "$root/run/lab/disk"
mount --bind "$HOST_MOUNT" "$root/run/lab/disk"

echo "$HOST_MASKS" | while read -r dir; do
  [ ! -d "$root$dir" ] || mount -t tmpfs -o mode=0755 masked "$root$dir"
done
mkdir -p "$root$HOST_VISIBLE"
# Users of the host must get there, even through a directory that only root may enter.
dir=${HOST_VISIBLE%/*}
while [ -n "$dir" ]; do
  chmod a+x "$root$dir"
  dir=${dir%/*}
done
mount --bind "$HOST_VISIBLE" "$root$HOST_VISIBLE"
mount -o remount,bind,ro "$root$HOST_VISIBLE"

cd "$root"
mkdir .machine
if pivot_root . .machine 2>/dev/null; then
  umount -l /.machine
  rmdir /.machine
  exec /bin/sh /usr/lib/lab-host/main.sh
fi
# pivot_root is not possible from within a chroot.
rmdir .machine
exec chroot . /bin/sh /usr/lib/lab-host/main.sh
