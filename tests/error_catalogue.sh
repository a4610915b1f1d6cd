#!/usr/bin/env bash
# The codes of errors in the sources and those in docs/errors.md are the same.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

in_sources() {
  cat src/*.cpp src/*/*.cpp src/*/*/*.cpp src/*/*/*/*.cpp src/*/*.hpp src/*/*/*.hpp | tr '\n' ' ' |
    grep -oE '(fail\(|Error\{|Error error\{|error_result\(\{|return \{|error = \{) *"[a-z]+(_[a-z]+)+", ' |
    grep -oE '[a-z]+(_[a-z]+)+"' | tr -d '"' | sort -u
}
in_catalogue() {
  grep -E '^\| `' docs/errors.md | cut -d'|' -f2 | grep -oE '[a-z]+(_[a-z]+)+' | sort -u
}

missing=$(comm -23 <(in_sources) <(in_catalogue))
stale=$(comm -13 <(in_sources) <(in_catalogue))
if [[ -n $missing || -n $stale ]]; then
  printf 'not in docs/errors.md: %s\nin docs/errors.md, but not in src: %s\n' "${missing//$'\n'/ }" "${stale//$'\n'/ }"
  exit 1
fi
