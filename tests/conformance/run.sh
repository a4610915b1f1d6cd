#!/usr/bin/env bash
# Usage: run.sh path/to/conformance_fixture path/to/dockbridge
# Runs the official conformance suite, from npm: the required scenarios of each revision, and some that are not scored.
set -euo pipefail
fixture=$(realpath "${1:?has to be the path of conformance_fixture}")
program=$(realpath "${2:?has to be the path of dockbridge}")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../clients"
# shellcheck source-path=SCRIPTDIR source=../clients/install.sh
source install.sh
install_clients
node=$(find_node)
suite=node_modules/@modelcontextprotocol/conformance/dist/index.js

exec {output}< <("$fixture")
fixture_pid=$!
program_pid=
trap 'kill "$fixture_pid" $program_pid 2>/dev/null || true' EXIT
read -r -u "$output" url

# check REVISION SCENARIO...: everything that is run passes, and these are among it.
check() {
  local revision=$1 log status=0 scenario
  shift
  log=$("$node" "$suite" server --url "$url" --requirements "$revision" 2>&1) || status=$?
  if ((status != 0)) || grep --quiet -E '^ *✗|[1-9][0-9]* failed|[1-9][0-9]* warning' <<<"$log"; then
    printf '%s\nrun.sh: %s does not hold (status %s)\n' "$log" "$revision" "$status"
    exit 1
  fi
  for scenario in "$@"; do
    if ! grep --quiet -E "^✓ $scenario: " <<<"$log"; then
      printf '%s\nrun.sh: %s was not run for %s\n' "$log" "$scenario" "$revision"
      exit 1
    fi
  done
  echo "$revision: $(grep -E '^Total: ' <<<"$log")"
}

check 2025-11-25 server-session-lifecycle server-sse-polling json-schema-2020-12
check 2026-07-28 json-schema-2020-12 http-header-validation http-custom-header-server-validation tasks-lifecycle \
  tasks-capability-negotiation tasks-wire-fields tasks-request-state-removal tasks-mrtr-input tasks-request-headers \
  tasks-dispatch-and-envelope tasks-status-notifications tasks-required-task-error tasks-mrtr-composition

# Skills need no fixture: the suite finds what a server has. Neither lists nor skills touch a container, so there is
# none.
exec {log}< <(exec "$program" --http 127.0.0.1:0 --no-token --container-name none --no-create --no-start 2>&1)
program_pid=$!
while read -r -t 10 -u "$log" line; do
  if [[ $line =~ (http://127\.0\.0\.1:[0-9]+/mcp) ]]; then
    skills_url=${BASH_REMATCH[1]}
    break
  fi
done
for scenario in sep-2640-skills-enumeration sep-2640-skills-manifest; do
  status=0
  # Without --spec-version, because the suite does not place extensions on the timeline of revisions.
  result=$("$node" "$suite" server --url "${skills_url:?dockbridge did not report its address}" --scenario "$scenario" \
    2>&1) || status=$?
  passed=$(grep -E '^Passed: [1-9][0-9]*/[0-9]+, 0 failed, 0 warnings' <<<"$result") || status=1
  if ((status != 0)) || grep --quiet SKIPPED <<<"$result"; then
    printf '%s\nrun.sh: %s does not hold (status %s)\n' "$result" "$scenario" "$status"
    exit 1
  fi
  echo "$scenario: $passed"
done
