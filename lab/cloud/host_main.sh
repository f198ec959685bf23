#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Process 1 of a lab host once its file system is in place (see host_init.sh): gives the
# host an identity, starts sshd, prints "READY" when it listens, and stays to reap what
# becomes an orphan. Environment: HOST_NAME, HOST_ADDRESS.
set -eu
cd /
echo "$HOST_NAME" >/etc/hostname
printf '127.0.0.1 localhost\n%s %s\n' "${HOST_ADDRESS:-127.0.1.1}" "$HOST_NAME" >/etc/hosts
tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
key=/etc/ssh/ssh_host_ed25519_key
[ -s "$key" ] || ssh-keygen -q -t ed25519 -N '' -C "$HOST_NAME" -f "$key"

/usr/sbin/sshd -D -e </dev/null >/dev/null 2>>/var/log/sshd.log &
sshd=$!
until [ -s /run/sshd.pid ]; do
  kill -0 "$sshd" 2>/dev/null || {
    cat /var/log/sshd.log >&2
    exit 1
  }
  sleep 0.02
done
# Where the stand-in for systemctl looks.
mkdir -p /run/lab-systemctl
echo "$sshd" >/run/lab-systemctl/ssh
echo READY
# Nothing that lives on may hold the starter's pipes and log.
exec </dev/null >/dev/null 2>&1
trap : TERM INT HUP
# wait reaps every orphan of the host; the sleep keeps it waiting when sshd is gone.
while :; do
  sleep 3600 &
  wait
done
