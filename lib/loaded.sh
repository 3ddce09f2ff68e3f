#!/usr/bin/env bash
# Run a command while two busy loops per core use the processor: `lib/loaded.sh make test`. The loops end with this script, whatever ends it.
set -euo pipefail

loop() {
    while kill -0 "$1" 2>/dev/null; do
        for _ in {1..100000}; do :; done
    done
}

loops=()
trap 'kill "${loops[@]}" 2>/dev/null || true' EXIT
for _ in $(seq $((2 * $(nproc)))); do
    loop $$ &
    loops+=($!)
done
"$@"
