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
# shellcheck source-path=SCRIPTDIR source=install.sh
source install.sh

# What the tests themselves did not remove, because they were killed for instance.
remove_containers() {
  local left
  left=$(docker ps --all --quiet --filter "label=dockbridge-clients=$DOCKBRIDGE_CLIENTS_RUN")
  [[ -z $left ]] || xargs docker rm --force --volumes <<<"$left" >/dev/null
}

install_clients

export DOCKBRIDGE_CLIENTS_RUN=$$
trap remove_containers EXIT
"$(find_node)" --test --test-reporter=spec --test-timeout=120000 "$@" ./*.test.mjs
