#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs one playbook, detached from the SSH connection; its directory has the run's whole
# state. Started by run_directory.py as
#   env K8S_MGMT_RUN=<run directory> setsid -f bash run.sh \
#       WORKDIR RUN_ID LATEST KUBESPRAY_ROOT VENV FORKS MOST PLAYBOOK [ARGUMENT...]
# LATEST is the run that held the lock last when this one was requested; it, VENV and
# FORKS may be empty. MOST limits the number of forks that is derived from this server's
# resources. No argument holds a secret. In the environment are K8S_MGMT_STRATEGY (a
# choice of ansible.strategy), K8S_MGMT_CORES and K8S_MGMT_MITOGENS (the versions of
# kubespray/strategies.py), and K8S_MGMT_RESOLVES, if downloads are to be resolved.
set -u
strategy=${K8S_MGMT_STRATEGY:-linear} resolves=${K8S_MGMT_RESOLVES-}
workdir=${1:?} id=${2:?} latest=$3 root=${4:?} venv=$5 forks=$6 most=${7:?} playbook=${8:?}
shift 8
run=$workdir/runs/$id
operators_umask=$(umask)
umask 077
ulimit -Sc 0 # a core dump of Ansible or sshpass would have passwords
exec </dev/null >>"$run/log" 2>&1
# Either may be a link that changes to another release during this run.
root=$(readlink -m -- "$root") venv=${venv:+$(readlink -m -- "$venv")}

record() { # FILE TEXT: appears whole or not at all
    printf '%s\n' "$2" >"$1.tmp" && sync "$1.tmp" && mv "$1.tmp" "$1"
}

# One run per cluster. Ansible inherits the lock, so it is held as long as either process
# lives. Wait briefly, because watch.sh takes a shared lock for a moment.
exec 9<>"$workdir/run.lock"
if ! flock -w 3 9 || [ "$(<"$workdir/run.lock")" != "$latest" ] ||
    [ -n "$(led "$workdir")" ]; then
    # Another run took the lock; the driver has to decide again.
    rm -rf -- "$run"
    exit 75
fi
echo "$id" >"$workdir/run.lock"
stat=$(<"/proc/$$/stat")
read -ra stat <<<"${stat##*) }"
boot=$(</proc/sys/kernel/random/boot_id)
record "$run/pid" "$$ ${stat[19]} $boot $(date +%s.%3N) $(uptime_seconds)"

