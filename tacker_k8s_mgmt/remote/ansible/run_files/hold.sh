#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Holds the cluster's lock as long as the SSH connection of its owner. Started as
#   bash -c "$(cat hold.sh)" hold WORKDIR OWNER
# with OWNER as one line of JSON without secrets. Prints "held", or prints "busy" with the
# present owner's line and exits.
set -u
workdir=$1 owner=$2
umask 077
exec 9<>"$workdir/operation.lock" || exit 1
if ! flock -n 9; then
    printf 'busy %s\n' "$(cat "$workdir/operation.lock")"
    exit 0
fi
printf '%s\n' "$owner" >"$workdir/operation.lock"
echo held
# Output that is not acknowledged ends the connection to a conductor whose host is gone.
{ while sleep 30; do echo; done; } 9>&- &
trap 'kill $! 2>/dev/null' EXIT
cat >/dev/null
