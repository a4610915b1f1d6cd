#!/usr/bin/env bash
# Usage: format.sh [FILE...]: fails if clang-format would change a C++ file. Checks all tracked ones by default.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
# shellcheck source-path=SCRIPTDIR source=tracked.sh
source tests/lint/tracked.sh

if [[ $# == 0 ]]; then
  list_tracked files '*.cpp' '*.hpp'
else
  files=("$@")
fi
clang-format --dry-run -Werror "${files[@]}"
