#!/usr/bin/env bash
# Usage: shell.sh [FILE...]: fails if shellcheck has a finding. Checks all tracked shell scripts by default.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
# shellcheck source-path=SCRIPTDIR source=tracked.sh
source tests/lint/tracked.sh

if [[ $# == 0 ]]; then
  tracked=() files=()
  list_tracked tracked .
  for file in "${tracked[@]}"; do
    ! is_shell_script "$file" || files+=("$file")
  done
else
  files=("$@")
fi
shellcheck --external-sources "${files[@]}"