# A killed run leaves its connections behind.
for directory in "$workdir"/runs/*/; do
    disconnect "$directory"
done
earlier=("$workdir"/runs/*/)
for ((i = 0; i < ${#earlier[@]} - 10; i++)); do
    # The clock may have been set back since the others were named.
    [ "${earlier[i]}" = "$run/" ] || rm -rf -- "${earlier[i]}"
done

tar -xzmf "$run/files.tar.gz" --no-same-owner -C "$run"

child='' ended=''
end() {
    ended=yes
    echo "ERROR! the run is ended on request"
    [ -n "$child" ] && kill -TERM "$child" 2>/dev/null
}
trap end TERM INT HUP

# A Unix socket's path is limited to about 100 characters, a work directory's is not.
control=$(mktemp -d /tmp/k8s-mgmt.XXXXXX)
record "$run/control" "$control"
# Nodes may be idle for long while another works; kubespray's own ansible.cfg keeps
# connections for the same time.
ssh_options=(
    -o ControlMaster=auto -o ControlPersist=30m -o ConnectTimeout=30
    -o ServerAliveInterval=10 -o ServerAliveCountMax=6
    # The driver has recorded the key of each node; no other key is accepted.
    -o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null
    -o "'UserKnownHostsFile=\"$workdir/known_hosts\"'"
)
if [ -n "$venv" ]; then
    export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
fi
export LC_ALL=C.UTF-8 # Ansible insists on UTF-8
# Named, since Ansible ignores the one of a world-writable current directory.
[ -e "$root/ansible.cfg" ] && export ANSIBLE_CONFIG=$root/ansible.cfg

configured() { # OPTION: whether the file that Ansible reads has it, in any section
    local file
    for file in "${ANSIBLE_CONFIG-}" ~/.ansible.cfg /etc/ansible/ansible.cfg; do
        [ -e "$file" ] || continue
        grep -qiE "^$1[[:space:]]*[=:]" "$file"
        return
    done
    return 1
}

# Ansible starts no more processes than a play has hosts, so a small cluster needs no
# lower number. 5 is Ansible's own default.
bearable_forks() {
    local cores memory
    cores=$(nproc) memory=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
    printf '%s\n' $((10 * cores)) $((memory / 100)) "$most" |
        sort -n | awk 'NR == 1 { print ($1 > 5 ? $1 : 5) }'
}

# Fewer round trips per task; nodes with requiretty have been refused before.
if [ -z "${ANSIBLE_PIPELINING-}${ANSIBLE_SSH_PIPELINING-}" ] && ! configured pipelining; then
    export ANSIBLE_PIPELINING=True
fi
if [ -z "$forks" ] && [ -z "${ANSIBLE_FORKS-}" ] && ! configured forks; then
    forks=$(bearable_forks)
fi
[ -n "$forks" ] && export ANSIBLE_FORKS=$forks
# Facts never expire: kubespray reads those of all nodes, and a dead node provides none.
# Their files are named after the nodes, so that those of rebuilt VMs can be deleted.
callbacks=${ANSIBLE_CALLBACK_PLUGINS:-~/.ansible/plugins/callback:/usr/share/ansible/plugins/callback}
export K8S_MGMT_EVENTS=$run/events.jsonl K8S_MGMT_LOG=$run/log \
    ANSIBLE_CALLBACK_PLUGINS=$run/plugins:$callbacks \
    ANSIBLE_CACHE_PLUGIN=jsonfile ANSIBLE_CACHE_PLUGIN_CONNECTION=$workdir/facts \
    ANSIBLE_CACHE_PLUGIN_PREFIX='' ANSIBLE_CACHE_PLUGIN_TIMEOUT=0 \
    ANSIBLE_SSH_ARGS="${ssh_options[*]}" ANSIBLE_SSH_CONTROL_PATH_DIR=$control \
    ANSIBLE_HOST_KEY_CHECKING=True ANSIBLE_LOCAL_TEMP=$run/tmp \
    ANSIBLE_SSH_RETRIES=2 ANSIBLE_RETRY_FILES_ENABLED=False ANSIBLE_NOCOLOR=1 PYTHONUNBUFFERED=1

# The kind of this run; its duration is estimated from former runs of the same kind.
release=$(sed -n 's/^version: *["v]*\([0-9][0-9.]*\).*/\1/p' "$root/galaxy.yml" 2>/dev/null)
if [ -n "$release" ]; then
    case " $* " in *" --limit "*) limited=', limited' ;; *) limited='' ;; esac
    export K8S_MGMT_KIND="$playbook, kubespray $release$limited"
    export K8S_MGMT_HISTORY=${XDG_CACHE_HOME:-~/.cache}/tacker-k8s-mgmt/durations.jsonl
fi

# What the driver is to know of this run. TEXT has no quotes.
note() { # TEXT
    printf '{"event": "note", "message": "%s", "time": %s, "up": %s}\n' \
        "$1" "$(date +%s.%3N)" "$(uptime_seconds)" >>"$run/events.jsonl"
}

# Ansible's own Python, from the first line of its program.
interpreter() {
    local program line
    program=$(command -v ansible-playbook) && read -r line <"$program" || return
    case $line in
    "#!"*" "*) return 1 ;;
    "#!"*python*) echo "${line#??}" ;;
    *) return 1 ;;
    esac 2>/dev/null
}
python=$(interpreter) || python=''

# The versions of ansible-core and of mitogen; "" for what is not there.
versions() {
    [ -n "$python" ] && "$python" - 2>/dev/null <<'END'
from importlib import metadata, util

for module, name in ("ansible", "ansible-core"), ("ansible_mitogen", "mitogen"):
    try:
        print(metadata.version(name) if util.find_spec(module) else "")
    except metadata.PackageNotFoundError:
        print("unknown")
END
}

has() { case " $1 " in *" $2 "*) ;; *) return 1 ;; esac; } # WORDS WORD

