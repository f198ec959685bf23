#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sent before each script that looks at runs.
# Prints the seconds since the boot, which no change of the clock touches.
uptime_seconds() {
    local up
    read -r up _ </proc/uptime && echo "$up"
}

# Prints the pid of a run's leader, if it is alive. The lock is no proof: its file may
# have been deleted.
leader() { # DIRECTORY
    local pid start boot stat
    { read -r pid start boot _ <"$1/pid"; } 2>/dev/null || return
    [ "$boot" = "$(</proc/sys/kernel/random/boot_id)" ] || return
    stat=$(cat "/proc/$pid/stat" 2>/dev/null) || return
    read -ra stat <<<"${stat##*) }"
    [ "${stat[0]}" != Z ] && [ "${stat[19]}" = "$start" ] && echo "$pid"
}

# Prints the id of a run with a leader and without an exit code.
led() { # WORKDIR
    local directory
    for directory in "$1"/runs/*/; do
        [ -e "$directory/rc" ] || ! leader "$directory" >/dev/null || basename "$directory"
    done
}

# Ends the shared connections (ControlPersist) from a run to its nodes.
disconnect() { # RUN_DIRECTORY
    local control
    [ -e "$1/control" ] && control=$(<"$1/control") || return
    find "$control" -type s -print0 2>/dev/null |
        xargs -0 -r -n 1 -P 8 timeout 5 ssh -O exit host -S 2>/dev/null
    rm -rf -- "$control" "$1/control"
}
