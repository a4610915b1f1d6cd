#!/usr/bin/env bash
# Usage: DOCKBRIDGE_PROGRAM=path/to/dockbridge run.sh [node --test arguments]
# Real MCP clients from npm talk to the program. Needs npm, a running engine and the image dockbridge-test:slim.
# The Inspector wants Node 22.19 or newer and client 2.x wants 20, so Node is one of the packages installed here; the
# machine's own only has to run npm.
set -euo pipefail
: "${DOCKBRIDGE_PROGRAM:?has to be the path of the dockbridge program}"
DOCKBRIDGE_PROGRAM=$(realpath "$DOCKBRIDGE_PROGRAM")
export DOCKBRIDGE_PROGRAM
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"

install_clients() {
  local installed=node_modules/.installed-lock.json output
  if cmp --silent package-lock.json "$installed"; then
    return
  fi
  if ! output=$(npm ci --ignore-scripts --include=optional --no-audit --no-fund --loglevel=error 2>&1); then
    printf 'run.sh: npm ci failed in %s\n%s\n' "$PWD" "$output" >&2
    exit 1
  fi
  cp package-lock.json "$installed"
}

# By its place: older npm makes no link to it in .bin. On other machines than x86-64 and arm64 it is the machine's own.
find_node() {
  local installed=(node_modules/node-linux-*/bin/node)
  if [[ -x ${installed[0]} ]]; then
    realpath "${installed[0]}"
  else
    command -v node
  fi
}

# What the tests themselves did not remove, because they were killed for instance.
remove_containers() {
  local left
  left=$(docker ps --all --quiet --filter "label=dockbridge-clients=$DOCKBRIDGE_CLIENTS_RUN")
  [[ -z $left ]] || xargs docker rm --force --volumes <<<"$left" >/dev/null
}

exec {lock}<.
flock "$lock"
install_clients
exec {lock}<&-

export DOCKBRIDGE_CLIENTS_RUN=$$
trap remove_containers EXIT
"$(find_node)" --test --test-reporter=spec --test-timeout=120000 "$@" ./*.test.mjs
