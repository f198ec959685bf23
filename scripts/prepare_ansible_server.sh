#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prepares an Ansible server: one release of kubespray and the Ansible that it requires.
#
# Usage: prepare_ansible_server.sh --release TAG [OPTION ...]
#
#   --release TAG        the release of kubespray, v2.24.0 or newer, such as v2.31.0.
#                        Requests can use those that the driver knows; of another one,
#                        "tacker-k8s-mgmt preflight" reports which those are
#   --root PATH          for ansible.kubespray_root_path; default: /opt/kubespray. It is
#                        a link to the checkout, which is beside it: PATH-2.31.0
#   --venv PATH          for ansible.venv_path; default: /opt/kubespray-venv. It is a
#                        link to the virtual environment beside it: PATH-2.31.0
#   --user NAME          owner of both, and user of the playbooks; default: ansible.
#                        The user is made if there is none, without a password
#   --no-switch          leave links alone that are there already, whatever they lead to
#   --git-url URL        clone from here; default: kubespray's place on GitHub
#   --archive FILE       unpack this .tar.gz of the release in place of cloning
#   --index-url URL      the index of Python packages; default: pip's own. Give a URL with
#                        a password as PIP_INDEX_URL in the environment
#   --wheels DIR         take Python packages from this directory and from nowhere else
#   --python PROGRAM     make the virtual environment with this Python
#   --mitogen            install mitogen, too, with which playbook runs take less time
#   --check              change nothing and say what is missing; exit code 1 if anything
#   --dry-run            change nothing and say what would be done
#
# It installs what is absent: ssh, sshpass, git (to clone) and Python with venv, from the
# package sources of Debian 12 and 13, Ubuntu 22.04 and 24.04 or the RHEL 9 family; that
# takes root, as does another --user than the caller. The Ansible is that of the
# checkout's requirements.txt, and must be within the limits of the checkout's
# playbooks/ansible_version.yml. Proxies are taken from the environment (https_proxy).
#
# A second call changes nothing. The last line of the output is "changed" or "unchanged".
# Releases are beside each other; a link is replaced in one step, and only when what it
# will lead to is complete. A directory that this script has not made is never replaced.
# On any failure the exit code is 1 and standard error is one line. These environment
# variables change where and how; tests use them:
#
#   PREPARE_LOCK_SECONDS  how long to wait for another call to end
#   PREPARE_PACKAGE_SECONDS  how long to wait for the mirror and other package tools,
#   PREPARE_PACKAGE_PAUSE    and the seconds between two tries

set -Eeuo pipefail
umask 022
export LC_ALL=C.UTF-8 PATH="$PATH:/usr/sbin:/sbin"
unset PYTHONHOME PYTHONPATH VIRTUAL_ENV

: "${PREPARE_LOCK_SECONDS:=1800}"
: "${PREPARE_PACKAGE_SECONDS:=300}"
: "${PREPARE_PACKAGE_PAUSE:=10}"

readonly RELEASE_TAG='^v2\.(2[4-9]|[3-9][0-9])\.(0|[1-9][0-9]*)$'
readonly MITOGEN=0.3.54 # known to work with ansible-core 2.15 to 2.18
readonly MITOGEN_CORES='^2\.1[5-8]\.'
readonly RECORD=.kubespray-requirements.txt # in a virtual environment; empty: unfinished

release=""
root=/opt/kubespray
venv=/opt/kubespray-venv
user=ansible
switch=1
mitogen=0
git_url=https://github.com/kubernetes-sigs/kubespray
archive=""
index_url=""
wheels=""
python=""                # as found, or as given
mode=change              # or check, dry-run
changes=0

work=""                  # this call's scratch directory
making=""                # a directory beside the checkout, until it is complete

# --- failing: one line on standard error, whatever the tools below have printed