# Sets ANSIBLE_STRATEGY to the wanted one that this Ansible can have. A strategy that the
# operator has configured stays, unless the request names one.
choose_strategy() {
    local core mitogen minor
    if [ "$strategy" = configured ]; then
        return
    elif [ "$strategy" = auto ]; then
        [ -z "${ANSIBLE_STRATEGY-}${ANSIBLE_STRATEGY_PLUGINS-}" ] &&
            ! configured strategy && ! configured strategy_plugins || return
    elif [ "$strategy" = linear ]; then
        export ANSIBLE_STRATEGY=linear
        return
    fi
    { read -r core && read -r mitogen; } <<<"$(versions)"
    IFS=. read -r major minor _ <<<"$core"
    minor=$major.$minor
    if ! has "${K8S_MGMT_CORES-}" "$minor"; then
        note "strategy linear: k8s_linear is not tested with ansible-core ${core:-of this server}"
        export ANSIBLE_STRATEGY=linear
        return
    fi
    export ANSIBLE_STRATEGY=k8s_linear ANSIBLE_STRATEGY_PLUGINS=$run/strategies
    if [ "$strategy" = k8s_linear ]; then
        note "strategy k8s_linear"
    elif has "${K8S_MGMT_MITOGENS-}" "$mitogen/$minor"; then
        export K8S_MGMT_MITOGEN=$mitogen
        # In Ansible's 10 s a busy node does not start mitogen's Python.
        [ -n "${ANSIBLE_TIMEOUT-}" ] || configured timeout || export ANSIBLE_TIMEOUT=60
        note "strategy k8s_linear with mitogen $mitogen"
    elif [ -n "$mitogen" ]; then
        note "strategy k8s_linear without mitogen: mitogen $mitogen is not known to work with ansible-core $core"
    elif [ "$strategy" = mitogen_linear ]; then
        note "strategy k8s_linear without mitogen: it is not in Ansible's Python environment"
    else
        note "strategy k8s_linear"
    fi
}

# Whether a run has failed because of its strategy: Ansible met an exception (250), the
# log names its code, or mitogen, which has SSH connections of its own, has not reached a
# host (4, or 6 if another one has failed).
strategy_failed() {
    [ -z "$ended" ] && [ "${ANSIBLE_STRATEGY-}" = k8s_linear ] || return
    case $rc${K8S_MGMT_MITOGEN:+ with mitogen} in
    250*) return ;;
    "4 with mitogen" | "6 with mitogen") return ;;
    1 | 2 | "1 with mitogen" | "2 with mitogen")
        grep -qE 'k8s_linear|mitogen[._/]' "$run/log"
        ;;
    *) return 1 ;;
    esac
}

wait_for_child() {
    # For a killed child, bash would print a line of this script.
    {
        wait "$child"
        rc=$?
        while kill -0 "$child"; do # a trap ended the wait, not the child
            wait "$child"
            rc=$?
        done
    } 2>/dev/null
    child=''
}

hosts=(-i "$workdir/hosts.yaml")
# Adds the hosts' downloads, evaluated once, to the inventory.
resolve() {
    local limit=() digest
    case " $* " in *" --limit "*) limit=("${@:1:2}") ;; esac
    if [ -z "$python" ]; then
        note "downloads is evaluated by each task: Ansible's Python was not found"
        return
    fi
    "$python" "$run/k8s_mgmt_resolve.py" resolve "$run" "$root" "$workdir/hosts.yaml" \
        "$workdir/vars.json" "${limit[@]}" >"$run/resolved.digest" &
    child=$!
    wait_for_child
    [ "$rc" = 0 ] && digest=$(<"$run/resolved.digest") &&
        "$python" "$run/k8s_mgmt_resolve.py" verify "$run" "$root" "$digest" &&
        hosts+=(-i "$run/resolved.json")
}

play() {
    # Files that kubespray creates on this server get the operator's umask.
    (
        umask "$operators_umask"
        exec ansible-playbook "${hosts[@]}" --become-user=root \
            -e "@$workdir/vars.json" -e "@$run/vars.json" "$@" "$playbook"
    ) &
    child=$!
    wait_for_child
}

# Ansible would create it readable for others, and facts hold the hosts' environment.
mkdir -p "$workdir/facts"
if cd "$root"; then
    choose_strategy
    [ -n "$resolves" ] && resolve "$@"
    rc=143
    [ -n "$ended" ] || play "$@"
    if strategy_failed; then
        note "the strategy has failed; the run is repeated with linear"
        echo "The strategy has failed. The run is repeated with linear."
        export ANSIBLE_STRATEGY=linear
        unset K8S_MGMT_MITOGEN
        play "$@"
    fi
    if [ -z "$ended" ] && ((rc > 128)) && signal=$(kill -l "$rc" 2>/dev/null); then
        echo "ERROR! ansible-playbook was killed: $signal"
    fi
else
    rc=1
fi

disconnect "$run"
rm -rf -- "$run/tmp"
record "$run/rc" "$rc $(date +%s.%3N)"
