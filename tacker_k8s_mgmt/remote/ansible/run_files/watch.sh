#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints the state of a run; changes nothing. Read by bash from standard input as
#   bash -s -- WORKDIR RUN_ID OFFSET LIMIT WAIT
# Prints one line of JSON, then the run's event lines from byte OFFSET on, at most LIMIT
# bytes. Without RUN_ID it is the live run or else the newest one. While a run is in
# progress, waits up to WAIT seconds for its end first.
set -u
workdir=$1 id=$2 offset=$3 limit=$4 wait=$5

asked=$id
if [ -z "$asked" ]; then
    for directory in "$workdir"/runs/*/; do # their names sort by time
        [ -d "$directory" ] && id=${directory%/} id=${id##*/}
    done
fi
# The order matters: a run records its pid after it has taken the lock, and its exit code
# before it releases the lock.
[ -n "$id" ] && [ -e "$workdir/runs/$id/pid" ] && begun=yes || begun=
holder=
latest=
if [ -e "$workdir/run.lock" ]; then
    # A run holds an exclusive lock, this script a shared one.
    patience=(-n)
    [ "$wait" = 0 ] || patience=(-w "$wait")
    exec 9<"$workdir/run.lock"
    flock -s "${patience[@]}" 9 || holder=yes
    exec 9<&-
    read -r latest <"$workdir/run.lock"
    [ -n "$holder" ] && [ ! -e "$workdir/runs/$latest/rc" ] && holder=$latest || holder=
fi
if [ -z "$holder" ] && holder=$(led "$workdir") && [ -n "$holder" ]; then
    sleep "$wait" # there is no lock whose release could be awaited
fi
[ -z "$asked" ] && [ -n "$holder" ] && id=$holder
run=$workdir/runs/$id

started=null rc=null ended=null
[ -e "$run/pid" ] && read -r _ _ _ started <"$run/pid"
[ -e "$run/rc" ] && read -r rc ended <"$run/rc"
if [ -z "$id" ] || [ ! -d "$run" ]; then
    state=absent
elif [ "$rc" != null ]; then
    state='done'
elif [ "$holder" = "$id" ]; then
    state=running
elif [ -n "$begun" ]; then
    state=lost
else
    state=starting
fi
changed='' size=0
while read -r at bytes; do
    changed+=${changed:+,}$at size=$bytes
done < <(stat -c '%.3Y %s' "$run/request.json" "$run/pid" "$run/events.jsonl" 2>/dev/null)
read -r now stamp < <(date -u '+%s.%3N %Y%m%dT%H%M%S%3NZ')
printf '{"run":"%s","state":"%s","rc":%s,"started":%s,"ended":%s,"latest":"%s",' \
    "$id" "$state" "$rc" "$started" "$ended" "$latest"
printf '"now":%s,"changed":[%s],"stamp":"%s"}\n' "$now" "$changed" "$stamp"
# The events are the last of the files, if there are any.
if [ -e "$run/events.jsonl" ] && [ "$size" -gt "$offset" ]; then
    tail -c "+$((offset + 1))" "$run/events.jsonl" | head -c "$limit"
fi
