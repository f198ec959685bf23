#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ends a run with all its processes on this server. Read by bash from standard input:
#   bash -s -- WORKDIR RUN_ID GRACE
# TERM, after GRACE seconds KILL. An exit code is recorded if the run could not do so.
set -u
workdir=$1 id=${2:?} grace=$3
run=$workdir/runs/$id

# Ansible's workers may lead sessions of their own, so the process group alone is not
# enough; every process of the run has this variable.
marked() { grep -slzxF -- "K8S_MGMT_RUN=$run" /proc/[0-9]*/environ; }

signal() {
    local pid
    pid=$(leader "$run") && kill "-$1" -- "-$pid" 2>/dev/null
    marked | while IFS=/ read -r _ _ pid _; do
        kill "-$1" "$pid" 2>/dev/null
    done
}

# Wait briefly, because watch.sh takes a shared lock for a moment.
alive() {
    [ -n "$(marked)" ] || ! flock -w 1 "$workdir/run.lock" true
}

signal TERM
# Counted, because bash's SECONDS follows the clock.
for ((n = 0; n < grace * 5; n++)); do
    alive || break
    sleep 0.2
done
# Repeatedly, because a process that is just being started may be missed.
for ((n = 0; n < 50; n++)); do
    alive || break
    signal KILL
    sleep 0.1
done
disconnect "$run"
if [ -d "$run" ] && [ ! -e "$run/rc" ]; then
    echo "137 $(date +%s.%3N)" >"$run/rc.tmp" && mv "$run/rc.tmp" "$run/rc"
fi
if alive; then
    left=$(marked | tr -dc '0-9\n' | tr '\n' ' ')
    echo "processes of run $id are still there: ${left:-one holds run.lock}" >&2
    exit 1
fi
