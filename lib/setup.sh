#!/usr/bin/env bash
# Set the workbook up on this machine: system programs (apt), uv (into .tools), the Python environment (into .venv).
# Installs only what is missing and says so, one line each; called by `make run` and `make test`.
# `setup.sh browser` also installs Debian's chromium, in which the tests look at pages; they do without where it cannot.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin  # a user's own PATH may lack where sshd lives

say() { printf 'set-up: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }
have() { command -v "$1" >/dev/null 2>&1; }

# --- system programs

fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; }

# The system's own Python first; others on PATH only if that one is too old or too new.
find_python() {
    local candidate
    for candidate in /usr/bin/python3 python3 python3.13 python3.12 python3.11; do
        if have "$candidate" && fits "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# Debian packages for the programs and headers that are not there.
missing_packages() {
    have fio || echo fio
    have nbdkit || echo nbdkit
    [ -e /usr/include/nbdkit-plugin.h ] || echo nbdkit-plugin-dev
    have gcc || echo gcc
    [ -e /usr/include/stdio.h ] || echo libc6-dev
    have sshd || echo openssh-server
    compgen -G '/usr/lib*/libnss_wrapper.so' >/dev/null || compgen -G '/usr/lib/*/libnss_wrapper.so' >/dev/null ||
        echo libnss-wrapper
    have setsid && have flock || echo util-linux
    have python3 || echo python3
    missing_venv
}

missing_venv() {
    local python
    [ -x .tools/uv/bin/uv ] && return
    python=$(find_python) || return 0
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || echo "$(basename "$python")-venv"
}

# Debian's package; Ubuntu's is a stand-in for a snap, which cannot read the files it is to show.
missing_browser() {
    have chromium || have google-chrome || have google-chrome-stable && return
    grep -qx 'ID=debian' "${OS_RELEASE:-/etc/os-release}" 2>/dev/null && have apt-get || return 0
    [ "$(id -u)" -eq 0 ] || have sudo || return 0
    echo chromium
}

install_browser() {
    say "installing with apt, for the tests of pages: chromium"
    apt_install chromium || { as_root apt-get update -qq >"$log" 2>&1 && apt_install chromium; } ||
        say "apt could not install chromium, so no page will be checked in a browser; see $log"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$log" 2>&1
}

install_packages() {
    have apt-get || die "these packages are missing and there is no apt to install them with: $*"
    [ "$(id -u)" -eq 0 ] || have sudo ||
        die "these packages are missing: $*; install them as root (apt-get install $*), or get sudo"
    say "installing with apt: $*"
    case " $* " in *" openssh-server "*) say "note: apt also starts this machine's own SSH service" ;; esac
    # The lists of a fresh machine are empty, those of an old one out of date.
    apt_install "$@" || { as_root apt-get update -qq >"$log" 2>&1 && apt_install "$@"; } || {
        tail -n 5 "$log" >&2
        die "apt could not install $*; see $log"
    }
}

# --- Python

# The system's certificates, not those that uv brings: a company's proxy that looks into TLS is known to the system only.
# pip needs no telling: Debian's and Ubuntu's take the system's, and so does any pip from 24.2 on.
export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1}

# uv fetches and unpacks all the others, so it is one release, known by its hash; theirs are in uv.lock.
has_uv() {
    local release
    while read -r release _; do [[ $release != uv==* ]] || break; done <lib/uv.txt
    [[ "$(.tools/uv/bin/uv --version 2>/dev/null) " == "uv ${release#uv==} "* ]]
}

install_uv() {
    say "installing uv with pip into .tools"
    rm -rf .tools/uv
    "$1" -m venv .tools/uv
    .tools/uv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --require-hashes -r lib/uv.txt ||
        die "pip could not install the uv of lib/uv.txt; is the package registry within reach, and is it that uv?"
}

install_environment() {
    say "installing the locked Python packages into .venv, on $1"
    UV_PYTHON_DOWNLOADS=never UV_PYTHON_PREFERENCE=only-system UV_PROJECT_ENVIRONMENT=$root/.venv \
        .tools/uv/bin/uv sync --locked --quiet --python "$1" ||
        die "uv could not install the packages of uv.lock; see above (after a change of pyproject.toml: make lock)"
}

# What the environment was made from: a change of any of these makes it anew. A moved clone, too.
fingerprint() { { echo "$root"; cat uv.lock pyproject.toml lib/setup.sh lib/uv.txt; } | sha256sum; }

main() {
    local packages python
    mkdir -p .tools
    log=$root/.tools/apt.log
    mapfile -t packages < <(missing_packages)
    [ ${#packages[@]} -eq 0 ] || install_packages "${packages[@]}"
    [ "${1:-}" != browser ] || [ -z "$(missing_browser)" ] || install_browser
    exec 9>.tools/lock
    flock 9
    if [ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null &&
        [ "$(fingerprint)" = "$(cat .tools/stamp 2>/dev/null)" ]; then
        return
    fi
    python=$(find_python) ||
        die "Python 3.11, 3.12 or 3.13 is needed, and this machine has $(python3 --version); install one of them"
    packages=()
    mapfile -t packages < <(missing_venv)
    [ ${#packages[@]} -eq 0 ] || install_packages "${packages[@]}"
    has_uv || install_uv "$python"
    install_environment "$python"
    fingerprint >.tools/stamp
}

main "$@"
