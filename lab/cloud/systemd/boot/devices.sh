#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The devices of a host that boots systemd: none of the machine's disks and terminals; see
# init.sh.

make_devices() {
  mount -t tmpfs -o mode=0755,size=4m dev "$HOST_ROOT/dev"
  mkdir "$HOST_ROOT/dev/pts" "$HOST_ROOT/dev/shm" "$HOST_ROOT/dev/mqueue" "$HOST_ROOT/dev/net"
  for device in null zero full random urandom tty fuse net/tun; do
    [ -e "/dev/$device" ] || continue
    : >"$HOST_ROOT/dev/$device"
    mount --bind "/dev/$device" "$HOST_ROOT/dev/$device"
  done
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$HOST_ROOT/dev/pts"
  ln -s pts/ptmx "$HOST_ROOT/dev/ptmx"
  ln -s /proc/self/fd "$HOST_ROOT/dev/fd"
  for number in 0:stdin 1:stdout 2:stderr; do
    ln -s "fd/${number%:*}" "$HOST_ROOT/dev/${number#*:}"
  done
  mount -t tmpfs -o mode=1777,size=256m shm "$HOST_ROOT/dev/shm"
  # A kubelet insists on opening it; the machine's kernel log is not the host's.
  ln -s null "$HOST_ROOT/dev/kmsg"
  : >"$HOST_ROOT/dev/console"
  mount --bind "$HOST_LOG" "$HOST_ROOT/dev/console"
}