begin() {
    work=$(mktemp -d)
    exec 3>&2 2>"$work/stderr"
    trap on_exit EXIT
    trap 'unexpected "$LINENO" "$BASH_COMMAND"' ERR
    trap 'fail "ended by a signal; call it again to go on"' HUP INT TERM
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
    [[ -z $making ]] || rm -rf "$making"
    if ((rc != 0)) && [[ -e $work/reason ]]; then
        # A tool may quote the URL of a proxy or of an index.
        reason=$(sed -E 's#(https?://)[^/@[:space:]]+@#\1***@#g' "$work/reason")
        reason=${reason//[[:cntrl:]]/ }
        printf '%s\n' "${reason:0:700}" >&3
    fi
    rm -rf "$work"
    exit "$rc"
}

# The line of a tool's output that says what is wrong.
problem_in() {
    awk '/^E: |^fatal: |[Ee]rror:|ERROR/ { found = $0; exit }
         NF { last = $0 }
         END { print found ? found : last }' "$1"
}

# --- what was given

need_path() {
    [[ $2 =~ ^(/[A-Za-z0-9_+@-][A-Za-z0-9._+@-]*)+$ ]] ||
        fail "$1 '$2' is not an absolute path of letters, digits and '._+@-'"
}

parse() {
    while (($#)); do
        case $1 in
            --check | --dry-run)
                [[ $mode == change ]] || fail "give one of --check and --dry-run"
                mode=${1#--}
                shift
                continue ;;
            --no-switch)
                switch=0
                shift
                continue ;;
            --mitogen)
                mitogen=1
                shift
                continue ;;
        esac
        [[ -n ${2-} ]] || fail "$1 is no option, or needs a value"
        case $1 in
            --release) release=$2 ;;
            --root) root=$2 ;;
            --venv) venv=$2 ;;
            --user) user=$2 ;;
            --git-url) git_url=$2 ;;
            --archive) archive=$2 ;;
            --index-url) index_url=$2 ;;
            --wheels) wheels=$2 ;;
            --python) python=$2 ;;
            *) fail "'$1' is no option (they are listed at the head of this script)" ;;
        esac
        shift 2
    done
    [[ -n $release ]] || fail "give the release of kubespray, such as --release v2.31.0"
    [[ $release =~ $RELEASE_TAG ]] ||
        fail "--release '$release' is not the tag of a release of kubespray from v2.24.0 on, such as v2.31.0"
    root=${root%/} venv=${venv%/}
    need_path --root "$root"
    need_path --venv "$venv"
    [[ $root != "$venv" ]] || fail "--root and --venv must be different paths"
    [[ $user =~ ^[a-z_][a-z0-9_.-]*$ ]] || fail "--user '$user' is not the name of a user"
    [[ -z $archive || -f $archive && -r $archive ]] || fail "--archive '$archive' is not a file that can be read"
    [[ -z $wheels || -d $wheels ]] || fail "--wheels '$wheels' is not a directory"
    [[ -z $wheels || -z $index_url ]] || fail "give one of --wheels and --index-url"
    wheels=${wheels:+$(realpath "$wheels")}
    [[ $python != */* ]] || python=$(realpath -s "$python")
    readonly checkout="$root-${release#v}" environment="$venv-${release#v}"
}

need_root() {
    ((EUID == 0)) || fail "$1 takes root: run this script as root or with sudo"
}

# --- one thing that must be so: $1 looks and sets what is lacking and what to do, $2 does

want() {
    if "$1"; then return; fi
    changes=1
    case $mode in
        check) echo "missing: $lacking" ;;
        dry-run) echo "would $todo" ;;
        change)
            echo "$todo ..."
            "$2" ;;
    esac
}

# Runs a command as the owner of what it touches: root executes nothing that the user
# could have put there.
as_user() {
    if ((EUID == 0)) && [[ $user != root ]]; then
        local home
        home=$(getent passwd "$user" | cut -d: -f6)
        (cd / && exec runuser -u "$user" -- env HOME="$home" "$@" 3>&- 9>&-)
    else
        "$@" 3>&- 9>&-
    fi
}

# --- packages of the distribution

# What may pass: on a server that has just booted, the name server or the mirror cannot be
# reached yet, and a package tool runs by itself.
readonly PASSING='Could not get lock|by another process|Failed to fetch|Temporary failure|Failed to download|Cannot download|Curl error|[Cc]ould not resolve'

package_tool() {
    DEBIAN_FRONTEND=noninteractive "$@" </dev/null >"$work/packages" 2>&1 3>&- 9>&-
}

apt_get() {
    local left=$((package_deadline - SECONDS))
    package_tool apt-get -q -y -o "DPkg::Lock::Timeout=$((left > 0 ? left : 0))" \
        -o Dpkg::Options::=--force-confold "$@"
}

# Waits before a package tool is called again, or fails for the reason $1 when there is no
# time left.
pause_packages() {
    ((SECONDS < package_deadline)) || fail "$1"
    sleep "$PREPARE_PACKAGE_PAUSE"
}

# Without a list of the mirror's packages apt says of each one that there is none: so what
# kept apt from fetching the lists comes first. That may be a source that nobody needs.
apt_install() {
    local lists problem
    while true; do
        lists=""
        apt_get update -o APT::Update::Error-Mode=any ||
            lists="failed for $PREPARE_PACKAGE_SECONDS s: $(problem_in "$work/packages")"
        if apt_get install --no-install-recommends "$@"; then return; fi
        problem=$(problem_in "$work/packages")
        if [[ -n $lists ]]; then
            pause_packages "apt-get update $lists"
        elif grep -Eq "$PASSING" "$work/packages"; then
            pause_packages "apt-get install failed for $PREPARE_PACKAGE_SECONDS s: $problem"
        else
            fail "apt-get failed: $problem"
        fi
    done
}

dnf_install() {
    until package_tool dnf -q -y install "$@"; do
        grep -Eq "$PASSING" "$work/packages" || fail "dnf failed: $(problem_in "$work/packages")"
        pause_packages "dnf failed for $PREPARE_PACKAGE_SECONDS s: $(problem_in "$work/packages")"
    done
}

is_debian() {
    command -v apt-get >/dev/null
}

is_red_hat() {
    command -v dnf >/dev/null
}

absent_packages=()

is_to_clone() {
    [[ -z $archive ]] && ! has_checkout
}

have_programs() {
    local program
    local -A package=([ssh]=openssh-client [sshpass]=sshpass [git]=git)
    absent_packages=()
    is_debian || package[ssh]=openssh-clients
    for program in ssh sshpass git; do
        [[ $program != git ]] || is_to_clone || continue
        command -v "$program" >/dev/null || absent_packages+=("${package[$program]}")
    done
    ((${#absent_packages[@]})) || return 0
    lacking="the package(s) ${absent_packages[*]}"
    todo="install the package(s) ${absent_packages[*]}"
    return 1
}

install_programs() {
    need_root "installing packages"
    package_deadline=$((SECONDS + PREPARE_PACKAGE_SECONDS))
    if is_debian; then
        apt_install ca-certificates "${absent_packages[@]}"
    elif is_red_hat; then
        dnf_install "${absent_packages[@]}"
    else
        fail "install ${absent_packages[*]}: neither apt-get nor dnf is there to do it"
    fi
    hash -r
    have_programs || fail "$lacking: still absent after the installation"
}

# --- the user

have_user() {
    lacking="the user $user"
    todo="make the user $user"
    id -u "$user" >/dev/null 2>&1
}

make_user() {
    need_root "making the user $user"
    useradd --create-home --shell /bin/bash "$user"
}

# --- the checkout

version_of() {
    sed -nE "s/^version: *[\"']?([0-9][0-9A-Za-z.]*).*/\1/p" "$1/galaxy.yml" 2>/dev/null | head -n 1 || true
}

has_checkout() {
    [[ $(version_of "$checkout") == "${release#v}" ]]
}

have_checkout() {
    lacking="kubespray $release in $checkout"
    todo="clone kubespray $release into $checkout"
    [[ -z $archive ]] || todo="unpack kubespray $release into $checkout"
    has_checkout && return
    [[ ! -e $checkout && ! -L $checkout ]] ||
        fail "$checkout is there and is not kubespray $release: move it away, or give another --root"
    return 1
}

make_checkout() {
    local found
    rm -rf "$checkout".new.* # of a call that was killed
    making=$(mktemp -d "$checkout.new.XXXXXX")
    ((EUID != 0)) || chown "$user:" "$making"
    if [[ -n $archive ]]; then unpack "$making/checkout"; else clone "$making/checkout"; fi
    found=$(version_of "$making/checkout")
    [[ $found == "${release#v}" ]] ||
        fail "what was fetched is kubespray ${found:-of no known release} and not $release: give the right --archive, --git-url or --release"
    mv -T "$making/checkout" "$checkout"
    rm -rf "$making"
    making=""
}

clone() {
    as_user env GIT_TERMINAL_PROMPT=0 git -c advice.detachedHead=false clone -q --depth 1 \
        --branch "$release" -- "$git_url" "$1" </dev/null >"$work/git" 2>&1 ||
        fail "git could not clone $release from $git_url: $(problem_in "$work/git"); is it reachable from here (https_proxy)? Without a network, give --archive"
}

# GitHub's archives have one directory around everything.
unpack() {
    as_user mkdir "$1"
    as_user tar -xz --strip-components=1 --no-same-owner -C "$1" <"$archive" >"$work/tar" 2>&1 ||
        fail "tar could not unpack $archive: $(problem_in "$work/tar"); give the .tar.gz of a release"
}

# --- the limits that the checkout states

# Is version $1 at least $2?
at_least() {
    printf '%s\n%s\n' "$2" "$1" | sort -CV
}

read_limits() {
    local file=$checkout/playbooks/ansible_version.yml
    least=$(limit minimal "$file")
    below=$(limit maximal "$file")
    [[ -n $least && -n $below ]] ||
        fail "$file does not state its Ansible versions: move $checkout away and run this script again"
    # From "ansible-core support matrix" of docs.ansible.com: Python of the control node.
    case $least in
        2.15.*) lowest=9 highest=11 ;;
        2.16.* | 2.17.*) lowest=10 highest=12 ;;
        2.18.* | 2.19.*) lowest=11 highest=13 ;;
        2.20.* | 2.21.*) lowest=12 highest=14 ;;
        *) fail "no Python is known here for ansible-core $least: get a newer version of this script" ;;
    esac
}

