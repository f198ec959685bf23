#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a host that boots systemd sees of the kernel, which is the machine's; see init.sh.

# Settings of the whole machine: hosts may write them, into files of their own. kubespray
# and kubelet set the first ones and compare them with the values that they require.
SETTINGS='vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
fs/inotify/max_user_instances 8192
fs/inotify/max_user_watches 524288
fs/file-max 2097152
vm/max_map_count 262144
vm/swappiness 60'

# over FILE: the host's own file of that name over the kernel's, if the kernel has one.
over() {
  [ ! -e "$HOST_ROOT$1" ] || mount --bind "$own$1" "$HOST_ROOT$1"
}

# own FILE: the host's own file of that name takes standard input.
own() {
  mkdir -p "$own${1%/*}"
  cat >"$own$1"
}

make_kernel_files() {
  own=$HOST_MOUNT/kernel
  mount -t proc -o nosuid,nodev,noexec proc "$HOST_ROOT/proc"
  mount -t sysfs -o nosuid,nodev,noexec,ro sysfs "$HOST_ROOT/sys"
  # The settings of the network namespace are the host's.
  mount --bind "$HOST_ROOT/proc/sys/net" "$HOST_ROOT/mnt"
  mount --bind "$HOST_ROOT/proc/sys" "$HOST_ROOT/proc/sys"
  mount -o remount,bind,ro "$HOST_ROOT/proc/sys"
  mount --move "$HOST_ROOT/mnt" "$HOST_ROOT/proc/sys/net"
  echo "$SETTINGS" | while read -r key value; do
    echo "$value" | own "/proc/sys/$key"
    over "/proc/sys/$key"
  done
  # The kernel is shared and was started once; a host shows its own time of start.
  own /proc/sys/kernel/random/boot_id <"$HOST_ROOT/proc/sys/kernel/random/uuid"
  over /proc/sys/kernel/random/boot_id
  # swapoff -a then turns off nothing of the machine's.
  printf 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n' | own /proc/swaps
  over /proc/swaps
  own /sys/class/dmi/id/product_uuid <"$HOST_ROOT/proc/sys/kernel/random/uuid"
  over /sys/class/dmi/id/product_uuid
  own /proc/sysrq-trigger </dev/null
  over /proc/sysrq-trigger
}

mount_cgroups() {
  # In one of version 1 each controller has a directory; in version 2 it is all one.
  case $HOST_CGROUPS in
    *' .') ;;
    *) mount -t tmpfs -o mode=0755 cgroup "$HOST_ROOT/sys/fs/cgroup" ;;
  esac
  echo "$HOST_CGROUPS" | while read -r type options directory; do
    mkdir -p "$HOST_ROOT/sys/fs/cgroup/$directory"
    mount -t "$type" -o "$options" cgroup "$HOST_ROOT/sys/fs/cgroup/$directory" ||
      refuse "the kernel refuses cgroups in a namespace ($type, $options)"
    # Programs look for each of several controllers in one hierarchy by its own name.
    case $directory in
      *,*)
        for name in $(echo "$directory" | tr , ' '); do
          ln -sfn "$directory" "$HOST_ROOT/sys/fs/cgroup/$name"
        done
        ;;
    esac
  done
}
