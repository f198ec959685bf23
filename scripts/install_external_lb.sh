#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tacker-k8s-mgmt load-balancer contract: 2
#
# The external load balancer of a Kubernetes cluster VNF, made of HAProxy, and of the
# kernel's packet filter for UDP.
#
# It goes into the VNF package as `script_path`. The management driver sends it to the
# load balancer's VM and runs it there with sudo. It can be run by hand in the same way.
#
# Usage: install_external_lb.sh VERB [ARGUMENT ...]
#
#   install [--api-port PORT] --control-plane NAME=ADDRESS[:PORT] ...
#           [--worker NAME=ADDRESS ...] [--http-proxy URL] [--https-proxy URL]
#       Install HAProxy if it is absent and set the whole list of control planes and
#       workers; exposed services are kept. PORT is 6443 where it is not given. URL is
#       the proxy through which the package is fetched; that of --http-proxy serves
#       for https too, where --https-proxy is not given. "-": read the URL from a line
#       of standard input, in the order of the options, for a URL with a password.
#   add-worker NAME=ADDRESS ...
#   remove-worker NAME ...
#   expose [--unexpose NAME ...] [--http-proxy URL] [--https-proxy URL]
#          [NAME --port PORT --node-port PORT [--protocol tcp|udp] [--check-port PORT]
#           [--health-port PORT] [--source CIDR ...] [--proxy-protocol yes]] ...
#       Forward PORT of the load balancer to the node port of every healthy worker, for
#       each NAME; all of them, and what is no longer exposed, in one change. A worker
#       is healthy while its check port accepts connections (default: the node port, or
#       kubelet's 10250 for UDP), or while its health port answers GET /healthz with 200:
#       the health check node port of a Service with externalTrafficPolicy Local. Only
#       clients in a CIDR may connect, if any is given. --proxy-protocol (TCP): begin each
#       connection with the header of the PROXY protocol, version 2.
#   unexpose NAME ...
#   status
#       Print as JSON what is configured and how it is doing; needs no root.
#
# NAME is the name of a Kubernetes node or a service, and is always matched whole.
# ADDRESS is IPv4 or IPv6; an IPv6 address that is followed by a port has brackets.
#
# A verb that changes something prints "changed" or "unchanged". The wanted state is
# kept in one file; the whole haproxy.cfg is rendered from it, checked by HAProxy,
# renamed into place and reloaded, so open connections go on. The state is written
# last, when the running HAProxy has the new configuration; on any failure the earlier
# haproxy.cfg comes back, the exit code is not 0 and standard error is one line.
#
# Lines of the state with an unknown first word, and further fields of known lines, are
# those of a newer script: they are kept and ignored, and a call that succeeds names
# them in one line "warning: ..." on standard error.
#
# UDP is forwarded by nftables rules (destination NAT; the workers see the load balancer's
# address, as with TCP). The first UDP service installs the packages nftables and
# conntrack and a service, tacker-k8s-mgmt-udp, which is this script with the verb
# "forward": it takes workers that HAProxy finds DOWN out of the rules. If all are DOWN,
# all get packets. Flows of other workers go on. IP forwarding is on, for these flows
# only, as long as a UDP service is exposed.
#
# HAProxy 2.4 or later, nftables 0.9.4 or later for UDP, with systemd. Nothing but the
# distribution's packages is fetched. These environment variables change where and how; tests use them:
#
#   LB_STATE_FILE      the wanted state (no secrets, mode 0644)
#   LB_HAPROXY_CFG     haproxy.cfg; the distribution's own is kept once beside it
#   LB_LOCK_FILE       held while something is changed
#   LB_LOCK_SECONDS    how long to wait for another call to end
#   LB_HAPROXY         the haproxy program
#   LB_HAPROXY_USER    the user and group that HAProxy runs as, empty: the caller
#   LB_SYSTEMCTL       the systemctl program
#   LB_BIND            the address to listen on; default: all, IPv6 and IPv4
#   LB_STATS_PORT      port of HAProxy's read-only statistics socket on 127.0.0.1
#   LB_VERIFY_SECONDS  how long the running HAProxy may take to show the new
#                      configuration; 0: do not look at it, nor for ports in use
#   LB_UDP_PROGRAM     this script's copy that the service for UDP runs
#   LB_UDP_UNIT        the systemd unit of that service
#   LB_UDP_SECONDS     the pause between two looks at the workers' states
#   LB_HALF_CLOSED     how long a connection may be silent once one side has closed it
#   LB_PACKAGE_SECONDS how long to wait for cloud-init, the mirror and other package tools,
#   LB_PACKAGE_PAUSE   and the seconds between two tries

set -Eeuo pipefail
umask 022
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"

: "${LB_STATE_FILE:=/etc/tacker-k8s-mgmt/load-balancer.state}"
: "${LB_HAPROXY_CFG:=/etc/haproxy/haproxy.cfg}"
: "${LB_LOCK_FILE:=/run/tacker-k8s-mgmt-load-balancer.lock}"
: "${LB_LOCK_SECONDS:=300}"
: "${LB_HAPROXY:=haproxy}"
: "${LB_HAPROXY_USER=haproxy}"
: "${LB_SYSTEMCTL:=systemctl}"
: "${LB_BIND:=}"
: "${LB_STATS_PORT:=8404}"
: "${LB_VERIFY_SECONDS:=15}"
: "${LB_UDP_PROGRAM:=/usr/local/lib/tacker-k8s-mgmt/load-balancer.sh}"
: "${LB_UDP_UNIT:=/etc/systemd/system/tacker-k8s-mgmt-udp.service}"
: "${LB_UDP_SECONDS:=2}"
: "${LB_HALF_CLOSED:=5m}"
: "${LB_PACKAGE_SECONDS:=300}"
: "${LB_PACKAGE_PAUSE:=10}"

readonly STATE_HEADER="# tacker-k8s-mgmt load balancer, format 1"
readonly CFG_HEADER="# Written by tacker-k8s-mgmt's install_external_lb.sh; edits are overwritten."