limit() {
    sed -nE "s/^ *$1_ansible_version: *[\"']?([0-9][0-9A-Za-z.]*).*/\1/p" "$2" 2>/dev/null | head -n 1 || true
}

# --- Python

# The minor version of a Python that can make virtual environments; nothing of others.
minor_of() {
    (cd / && "$1" -c 'import ensurepip, venv, sys
assert sys.version_info[0] == 3
print(sys.version_info[1])') 2>/dev/null || true
}

is_usable() {
    local minor
    minor=$(minor_of "$1")
    [[ -n $minor ]] && ((lowest <= minor && minor <= highest))
}

wanted_python() {
    printf '%s' "Python 3.$lowest to 3.$highest with venv, which ansible-core $least wants"
}

have_python() {
    local minor
    lacking=$(wanted_python)
    todo="install $lacking"
    # What the virtual environment was made with is of no matter once it is there.
    has_environment && return
    if [[ -n $python ]]; then
        is_usable "$python" || fail "--python $python is not $lacking"
        return
    fi
    for minor in "" $(seq -f .%g "$highest" -1 "$lowest"); do
        if is_usable "python3$minor"; then
            python=python3$minor
            return
        fi
    done
    return 1
}

# The distribution's own Python before others; fails if it has none.
install_listed_python() {
    local minor own
    own=$( (cd / && python3 -c 'import sys; print(sys.version_info[1])') 2>/dev/null || true)
    for minor in $own $(seq "$highest" -1 "$lowest"); do
        ((lowest <= minor && minor <= highest)) || continue
        if is_debian && apt-cache show "python3.$minor-venv" >/dev/null 2>&1; then
            apt_install "python3.$minor-venv"
        elif is_red_hat && dnf -q list "python3.$minor" >/dev/null 2>&1; then
            dnf_install "python3.$minor"
        else
            continue
        fi
        hash -r
        if have_python; then return; fi
    done
    return 1
}

install_python() {
    local lists
    need_root "installing packages"
    package_deadline=$((SECONDS + PREPARE_PACKAGE_SECONDS))
    while true; do
        lists=""
        if is_debian; then
            apt_get update -o APT::Update::Error-Mode=any ||
                lists="failed for $PREPARE_PACKAGE_SECONDS s: $(problem_in "$work/packages")"
        fi
        if install_listed_python; then return; fi
        [[ -n $lists ]] ||
            fail "this distribution has no $(wanted_python): name one with --python, or choose another --release"
        pause_packages "apt-get update $lists"
    done
}

# --- the virtual environment

ansible_version() {
    as_user "$environment/bin/ansible-playbook" --version </dev/null 2>"$work/ansible" |
        sed -nE '1s/^ansible-playbook \[core ([0-9][0-9A-Za-z.]*)\].*/\1/p' || true
}

has_environment() {
    local found
    cmp -s "$environment/$RECORD" "$checkout/requirements.txt" || return 1
    found=$(ansible_version)
    [[ -n $found ]] && at_least "$found" "$least" && ! at_least "$found" "$below"
}

have_environment() {
    lacking="ansible-core >=$least,<$below in $environment"
    todo="install ansible-core >=$least,<$below and what else kubespray $release wants into $environment"
    has_environment && return
    [[ ! -e $environment || -e $environment/$RECORD ]] ||
        fail "$environment is there and this script has not made it: move it away, or give another --venv"
    return 1
}

# Whether packages can be added: playbooks may be running from it.
is_whole() {
    [[ -s $environment/$RECORD ]] && as_user "$environment/bin/python" -m pip --version >/dev/null 2>&1
}

make_venv() {
    as_user truncate -s 0 "$environment/$RECORD"
    as_user find "$environment" -mindepth 1 -maxdepth 1 ! -name "$RECORD" -exec rm -rf {} +
    as_user "$python" -m venv "$environment" </dev/null >"$work/venv" 2>&1 ||
        fail "$python could not make $environment as $user: $(problem_in "$work/venv")"
}

# Scripts in a virtual environment name its path, so it is made in place. It is known as
# unfinished by an empty record.
make_environment() {
    local found
    if [[ ! -e $environment ]]; then
        mkdir "$environment"
        ((EUID != 0)) || chown "$user:" "$environment"
    fi
    [[ -e $environment/$RECORD ]] || as_user touch "$environment/$RECORD"
    is_whole || make_venv
    pip_install "$checkout/requirements.txt" -r "$checkout/requirements.txt"
    found=$(ansible_version)
    [[ -n $found ]] || fail "$environment/bin/ansible-playbook does not run: $(problem_in "$work/ansible")"
    as_user cp "$checkout/requirements.txt" "$environment/$RECORD"
    has_environment || fail "ansible-core $found was installed, which is not >=$least,<$below: mend $checkout/requirements.txt"
}

# Installs what pip's arguments from $2 on say, which is $1.
pip_install() {
    local -a from=()
    if [[ -n $wheels ]]; then
        as_user test -r "$wheels" -a -x "$wheels" || fail "$user cannot read --wheels $wheels: let others read it"
        from=(--no-index --find-links "$wheels")
    elif [[ -n $index_url ]]; then
        # Not as an argument: all users of the server could read it.
        export PIP_INDEX_URL=$index_url
    fi
    as_user env PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 "$environment/bin/python" -m pip \
        install -q "${from[@]}" "${@:2}" </dev/null >"$work/pip" 2>&1 ||
        fail "pip could not install $1: $(problem_in "$work/pip"); is the index reachable from here (https_proxy, --index-url)? Without a network, give --wheels"
}

# --- mitogen

have_mitogen() {
    lacking="mitogen $MITOGEN in $environment"
    todo="install mitogen $MITOGEN into $environment"
    [[ -x $environment/bin/python ]] &&
        [[ $(as_user "$environment/bin/python" -c 'from importlib.metadata import version
print(version("mitogen"))' 2>/dev/null || true) == "$MITOGEN" ]]
}

install_mitogen() {
    local core
    core=$(ansible_version)
    [[ $core =~ $MITOGEN_CORES ]] ||
        fail "mitogen $MITOGEN is not known to work with ansible-core $core: leave out --mitogen"
    pip_install "mitogen $MITOGEN" "mitogen==$MITOGEN"
    have_mitogen || fail "$lacking: still absent after the installation"
}

# --- owner and links

have_owner() {
    local directory
    for directory in "$checkout" "$environment"; do
        lacking="the owner $user of $directory"
        todo="give $directory to $user"
        foreign=$directory
        [[ ! -e $directory || $(stat -c %U "$directory") == "$user" ]] || return 1
    done
}

give_to_user() {
    need_root "giving $foreign to $user"
    chown -hR "$user:" "$checkout" "$environment"
}

is_linked() {
    lacking="the link $1 to $2"
    todo="link $1 to $2"
    [[ $(readlink "$1" || true) == "${2##*/}" ]] || { ((switch == 0)) && [[ -L $1 ]]; }
}

have_root_link() { is_linked "$root" "$checkout"; }
have_venv_link() { is_linked "$venv" "$environment"; }

link() {
    local new="$1.new.$$"
    ln -s "${2##*/}" "$new"
    mv -fT "$new" "$1"
}

link_root() { link "$root" "$checkout"; }
link_venv() { link "$venv" "$environment"; }

# --- all of it

need_free_names() {
    local option path
    for option in root venv; do
        path=${!option}
        [[ -L $path || ! -e $path ]] ||
            fail "$path is there and is no link: move it away, or give another --$option"
    done
}

# Only one call at a time works below a directory.
prepare_parents() {
    local parent
    for parent in "$(dirname "$root")" "$(dirname "$venv")"; do
        mkdir -p "$parent" 2>/dev/null || true
        [[ -d $parent && -w $parent ]] ||
            fail "$parent cannot be written: run this script as root, or give another --root and --venv"
    done
    exec 9<"$(dirname "$root")"
    flock -w "$PREPARE_LOCK_SECONDS" 9 ||
        fail "another call of this script is still running after $PREPARE_LOCK_SECONDS s"
}

prepare() {
    need_free_names
    [[ $mode != change ]] || prepare_parents
    want have_programs install_programs
    want have_user make_user
    [[ $mode != change || $user == "$(id -un)" ]] || need_root "another --user than yourself"
    want have_checkout make_checkout
    if has_checkout; then
        read_limits
        want have_python install_python
        want have_environment make_environment
        ((mitogen == 0)) || want have_mitogen install_mitogen
    else
        # Its limits are not known without it.
        changes=1
        lacking="its Ansible in $environment"
        todo="install its Ansible into $environment"
        want false "" # only ever said: --check or --dry-run
    fi
    want have_owner give_to_user
    want have_root_link link_root
    want have_venv_link link_venv
}

tell() {
    case $mode/$changes in
        check/1) exit 1 ;;
        check/0) echo "nothing is missing" ;;
        dry-run/0) echo "nothing is to be done" ;;
        change/*)
            echo "ansible.kubespray_root_path: $checkout (or $root, which leads to $(readlink "$root"))"
            echo "ansible.venv_path: $environment (or $venv, which leads to $(readlink "$venv"))"
            if ((changes)); then echo changed; else echo unchanged; fi ;;
    esac
}

case ${1-} in
    -h | --help)
        sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit ;;
esac
begin
parse "$@"
prepare
tell
