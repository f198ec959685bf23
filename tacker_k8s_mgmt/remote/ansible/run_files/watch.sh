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
[ -n "$id" ] && [ -e "$workdir/runs/$id/pid" ] && led=yes || led=
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

started=null begun=null rc=null ended=null
[ -e "$run/pid" ] && read -r _ _ _ started begun <"$run/pid"
[ -e "$run/rc" ] && read -r rc ended <"$run/rc"
if [ -z "$id" ] || [ ! -d "$run" ]; then
    state=absent
elif [ "$rc" != null ]; then
    state='done'
elif [ "$holder" = "$id" ]; then
    state=running
elif [ -n "$led" ]; then
    state=lost
else
    state=starting
fi
# Sets up to the last time in a text. In a text of JSON, the quotes of such a field are
# escaped.
up_in() { [[ $1 =~ .*'"up": '([0-9.]*) ]] && up=${BASH_REMATCH[1]} || up=; }
text=
[ -e "$run/request.json" ] && read -rd '' text <"$run/request.json"
up_in "$text"
asked_at=$up
# The last line may be incomplete.
up_in "$(tail -n 2 "$run/events.jsonl" 2>/dev/null)"
heard=$up
size=$(stat -c %s "$run/events.jsonl" 2>/dev/null) || size=0
stamp=$(date -u '+%Y%m%dT%H%M%S%3NZ')
printf '{"run":"%s","state":"%s","rc":%s,"started":%s,"ended":%s,"latest":"%s",' \
    "$id" "$state" "$rc" "$started" "$ended" "$latest"
printf '"up":%s,"asked":%s,"begun":%s,"heard":%s,"stamp":"%s"}\n' \
    "$(uptime_seconds)" "${asked_at:-null}" "${begun:-null}" "${heard:-null}" "$stamp"
if [ "$size" -gt "$offset" ]; then
    tail -c "+$((offset + 1))" "$run/events.jsonl" | head -c "$limit"
fi