api_port=""              # empty: not installed
declare -A control_planes=() # name -> "address port"
declare -A workers=()        # name -> address
# name -> "protocol port node-port check sources proxy": check is a port, or http:PORT;
# sources are separated by commas; "-" for none
declare -A services=()
declare -A further=()        # "worker NAME" -> " field ..." of a newer script
foreign=()                   # lines of a newer script
ignored=()                   # lines of which something is ignored

work=""                  # this call's scratch directory
locked=0                 # 1 while this call may write
undo=0                   # 1 while a failure must bring the earlier haproxy.cfg back

# --- failing: one line on standard error, whatever the tools below have printed

begin() {
    work=$(mktemp -d)
    exec 3>&2 2>"$work/stderr"
    trap on_exit EXIT
    trap 'unexpected "$LINENO" "$BASH_COMMAND"' ERR
    trap 'fail "ended by a signal"' HUP INT TERM
}

fail() {
    [[ -s $work/reason ]] || printf '%s' "$1" >"$work/reason"
    exit 1
}

unexpected() {
    [[ -s $work/reason ]] ||
        printf 'line %s: %s: %s' "$1" "$2" "$(problem_in "$work/stderr")" >"$work/reason"
}

on_exit() {
    local rc=$? reason
    trap - ERR
    trap '' HUP INT TERM
    set +e
    ((undo == 0)) || put_back
    ((locked == 0)) || rm -f "$LB_STATE_FILE.new" "$LB_HAPROXY_CFG.new"
    if ((rc != 0)); then
        # A tool may quote the URL of a proxy.
        reason=$(sed -E 's#(https?://)[^/@[:space:]]+@#\1***@#g' "$work/reason")
        print_line "${reason:-ended with exit code $rc}"
    elif ((${#ignored[@]})); then
        printf -v reason "; '%s'" "${ignored[@]}"
        print_line "warning: $LB_STATE_FILE has lines or fields that this script does not know; they are kept and ignored. Build the package with the newer driver's tacker-k8s-mgmt csar build: ${reason:2}"
    fi
    rm -rf "$work"
    exit "$rc"
}

print_line() {
    local line=${1//[[:cntrl:]]/ }
    printf '%s\n' "${line:0:600}" >&3
}

# The line of a tool's output that says what is wrong.
problem_in() {
    awk '/\[ALERT\]|^E: |[Ee]rror/ { found = $0; exit }
         NF { last = $0 }
         END { $0 = found ? found : last; sub(/^\[ALERT\][^:]*: /, ""); print }' "$1"
}

# --- checking what was given

is_name() {
    ((${#1} <= 253)) && [[ $1 =~ ^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$ ]]
}

is_port() {
    [[ $1 =~ ^[1-9][0-9]{0,4}$ ]] && (($1 <= 65535))
}

is_ipv4() {
    local octet='(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
    [[ $1 =~ ^$octet(\.$octet){3}$ && $1 != 0.0.0.0 ]]
}

is_ipv6() {
    local hex='[0-9a-f]{1,4}' groups
    [[ $1 =~ ^$hex(:$hex){7}$ ]] && return
    [[ $1 =~ ^($hex(:$hex)*)?::($hex(:$hex)*)?$ && $1 != :: ]] || return 1
    read -ra groups <<<"${1//:/ }"
    ((${#groups[@]} <= 7))
}

need_port() {
    is_port "$2" || fail "$1 '$2' is not a port number between 1 and 65535"
}

is_cidr() {
    local address=${1%/*} bits=${1##*/} most=32
    [[ $1 == */* && $bits =~ ^(0|[1-9][0-9]{0,2})$ ]] || return
    if [[ $address == *:* ]]; then most=128; fi
    ((bits <= most)) || return
    [[ $address == 0.0.0.0 || $address == :: ]] || is_ipv4 "$address" || is_ipv6 "$address"
}

need_name() {
    is_name "$2" || fail "$1 '$2' is not a name of lower-case letters, digits, '-' and '.'"
}

# Splits NAME=ADDRESS[:PORT] into the globals NAME, ADDRESS and PORT; PORT is $3 when
# none is given.
parse_server() {
    local what=$1
    [[ $2 == *=* ]] || fail "$what '$2' is not NAME=ADDRESS"
    NAME=${2%%=*} ADDRESS=${2#*=} PORT=$3
    need_name "$what" "$NAME"
    if [[ $ADDRESS =~ ^\[(.*:.*)\](:(.*))?$ ]]; then
        ADDRESS=${BASH_REMATCH[1]}
        [[ -z ${BASH_REMATCH[2]} ]] || PORT=${BASH_REMATCH[3]}
    elif [[ $ADDRESS =~ ^([^:]*):([^:]*)$ ]]; then
        ADDRESS=${BASH_REMATCH[1]} PORT=${BASH_REMATCH[2]}
    fi
    ADDRESS=${ADDRESS,,}
    is_ipv4 "$ADDRESS" || is_ipv6 "$ADDRESS" ||
        fail "$what '$2' has no valid IPv4 or IPv6 address"
}

parse_control_plane() {
    parse_server control-plane "$1" 6443
    need_port "control-plane $NAME: port" "$PORT"
}

parse_worker() {
    parse_server worker "$1" none
    [[ $PORT == none ]] || fail "worker '$1' must be given without a port"
}

# A worker's address belongs to one worker.
claim_worker() {
    local other
    for other in "${!workers[@]}"; do
        [[ $other == "$1" || ${workers[$other]} != "$2" ]] ||
            fail "worker $1: address $2 is already that of worker $other"
    done
    workers[$1]=$2
}

check_ports() {
    local name port protocol _
    local -A owner=([tcp/$LB_STATS_PORT]="HAProxy's own statistics")
    for name in "" "${!services[@]}"; do
        protocol=tcp port=$api_port
        [[ -z $name ]] || read -r protocol port _ <<<"${services[$name]}"
        [[ -z ${owner[$protocol/$port]-} ]] ||
            fail "port $port is used twice: by ${owner[$protocol/$port]} and by ${name:-the Kubernetes API}"
        owner[$protocol/$port]=${name:-the Kubernetes API}
    done
}

# --- the wanted state

sorted() {
    (($# == 0)) || printf '%s\n' "$@" | sort -V
}

print_state() {
    local name names
    printf '%s\napi-port %s%s\n' "$STATE_HEADER" "$api_port" "${further[api-port]-}"
    names=$(sorted "${!control_planes[@]}")
    for name in $names; do print_entry control-plane "$name" "${control_planes[$name]}"; done
    names=$(sorted "${!workers[@]}")
    for name in $names; do print_entry worker "$name" "${workers[$name]}"; done
    names=$(sorted "${!services[@]}")
    for name in $names; do print_service_entry "$name" "${services[$name]}"; done
    ((${#foreign[@]} == 0)) || printf '%s\n' "${foreign[@]}"
}

print_entry() {
    printf '%s %s %s%s\n' "$1" "$2" "$3" "${further[$1 $2]-}"
}

# Earlier scripts know TCP without restrictions only, and must not take the rest for it.
print_service_entry() {
    if [[ $2 =~ ^tcp\ ([0-9 ]+)\ -\ -$ ]]; then
        print_entry service "$1" "${BASH_REMATCH[1]}"
    else
        print_entry exposure "$1" "$2"
    fi
}

load_state() {
    local line word
    [[ -e $LB_STATE_FILE ]] || return 0
    while IFS= read -r line || [[ -n $line ]]; do
        read -ra word <<<"$line"
        case ${word[0]-} in
            api-port) keep_further 2 api-port; api_port=${word[1]} ;;
            control-plane)
                keep_further 4 "${word[*]:0:2}"
                control_planes[${word[1]}]="${word[2]} ${word[3]}" ;;
            worker) keep_further 3 "${word[*]:0:2}"; workers[${word[1]}]=${word[2]} ;;
            service)
                keep_further 5 "${word[*]:0:2}"
                services[${word[1]}]="tcp ${word[*]:2:3} - -" ;;
            exposure)
                keep_further 8 "${word[*]:0:2}"
                services[${word[1]}]=${word[*]:2:6} ;;
            *) keep_foreign ;;
        esac
    done <"$LB_STATE_FILE"
    is_port "$api_port" || fail "$LB_STATE_FILE is damaged; remove it and install again"
}

# Keeps what follows the first $1 words of load_state's line, for the entry $2.
keep_further() {
    ((${#word[@]} >= $1)) ||
        fail "$LB_STATE_FILE is damaged at '$line'; remove it and install again"
    if ((${#word[@]} > $1)); then
        further[$2]=" ${word[*]:$1}"
        ignored+=("$line")
    fi
}

# A later attribute that this script may ignore is a further field. One that it must not,
# such as a restriction, is a line with a new first word instead of the known line.
keep_foreign() {
    [[ $line != "$STATE_HEADER" ]] || return 0
    [[ $line != "${STATE_HEADER% *} "* ]] ||
        fail "$LB_STATE_FILE is that of a newer script (${line##*, }): build the package with the newer driver's tacker-k8s-mgmt csar build"
    foreign+=("$line")
    ignored+=("$line")
}

# Takes the lock and reads the state, for a verb that changes it.
open_state() {
    exec 9>"$LB_LOCK_FILE" || fail "$LB_LOCK_FILE cannot be written: run this script as root"
    flock -w "$LB_LOCK_SECONDS" 9 ||
        fail "another call of this script is still running after $LB_LOCK_SECONDS s"
    locked=1
    load_state
}

open_installed_state() {
    open_state
    [[ -n $api_port ]] || fail "the load balancer is not installed yet: call install first"
}

# --- haproxy.cfg

bracketed() {
    if [[ $1 == *:* ]]; then printf '[%s]' "$1"; else printf '%s' "$1"; fi
}

print_bind() {
    local address=$LB_BIND
    if [[ -z $address ]]; then
        if [[ -e /proc/net/if_inet6 ]]; then address=::; else address=0.0.0.0; fi
    fi
    printf '    bind %s:%s' "$(bracketed "$address")" "$1"
    if [[ $address == :: ]]; then printf ' v4v6'; fi
    printf '\n'
}

print_global() {
    printf '%s\nglobal\n    description %s\n' "$CFG_HEADER" "$1"
    cat <<EOF
    log stderr format raw daemon notice
    stats socket ipv4@127.0.0.1:$LB_STATS_PORT level user
    # a worker process with connections that never end goes after this many reloads
    mworker-max-reloads 50
EOF
    if [[ -n $LB_HAPROXY_USER ]]; then
        printf '    user %s\n    group %s\n' "$LB_HAPROXY_USER" "$LB_HAPROXY_USER"
        printf '    chroot /var/lib/haproxy\n'
    fi
    # Watches and CNF connections may be silent for hours; TCP keepalive finds dead peers.
    # It does not find the side that never closes what the other one has closed.
    cat <<EOF

defaults
    mode tcp
    log global
    option redispatch 1
    retries 3
    option clitcpka
    clitcpka-idle 60s
    clitcpka-intvl 10s
    clitcpka-cnt 3
    option srvtcpka
    srvtcpka-idle 60s
    srvtcpka-intvl 10s
    srvtcpka-cnt 3
    timeout connect 5s
    timeout check 5s
    timeout client 24h
    timeout server 24h
    timeout client-fin $LB_HALF_CLOSED
    timeout server-fin $LB_HALF_CLOSED
EOF
}

readonly CHECK="inter 3s fastinter 1s downinter 1s rise 2 fall 3"

# A frontend has a name of its own: HAProxy 3.3 refuses that of a backend. Backends keep
# theirs, which the statistics show for servers.
print_api() {
    local name names address port moving=""
    # Clients of a server that is down are sent away only where they can go to another.
    ((${#control_planes[@]} == 1)) || moving=" on-marked-down shutdown-sessions"
    printf '\nfrontend clients-of-kubernetes-api\n'
    print_bind "$api_port"
    # 401: anonymous requests are switched off, the API server is alive. Not so 403,
    # which is also what it answers while it starts.
    cat <<EOF
    default_backend kubernetes-api

backend kubernetes-api
    balance leastconn
    option httpchk GET /readyz
    http-check expect status 200,401
EOF
    names=$(sorted "${!control_planes[@]}")
    for name in $names; do
        read -r address port <<<"${control_planes[$name]}"
        printf '    server %s %s:%s check check-ssl verify none %s%s\n' \
            "$name" "$(bracketed "$address")" "$port" "$CHECK" "$moving"
    done
}

print_service() {
    local name=$1 names worker protocol port node_port check sources proxy source
    read -r protocol port node_port check sources proxy <<<"${services[$name]}"
    if [[ $protocol == tcp ]]; then
        printf '\nfrontend clients-of-service-%s\n' "$name"
        print_bind "$port"
        if [[ $sources != - ]]; then
            for source in ${sources//,/ }; do printf '    acl allowed src %s\n' "$source"; done
            printf '    tcp-request connection reject unless allowed\n'
        fi
        printf '    default_backend service-%s\n' "$name"
    fi
    printf '\nbackend service-%s\n    balance leastconn\n' "$name"
    if [[ $check == http:* ]]; then
        printf '    option httpchk GET /healthz\n    http-check expect status 200\n'
    fi
    names=$(sorted "${!workers[@]}")
    for worker in $names; do
        printf '    server %s %s:%s check port %s %s' "$worker" \
            "$(bracketed "${workers[$worker]}")" "$node_port" "${check#http:}" "$CHECK"
        if [[ $proxy == proxy ]]; then printf ' send-proxy-v2'; fi
        # A check of the node port ends in the application, too.
        if [[ $proxy == proxy && $check == "$node_port" ]]; then printf ' check-send-proxy'; fi
        printf '\n'
    done
}

print_config() {
    local name names
    print_global "$1"
    print_api
    names=$(sorted "${!services[@]}")
    for name in $names; do print_service "$name"; done
}

# A port that the configuration in place does not use must be free. Waiting for HAProxy
# to find out would stop it from accepting connections for two seconds.
check_free() {
    local protocol port _ word
    for word in "tcp $api_port" "${services[@]}"; do
        read -r protocol port _ <<<"$word"
        if [[ $protocol == tcp ]] && ! grep -Eqs "^ +bind .*:$port( |\$)" "$LB_HAPROXY_CFG" &&
            (exec 7<>"/dev/tcp/127.0.0.1/$port"); then
            fail "port $port is in use by another program on the load balancer"
        fi
    done
}

# Whether a program receives datagrams at this port, from elsewhere than this host.
is_bound() {
    local port
    printf -v port '%04X' "$1"
    cat /proc/net/udp /proc/net/udp6 2>/dev/null |
        awk -v port="$port" '{ n = split($2, local, ":") }
            n == 2 && local[2] == port && local[1] !~ /^(......7F|0{24}01000000)$/ { bound = 1 }
            END { exit !bound }'
}

# Identifies a configuration; a running HAProxy tells its own (see running_digest).
digest() {
    local sum
    sum=$(print_config - | sha256sum)
    printf '%s' "${sum:0:16}"
}

# --- the running HAProxy

# A daemon must inherit neither the lock nor the caller's standard error.
systemd() {
    "$LB_SYSTEMCTL" "$@" </dev/null >"$work/systemctl" 2>&1 3>&- 9>&-
}

service() {
    systemd "$@" haproxy
}

# Asks the statistics socket; no answer when HAProxy does not run.
ask() {
    (exec 7<>"/dev/tcp/127.0.0.1/$LB_STATS_PORT" && printf '%s\n' "$1" >&7 &&
        timeout 5 cat <&7) || true
}

running_digest() {
    ask 'show info' | awk '$1 == "description:" { print $2 }'
}

# HAProxy's master says yes to a reload even when the new worker cannot start, for
# instance when another program listens on a port: look at what really runs.
await_digest() {
    local tries=$((LB_VERIFY_SECONDS * 10))
    while ((tries-- > 0)); do
        if [[ $(running_digest) == "$1" ]]; then return 0; fi
        sleep 0.1
    done
    ((LB_VERIFY_SECONDS == 0))
}

ensure_running() {
    service is-enabled --quiet && service is-active --quiet && return
    service enable --now || fail "systemctl could not start haproxy: $(problem_in "$work/systemctl")"
    service is-active --quiet || fail "haproxy ended right after its start (journalctl -u haproxy)"
}

# --- UDP: rules of the kernel's packet filter

readonly TABLE="inet tacker_k8s_mgmt"

uses_udp() {
    local value
    for value in "${services[@]}"; do [[ $value != udp\ * ]] || return 0; done
    return 1
}

# The names of the workers that get packets of a service: those that HAProxy does not
# find DOWN, and all if it finds all DOWN, for then its checks may be what fails.
receivers() {
    local worker
    local -a up=()
    for worker in "${!workers[@]}"; do
        [[ ${server_states[service-$1/$worker]-} == '"DOWN'* ]] || up+=("$worker")
    done
    ((${#up[@]})) || up=("${!workers[@]}")
    sorted "${up[@]}"
}

print_rules() {
    local name names
    printf 'add table %s\n' "$TABLE"
    if ! uses_udp; then
        printf 'delete table %s\n' "$TABLE"
        return
    fi
    # Not deleted and made anew: what is forwarded has no gap.
    cat <<EOF
add chain $TABLE incoming { type nat hook prerouting priority -100; }
add chain $TABLE outgoing { type nat hook postrouting priority 100; }
add chain $TABLE passing { type filter hook forward priority 0; policy accept; }
flush table $TABLE
add rule $TABLE outgoing ct status dnat masquerade
add rule $TABLE passing ct status dnat accept
EOF
    # A VM that is a router stays one.
    routes ipv4/ip_forward || printf 'add rule %s passing meta nfproto ipv4 drop\n' "$TABLE"
    routes ipv6/conf/all/forwarding || printf 'add rule %s passing meta nfproto ipv6 drop\n' "$TABLE"
    names=$(sorted "${!services[@]}")
    for name in $names; do
        [[ ${services[$name]} != udp\ * ]] || print_udp_rules "$name"
    done
}

print_udp_rules() {
    local port node_port sources names worker source family allowed addresses count _
    read -r _ port node_port _ sources _ <<<"${services[$1]}"
    names=$(receivers "$1")
    for family in ip ip6; do
        addresses="" count=0
        for worker in $names; do
            [[ $(family_of "${workers[$worker]}") == "$family" ]] || continue
            addresses+="${addresses:+, }$count : ${workers[$worker]}"
            ((++count))
        done
        ((count > 0)) || continue
        # A rule each, for a set refuses networks that overlap.
        for source in ${sources//,/ }; do
            if [[ $source == - ]]; then
                allowed=""
            elif [[ $(family_of "$source") == "$family" ]]; then
                allowed="$family saddr $source "
            else
                continue
            fi
            printf 'add rule %s incoming fib daddr type local udp dport %s %sdnat %s to numgen inc mod %s map { %s } : %s\n' \
                "$TABLE" "$port" "$allowed" "$family" "$count" "$addresses" "$node_port"
        done
    done
}

family_of() {
    if [[ $1 == *:* ]]; then printf ip6; else printf ip; fi
}

# Whether the host forwards packets without our doing.
routes() {
    ! grep -qsx "$1" "$LB_LOCK_FILE.forwarding" && [[ $(cat "/proc/sys/net/$1" 2>/dev/null) == 1 ]]
}

# The host forwards packets while UDP is exposed, those of these flows only. A router's
# advertisements, which give it its IPv6 routes, are heeded nevertheless.
set_forwarding() {
    local wanted=$1 file switch
    for switch in ipv4/ip_forward ipv6/conf/all/forwarding; do
        file=/proc/sys/net/$switch
        if ((wanted == 0)); then
            ! grep -qsx "$switch" "$LB_LOCK_FILE.forwarding" || echo 0 >"$file"
        elif [[ -e $file && $(<"$file") == 0 ]]; then
            if [[ $switch == ipv6/* ]]; then
                [[ "${workers[*]}" == *:* ]] || continue
                accept_advertisements
            fi
            echo 1 >"$file"
            echo "$switch" >>"$LB_LOCK_FILE.forwarding"
        fi
    done
    ((wanted)) || rm -f "$LB_LOCK_FILE.forwarding"
}

accept_advertisements() {
    local file
    for file in /proc/sys/net/ipv6/conf/*/accept_ra; do
        [[ $(<"$file") != 1 ]] || echo 2 >"$file"
    done
}

apply_rules() {
    local wanted=0
    if uses_udp; then wanted=1; fi
    ((wanted == 0)) || set_forwarding 1
    nft -f "$work/rules" >"$work/nft" 2>&1 ||
        fail "nft cannot set the rules for UDP: $(problem_in "$work/nft")"
    ((wanted)) || set_forwarding 0
    forget_flows
}

# Flows to a worker that gets no more packets begin anew, with another one.
forget_flows() {
    local address node_port family known="$LB_LOCK_FILE.targets"
    targets >"$work/targets"
    if [[ -e $known ]]; then
        comm -23 "$known" "$work/targets" | while read -r address node_port; do
            family=ipv4
            if [[ $address == *:* ]]; then family=ipv6; fi
            conntrack -D -p udp -f "$family" --reply-src "$address" \
                --reply-port-src "$node_port" >"$work/conntrack" 2>&1 || true # without flows
        done
    fi
    cp "$work/targets" "$known"
}

print_unit() {
    cat <<EOF
$CFG_HEADER
[Unit]
Description=UDP of a Kubernetes cluster's load balancer
After=network-online.target haproxy.service
Wants=network-online.target

[Service]
ExecStart=/usr/bin/env bash $LB_UDP_PROGRAM forward
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
EOF
}

# Installs and starts what follows the workers' states.
ensure_follower() {
    local unit restart=0
    unit=$(basename "$LB_UDP_UNIT" .service)
    mkdir -p "$(dirname "$LB_UDP_PROGRAM")" "$(dirname "$LB_UDP_UNIT")"
    print_unit >"$work/unit"
    if ! cmp -s "$work/unit" "$LB_UDP_UNIT"; then
        cp "$work/unit" "$LB_UDP_UNIT"
        systemd daemon-reload
        restart=1
    fi
    if ! cmp -s "${BASH_SOURCE[0]}" "$LB_UDP_PROGRAM"; then
        # Renamed: bash goes on to read the file that it runs.
        cp "${BASH_SOURCE[0]}" "$LB_UDP_PROGRAM.new"
        mv -f "$LB_UDP_PROGRAM.new" "$LB_UDP_PROGRAM"
        restart=1
    fi
    if ((restart)) || ! systemd is-active --quiet "$unit"; then
        systemd restart "$unit" || fail "systemctl could not start $unit: $(problem_in "$work/systemctl")"
    fi
    systemd is-enabled --quiet "$unit" || systemd enable "$unit" ||
        fail "systemctl could not enable $unit: $(problem_in "$work/systemctl")"
}

# "address node-port" of everything that gets packets.
targets() {
    local name names worker node_port _
    for name in "${!services[@]}"; do
        [[ ${services[$name]} == udp\ * ]] || continue
        read -r _ _ node_port _ <<<"${services[$name]}"
        names=$(receivers "$name")
        for worker in $names; do printf '%s %s\n' "${workers[$worker]}" "$node_port"; done
    done | sort -u
}

# One look of the service for UDP, in a process of its own: it reads the state anew.
follow_once() (
    exec 9>"$LB_LOCK_FILE" || fail "$LB_LOCK_FILE cannot be written: run this script as root"
    flock -n 9 || exit 0 # a call of this script is changing something
    load_state
    read_server_states
    print_rules >"$work/rules"
    if ! cmp -s "$work/rules" "$work/applied"; then
        apply_rules
        cp "$work/rules" "$work/applied"
    fi
)

forward() {
    (($# == 0)) || fail "forward takes no argument"
    trap 'exit 0' TERM
    while true; do
        follow_once
        sleep "$LB_UDP_SECONDS"
    done
}

# --- from the wanted state to the running HAProxy

put_back() {
    if [[ -e $work/previous-rules ]]; then
        nft -f "$work/previous-rules" >"$work/nft" 2>&1 ||
            printf '; the earlier rules for UDP could not be set again' >>"$work/reason"
    fi
    [[ -e $work/replaced ]] || return 0
    if [[ -e $work/previous.cfg ]]; then
        cp -p "$work/previous.cfg" "$LB_HAPROXY_CFG.new"
        mv -f "$LB_HAPROXY_CFG.new" "$LB_HAPROXY_CFG"
    else
        rm -f "$LB_HAPROXY_CFG"
    fi
    if [[ -e $work/was-active ]]; then
        { service reload || service enable --now; } && await_digest "$(<"$work/previous-digest")" ||
            printf '; the earlier haproxy.cfg is back but haproxy does not take it' >>"$work/reason"
    fi
}

keep_original() {
    local copy="$LB_HAPROXY_CFG.before-tacker-k8s-mgmt" first=""
    [[ -e $LB_HAPROXY_CFG && ! -e $copy ]] || return 0
    read -r first <"$LB_HAPROXY_CFG" || true
    [[ $first == "$CFG_HEADER" ]] || cp -p "$LB_HAPROXY_CFG" "$copy"
}

replace_config() {
    keep_original
    if [[ -e $LB_HAPROXY_CFG ]]; then cp -p "$LB_HAPROXY_CFG" "$work/previous.cfg"; fi
    if service is-active --quiet; then touch "$work/was-active"; fi
    running_digest >"$work/previous-digest"
    ((LB_VERIFY_SECONDS == 0)) || check_free
    sync "$LB_STATE_FILE.new" "$LB_HAPROXY_CFG.new"
    touch "$work/replaced"
    undo=1
    mv -f "$LB_HAPROXY_CFG.new" "$LB_HAPROXY_CFG"
    if [[ -e $work/was-active ]]; then
        service reload || fail "systemctl could not reload haproxy: $(problem_in "$work/systemctl")"
    fi
    ensure_running
    await_digest "$1" ||
        fail "haproxy did not take the new configuration within $LB_VERIFY_SECONDS s; is one of its ports in use? (journalctl -u haproxy)"
}

commit() {
    local wanted
    check_ports
    prepare_udp
    wanted=$(digest)
    mkdir -p "$(dirname "$LB_STATE_FILE")" "$(dirname "$LB_HAPROXY_CFG")"
    print_state >"$LB_STATE_FILE.new"
    print_config "$wanted" >"$LB_HAPROXY_CFG.new"
    if ! "$LB_HAPROXY" -c -f "$LB_HAPROXY_CFG.new" >"$work/check" 2>&1; then
        fail "haproxy refuses the new configuration: $(problem_in "$work/check")"
    fi
    if ! cmp -s "$LB_HAPROXY_CFG.new" "$LB_HAPROXY_CFG"; then
        replace_config "$wanted"
    elif cmp -s "$LB_STATE_FILE.new" "$LB_STATE_FILE"; then
        ensure_running
        set_udp
        undo=0
        echo unchanged
        return
    elif [[ $(running_digest) != "$wanted" ]]; then
        # An earlier call was killed before its reload.
        replace_config "$wanted"
    fi # else: what changes is not HAProxy's, or workers without a service
    set_udp
    mv -f "$LB_STATE_FILE.new" "$LB_STATE_FILE"
    undo=0
    echo changed
}

# Everything for UDP that can fail before something is changed.
prepare_udp() {
    local protocol port _ word
    if uses_udp; then
        ensure_udp_packages
    elif [[ ! -e $LB_UDP_UNIT ]]; then
        return
    fi
    read_server_states # as they are before a reload
    print_rules >"$work/rules"
    nft -c -f "$work/rules" >"$work/nft" 2>&1 || fail "nft refuses the rules for UDP: $(problem_in "$work/nft")"
    ((LB_VERIFY_SECONDS > 0)) || return 0
    for word in "${services[@]}"; do
        read -r protocol port _ <<<"$word"
        if [[ $protocol == udp ]] && ! grep -Eqs "^exposure [^ ]+ udp $port " "$LB_STATE_FILE" &&
            is_bound "$port"; then
            fail "UDP port $port is in use by another program on the load balancer"
        fi
    done
}

set_udp() {
    [[ -e $work/rules ]] || return 0
    {
        printf 'add table %s\ndelete table %s\n' "$TABLE" "$TABLE"
        # shellcheck disable=SC2086 # family and name
        nft list table $TABLE 2>/dev/null || true
    } >"$work/previous-rules"
    undo=1
    apply_rules
    if uses_udp; then ensure_follower; fi
}

# --- the package

# What a VM that has just booted goes through: the name server or the mirror cannot be
# reached yet, and a package tool runs by itself.
readonly PASSING='Could not get lock|by another process|Failed to fetch|Temporary failure|Failed to download|Cannot download|Curl error|[Cc]ould not resolve'

# Runs a package tool.
package_tool() (
    # To these tools alone: others have no use for a URL that may hold a password.
    export http_proxy https_proxy DEBIAN_FRONTEND=noninteractive
    exec "$@" </dev/null >"$work/packages" 2>&1 3>&- 9>&-
)

apt_get() {
    local left=$((package_deadline - SECONDS))
    package_tool apt-get -q -y -o "DPkg::Lock::Timeout=$((left > 0 ? left : 0))" \
        -o Dpkg::Options::=--force-confold "$@"
}

# Waits before a package tool is called again, or fails for the reason $1 when there is no
# time left.
pause_packages() {
    ((SECONDS < package_deadline)) || fail "$1"
    sleep "$LB_PACKAGE_PAUSE"
}

is_passing() {
    grep -Eq "$PASSING" "$work/packages"
}

# Without a list of the mirror's packages apt says of each one that there is none: so what
# kept apt from fetching the lists comes first. That may be a source that nobody needs.
apt_install() {
    local lists problem
    while true; do
        lists=""
        apt_get update -o APT::Update::Error-Mode=any ||
            lists="failed for $LB_PACKAGE_SECONDS s: $(problem_in "$work/packages")"
        if apt_get install --no-install-recommends "$@"; then return; fi
        problem=$(problem_in "$work/packages")
        if [[ -n $lists ]]; then
            pause_packages "apt-get update $lists"
        elif is_passing; then
            pause_packages "apt-get install failed for $LB_PACKAGE_SECONDS s: $problem"
        else
            fail "apt-get failed: $problem"
        fi
    done
}

# $1 is the tool; it is repeated while its failure may pass.
package_tool_until_done() {
    until package_tool "$@"; do
        is_passing || fail "$1 failed: $(problem_in "$work/packages")"
        pause_packages "$1 failed for $LB_PACKAGE_SECONDS s: $(problem_in "$work/packages")"
    done
}

# cloud-init writes apt's list of sources, and may install packages of its own.
begin_packages() {
    package_deadline=$((SECONDS + LB_PACKAGE_SECONDS))
    if command -v cloud-init >/dev/null; then
        timeout "$LB_PACKAGE_SECONDS" cloud-init status --wait </dev/null >"$work/cloud-init" 2>&1 3>&- 9>&- ||
            true # it may have failed at something else
    fi
}

# Where an installation was cut off, dpkg has put the program into place and not yet made
# its user and its service.
is_installed() {
    command -v "$LB_HAPROXY" >/dev/null || return
    case $(dpkg-query -W -f '${db:Status-Status}' haproxy 2>/dev/null || true) in
        half-installed | unpacked | half-configured) return 1 ;;
    esac
}

ensure_package() {
    if is_installed; then return; fi
    begin_packages
    if is_installed; then return; fi
    if command -v apt-get >/dev/null; then
        package_tool_until_done dpkg --force-confold --configure -a
        if is_installed; then return; fi
        apt_install haproxy
    elif command -v dnf >/dev/null; then
        package_tool_until_done dnf -q -y install haproxy
    else
        fail "haproxy is not installed, and neither apt-get nor dnf is there to install it"
    fi
    is_installed || fail "$LB_HAPROXY is still not there after the installation"
}

ensure_udp_packages() {
    if { command -v nft && command -v conntrack; } >/dev/null; then return; fi
    begin_packages
    if command -v apt-get >/dev/null; then
        apt_install nftables conntrack
    elif command -v dnf >/dev/null; then
        package_tool_until_done dnf -q -y install nftables conntrack-tools
    fi
    if ! { command -v nft && command -v conntrack; } >/dev/null; then
        fail "UDP needs the programs nft and conntrack; install the packages nftables and conntrack"
    fi
}

# SELinux of the RHEL family lets HAProxy use only a few ports otherwise.
allow_any_port() {
    if command -v selinuxenabled >/dev/null && selinuxenabled; then
        [[ $(getsebool haproxy_connect_any) == *on ]] || setsebool -P haproxy_connect_any on
    fi
}

# Puts the URL that is meant by the option $1 with the value $2 into the global URL. It
# may hold a password, so no message shows it.
read_url() {
    URL=$2
    [[ $URL != - ]] || read -r URL || [[ -n $URL ]] ||
        fail "the URL of $1 was not given on standard input"
    [[ $URL =~ ^https?://[^[:space:]]+$ ]] ||
        fail "the URL of $1 does not begin with http:// or https://"
}

use_proxies() {
    local http=$1 https=${2:-$1}
    [[ -z $http ]] || http_proxy=$http
    [[ -z $https ]] || https_proxy=$https
}

# --- the verbs

install() {
    local port=6443 http_url="" https_url=""
    local -A wanted_planes=() wanted_workers=()
    while (($#)); do
        (($# > 1)) || fail "$1 needs a value"
        case $1 in
            --api-port) need_port "$1" "$2"; port=$2 ;;
            --control-plane)
                parse_control_plane "$2"
                [[ -z ${wanted_planes[$NAME]-} ]] || fail "control-plane $NAME is given twice"
                wanted_planes[$NAME]="$ADDRESS $PORT" ;;
            --worker)
                parse_worker "$2"
                [[ -z ${wanted_workers[$NAME]-} ]] || fail "worker $NAME is given twice"
                wanted_workers[$NAME]=$ADDRESS ;;
            --http-proxy) read_url "$1" "$2"; http_url=$URL ;;
            --https-proxy) read_url "$1" "$2"; https_url=$URL ;;
            *) fail "install does not know '$1'" ;;
        esac
        shift 2
    done
    ((${#wanted_planes[@]})) || fail "install needs at least one --control-plane"
    use_proxies "$http_url" "$https_url"
    open_state
    api_port=$port control_planes=() workers=()
    local name
    for name in "${!wanted_planes[@]}"; do control_planes[$name]=${wanted_planes[$name]}; done
    for name in "${!wanted_workers[@]}"; do claim_worker "$name" "${wanted_workers[$name]}"; done
    check_ports
    ensure_package
    allow_any_port
    commit
}

add_worker() {
    (($#)) || fail "add-worker needs NAME=ADDRESS"
    local value
    for value; do parse_worker "$value"; done
    open_installed_state
    for value; do
        parse_worker "$value"
        claim_worker "$NAME" "$ADDRESS"
    done
    commit
}

remove_worker() {
    (($#)) || fail "remove-worker needs NAME"
    local name
    for name; do need_name worker "$name"; done
    open_installed_state
    for name; do unset "workers[$name]"; done
    commit
}

# Sets the globals of one exposed service to what holds where nothing is given.
begin_service() {
    need_name service "$1"
    [[ -z ${wanted_services[$1]-} ]] || fail "service $1 is given twice"
    NAME=$1 PORT="" node_port="" protocol=tcp check="" sources="" proxy=-
}

end_service() {
    [[ -n $NAME ]] || return 0
    [[ -n $PORT && -n $node_port ]] || fail "expose needs --port and --node-port"
    if [[ $protocol == udp ]]; then
        [[ $proxy == - ]] || fail "service $NAME: the PROXY protocol is for TCP only"
        check=${check:-10250}
    fi
    wanted_services[$NAME]="$protocol $PORT $node_port ${check:-$node_port} ${sources:--} $proxy"
}

expose() {
    (($#)) || fail "expose needs NAME"
    local NAME="" PORT node_port protocol check sources proxy name http_url="" https_url=""
    local -a gone=()
    local -A wanted_services=()
    while (($#)); do
        if [[ $1 != --* ]]; then
            end_service
            begin_service "$1"
            shift
            continue
        fi
        (($# > 1)) || fail "$1 needs a value"
        case $1/$NAME in
            --unexpose/*) need_name service "$2"; gone+=("$2") ;;
            --http-proxy/*) read_url "$1" "$2"; http_url=$URL ;;
            --https-proxy/*) read_url "$1" "$2"; https_url=$URL ;;
            */) fail "expose needs NAME before '$1'" ;;
            --port/*) need_port "$1" "$2"; PORT=$2 ;;
            --node-port/*) need_port "$1" "$2"; node_port=$2 ;;
            --check-port/*) need_port "$1" "$2"; check=$2 ;;
            --health-port/*) need_port "$1" "$2"; check=http:$2 ;;
            --source/*)
                is_cidr "${2,,}" || fail "service $NAME: --source '$2' is not ADDRESS/PREFIX"
                sources+="${sources:+,}${2,,}" ;;
            --proxy-protocol/*) [[ $2 == yes ]] || fail "--proxy-protocol can be 'yes' only"; proxy=proxy ;;
            --protocol/*) [[ $2 == tcp || $2 == udp ]] ||
                fail "service $NAME cannot be exposed over '$2', but over tcp or udp"
                protocol=$2 ;;
            *) fail "expose does not know '$1'" ;;
        esac
        shift 2
    done
    end_service
    use_proxies "$http_url" "$https_url"
    open_installed_state
    for name in "${gone[@]}"; do unset "services[$name]"; done
    for name in "${!wanted_services[@]}"; do services[$name]=${wanted_services[$name]}; done
    commit
}

unexpose() {
    (($#)) || fail "unexpose needs NAME"
    local name
    for name; do need_name service "$name"; done
    open_installed_state
    for name; do unset "services[$name]"; done
    commit
}

# --- status

declare -A server_states=() # "backend/server" -> state

read_server_states() {
    local -a field
    while IFS=, read -ra field; do
        if ((${#field[@]} > 17)); then server_states[${field[0]}/${field[1]}]="\"${field[17]}\""; fi
    done < <(ask 'show stat')
}

# Prints one JSON array: "$1" is the command that prints the object for each name.
print_array() {
    local print=$1 name names separator=""
    shift
    names=$(sorted "$@")
    printf '['
    for name in $names; do
        printf '%s' "$separator"
        "$print" "$name"
        separator=,
    done
    printf ']'
}

print_control_plane_status() {
    local address port
    read -r address port <<<"${control_planes[$1]}"
    printf '{"name":"%s","address":"%s","port":%s,"state":%s}' "$1" "$address" "$port" \
        "${server_states[kubernetes-api/$1]:-null}"
}

print_worker_status() {
    printf '{"name":"%s","address":"%s"}' "$1" "${workers[$1]}"
}

print_service_status() {
    local exposed=$1 protocol port node_port check sources proxy health_port=null from=""
    read -r protocol port node_port check sources proxy <<<"${services[$1]}"
    if [[ $check == http:* ]]; then health_port=${check#http:} check=null; fi
    if [[ $sources != - ]]; then from="\"${sources//,/\",\"}\""; fi
    if [[ $proxy == proxy ]]; then proxy=true; else proxy=false; fi
    printf '{"name":"%s","protocol":"%s","port":%s,"node_port":%s,"check_port":%s,' \
        "$1" "$protocol" "$port" "$node_port" "$check"
    printf '"health_port":%s,"sources":[%s],"proxy_protocol":%s,"servers":' \
        "$health_port" "$from" "$proxy"
    print_array print_server_status "${!workers[@]}"
    printf '}'
}

print_server_status() {
    printf '{"name":"%s","state":%s}' "$1" "${server_states[service-$exposed/$1]:-null}"
}

print_udp_status() {
    local unit active=false enabled=false
    unit=$(basename "$LB_UDP_UNIT" .service)
    if systemd is-active --quiet "$unit"; then active=true; fi
    if systemd is-enabled --quiet "$unit"; then enabled=true; fi
    printf '"udp":{"active":%s,"enabled":%s},' "$active" "$enabled"
}

status() {
    (($# == 0)) || fail "status takes no argument"
    local version=null active=false enabled=false current=false
    load_state
    if command -v "$LB_HAPROXY" >/dev/null; then
        version=$("$LB_HAPROXY" -v | awk 'NR == 1 { print "\"" $3 "\"" }')
    fi
    if service is-active --quiet; then active=true; fi
    if service is-enabled --quiet; then enabled=true; fi
    if [[ -n $api_port && $(running_digest) == "$(digest)" ]]; then current=true; fi
    read_server_states
    printf '{"format":1,"haproxy":{"version":%s,"active":%s,"enabled":%s,"current":%s},' \
        "$version" "$active" "$enabled" "$current"
    if uses_udp; then print_udp_status; fi
    printf '"api_port":%s,"control_planes":' "${api_port:-null}"
    print_array print_control_plane_status "${!control_planes[@]}"
    printf ',"workers":'
    print_array print_worker_status "${!workers[@]}"
    printf ',"services":'
    print_array print_service_status "${!services[@]}"
    printf '}\n'
}

usage() {
    awk 'NR < 3 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "${BASH_SOURCE[0]}"
}

main() {
    local verb=${1-}
    if [[ $verb == -h || $verb == --help ]]; then
        usage
        return
    fi
    begin
    (($#)) || fail "no verb is given; see --help"
    shift
    case $verb in
        install) install "$@" ;;
        add-worker) add_worker "$@" ;;
        remove-worker) remove_worker "$@" ;;
        expose) expose "$@" ;;
        unexpose) unexpose "$@" ;;
        forward) forward "$@" ;;
        status) status "$@" ;;
        *) fail "the verb '$verb' is not known; see --help" ;;
    esac
}

main "$@"
