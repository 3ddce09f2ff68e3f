#!/usr/bin/env bash
# Try `make run` and `make test` from a clean clone of HEAD in minimal Debian systems, and say how long each took (as root).
#
#   ONLY=13         one of the systems: 12 or 13 (both)
#   GOALS="lint"    other targets of the Makefile ("run test")
#   MIRROR=URL      where Debian's packages come from (this machine's mirror, or else debootstrap's)
#
# What this machine uses to reach its registries is handed on: name server, mirror and settings of apt, proxies, settings
# of pip, uv and npm, and the certificates that it trusts. Nothing stays: the systems live in a folder of their own, and whatever
# runs or is mounted there lives in namespaces that end with this script, also on Ctrl-C.
#
# Exits with 1 when a target failed, and with 3 when none failed but a system could not be made on this machine.
set -euo pipefail
set -m  # what runs in the background keeps its own Ctrl-C, which some tests send
cd "$(dirname "${BASH_SOURCE[0]}")/.."

declare -A SUITES=([12]=bookworm [13]=trixie)
ONLY=${ONLY:-12 13}
GOALS=${GOALS:-run test}
NOT_TRIED=3
HANDED_ON='https?_proxy|no_proxy|all_proxy|HTTPS?_PROXY|NO_PROXY|ALL_PROXY|TERM'
HANDED_ON+='|(PIP|UV)_[A-Z_]*INDEX[A-Z_]*|PIP_TRUSTED_HOST|UV_INSECURE_HOST|PIP_DEFAULT_TIMEOUT|UV_HTTP_TIMEOUT|DISKBOOK_TESTS_SECOND_TRY'
NPM_HANDED_ON='registry replace-registry-host proxy https-proxy noproxy strict-ssl fetch-retries fetch-timeout'

say() { printf 'fresh: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }
cannot() { say "Debian $ONLY is not tried: $*"; exit "$NOT_TRIED"; }

# --- one system

# The mirror of this machine, if it is a Debian; any of Debian's mirrors has all suites.
# shellcheck disable=SC2016
mirror() {
    [ -n "${MIRROR:-}" ] && echo "$MIRROR" && return
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null |
        sort -u | head -n 1
}

make_system() {  # root, suite
    local from
    from=$(mirror)
    logged awaited apart debootstrap --variant=minbase "$2" "$1" ${from:+"$from"} || return
    printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"  # a package's service does not start in a chroot
    chmod +x "$1/usr/sbin/policy-rc.d"
    hand_on "$1"
    git clone --quiet --no-hardlinks . "$1/root/diskbook" &&
        logged inside "$1" 'apt-get update -qq && apt-get install -y -qq --no-install-recommends make'
}

logged() {  # command...
    "$@" >"$folder/log" 2>&1 || { tail -n 5 "$folder/log" >&2; return 1; }
}

# How this machine reaches its registries.
hand_on() {  # root
    local file
    apt-config dump | grep -E '^Acquire::(https?|Check-|Retries|ForceIPv)' >"$1/etc/apt/apt.conf.d/90handed-on" || true
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/uv/uv.toml; do
        [ ! -e "$file" ] || { mkdir -p "$1$(dirname "$file")" && cp -L "$file" "$1$file"; }
    done
    hand_on_npm >"$1/root/.npmrc"
    # The certificates become the system's own: its package ca-certificates takes in what it finds in this folder.
    [ ! -e "$1/etc/pip.conf" ] || sed -i '/^[[:space:]]*cert[[:space:]]*=/d' "$1/etc/pip.conf"
    mkdir -p "$1/usr/local/share/ca-certificates"
    split_certificates /etc/ssl/certs/ca-certificates.crt "$1/usr/local/share/ca-certificates"
}

# By its settings, wherever they stand; npm there has other places for them, and a user's file is read by all.
hand_on_npm() {
    local key value
    command -v npm >/dev/null || return 0
    for key in $NPM_HANDED_ON; do
        value=$(npm config get "$key" 2>/dev/null) || continue
        case $value in '' | null | undefined) ;; *) printf '%s=%s\n' "$key" "$value" ;; esac
    done
}

