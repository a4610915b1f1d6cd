#!/usr/bin/env bash
# Usage: json_reads.sh: fails if a test reads JSON with operator[] and a literal key. field() checks that the key exists.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
# shellcheck source-path=SCRIPTDIR source=tracked.sh
source tests/lint/tracked.sh

files=()
list_tracked files 'tests/*.cpp' 'tests/*.hpp'
# A write has an assignment, push_back or erase behind its last key.
if grep -nP '[\w)\]]\["[^"]*"\](?!(\[[^]]*\])*(\s*=([^=]|$)|\.(push_back|erase)\())' "${files[@]}"; then
  echo 'read these with field() of tests/support/field.hpp' >&2
  exit 1
fi
