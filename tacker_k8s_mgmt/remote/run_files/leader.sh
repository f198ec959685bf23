#!/bin/bash
# Sent before each script that looks at runs.
# Prints the process that leads a run, if it is alive: a lock is out of sight when its
# file was deleted.
leader() { # DIRECTORY
    local pid start boot stat
    { read -r pid start boot _ <"$1/pid"; } 2>/dev/null || return
    [ "$boot" = "$(</proc/sys/kernel/random/boot_id)" ] || return
    stat=$(cat "/proc/$pid/stat" 2>/dev/null) || return
    read -ra stat <<<"${stat##*) }"
    [ "${stat[0]}" != Z ] && [ "${stat[19]}" = "$start" ] && echo "$pid"
}

# Prints the id of a run that has a leader and no exit code yet.
led() { # WORKDIR
    local directory
    for directory in "$1"/runs/*/; do
        [ -e "$directory/rc" ] || ! leader "$directory" >/dev/null || basename "$directory"
    done
}