split_certificates() {  # bundle, folder
    [ ! -e "$1" ] || awk -v folder="$2" '
        /-----BEGIN CERTIFICATE-----/ { file = sprintf("%s/handed-on-%03d.crt", folder, ++count) }
        file { print >file }
        /-----END CERTIFICATE-----/ { close(file); file = "" }' "$1"
}

# --- in it

awaited() {  # command...
    local code=0
    "$@" </dev/null &
    child=$!
    wait "$child" || code=$?
    child=""
    return "$code"
}

# Become a command in namespaces of its own: its processes and mounts end with it.
apart() {  # command...
    exec unshare --mount --pid --fork --kill-child --mount-proc -- "$@"
}

inside() {  # root, command
    awaited enter "$@"
}

enter() {  # root, command
    local name
    for name in $(compgen -e); do [[ $name =~ ^($HANDED_ON)$ ]] || unset "$name"; done
    export HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    # shellcheck disable=SC2016
    apart bash -euc '
        mount --bind "$1" "$1"  # a root that is a mount, as on a machine: findmnt tells what a file lies on
        mount -t proc proc "$1/proc"
        mount --rbind /sys "$1/sys"
        mount --rbind /dev "$1/dev"
        mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
        chroot "$1" bash -c "$2"
        exit  # so bash stays: the first process of a namespace has to reap the others
    ' fresh "$1" "$2"
}

# --- all

timed() {  # what, command...
    local what=$1 begun=$SECONDS result=ok
    shift
    say "$what"
    "$@" || result=FAILED
    report+=("$(printf '%-26s %5d s  %s' "$what" $((SECONDS - begun)) "$result")")
    [ "$result" = ok ]
}

try() {  # number of the Debian
    local root=$folder/$1 goal
    if timed "Debian $1, made" make_system "$root" "${SUITES[$1]}"; then
        for goal in $GOALS; do
            timed "Debian $1, make $goal" inside "$root" "cd /root/diskbook && make --no-print-directory $goal" ||
                outcome=1
        done
    else
        say "Debian $1 is not tried: it could not be made"
        [ "$outcome" -ne 0 ] || outcome=$NOT_TRIED
    fi
    rm -rf --one-file-system "$root"
}

clean_up() {
    local code=$?
    trap '' INT TERM HUP
    [ -z "${child:-}" ] || { kill -KILL "$child" 2>/dev/null && wait "$child" 2>/dev/null; } || true
    rm -rf --one-file-system "$folder"
    [ ${#report[@]} -eq 0 ] || printf 'fresh: %s\n' "${report[@]}"
    exit "$code"
}

has_debootstrap() {
    command -v debootstrap >/dev/null && return
    say "installing with apt: debootstrap"
    apt install debootstrap || { apt update && apt install debootstrap; }
}

apt() { DEBIAN_FRONTEND=noninteractive apt-get -y -qq --no-install-recommends "$@" >/dev/null 2>&1; }

# In most containers one of these is not allowed, and says so.
# shellcheck disable=SC2016
may_enter() { (apart bash -ec 'mount -t tmpfs tmpfs "$1"; chroot / true' may_enter "$folder") 2>&1; }

main() {
    local number why
    for number in $ONLY; do [ -n "${SUITES[$number]:-}" ] || die "ONLY=$ONLY: known are 12 and 13"; done
    [ "$(id -u)" -eq 0 ] || cannot "making a system needs root"
    has_debootstrap || cannot "apt could not install debootstrap"
    outcome=0 report=() child=""
    folder=$(mktemp -d /var/tmp/diskbook-fresh.XXXXXX)
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    why=$(may_enter) || cannot "${why##*$'\n'}"
    [ -z "$(git status --porcelain)" ] || say "note: the clone is of HEAD, without what is not committed"
    for number in $ONLY; do try "$number"; done
    return "$outcome"
}

main
