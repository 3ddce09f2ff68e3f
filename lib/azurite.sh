#!/usr/bin/env bash
# Install what the tests of stores need besides the set-up: the extra `cluster`, node and npm (apt), and Azurite, as
# locked in lib/azurite, into .tools. Called by `make test` and `make faults`. Where it cannot, it says so, and what needs
# it is skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

# The system's certificates, as in lib/setup.sh: node knows those that it brings, and these.
certificates=/etc/ssl/certs/ca-certificates.crt
[ ! -e "$certificates" ] || export NODE_EXTRA_CA_CERTS=${NODE_EXTRA_CA_CERTS:-$certificates}

say() { printf 'set-up: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }
as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi; }
apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >.tools/apt.log 2>&1
}

install_node() {
    have node && have npm && return
    have apt-get && { [ "$(id -u)" -eq 0 ] || have sudo; } || return
    say "installing with apt, for the tests of stores: nodejs npm"
    apt_install nodejs npm || { as_root apt-get update -qq >.tools/apt.log 2>&1 && apt_install nodejs npm; }
}

# Each package by the hash of the lock, and none of their scripts is run.
install_azurite() {
    say "installing Azurite with npm into .tools"
    rm -rf .tools/azurite && mkdir -p .tools/azurite && cp lib/azurite/*.json .tools/azurite &&
        npm ci --prefix .tools/azurite --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error \
            --update-notifier=false >.tools/npm.log 2>&1
}

install_extra() {
    say "installing the extra 'cluster' into .venv"
    UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1} UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=$root/.venv \
        .tools/uv/bin/uv sync --locked --quiet --extra cluster --python .venv/bin/python
}

mkdir -p .tools
exec 9>.tools/lock
flock 9
.venv/bin/python -c 'import adlfs, distributed' 2>/dev/null || install_extra
stamp=$(cat lib/azurite/*.json | sha256sum)
[ "$stamp" != "$(cat .tools/azurite/stamp 2>/dev/null)" ] || exit 0
if install_node && install_azurite; then
    echo "$stamp" >.tools/azurite/stamp
else
    rm -rf .tools/azurite
    say "no Azurite (it needs node and npm, see .tools/npm.log), so the tests of abfs:// are skipped"
fi
