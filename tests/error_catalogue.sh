#!/usr/bin/env bash
# The codes of errors in the sources and those in docs/errors.md are the same. In the sources every text of several lower-case
# words joined by _ is taken for a code, however it gets into an error, unless it is named here; fields of JSON are written
# otherwise. A code of one word is seen where an error is made of it.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

# Tools and prompts, metrics and their labels, words of the protocol and of results, files of the agent, system calls.
no_codes='(check|control)_process|execute_command|send_input|file_(read|write|edit|undo|ls|glob)|diagnose_build|review_processes|set_up_project'
no_codes+='|file_(grep|upload|download)|dockbridge_[a-z_]+|no_descriptors|protocol_error|input_required|waited_enough|waits_for_input'
no_codes+='|client_timeout|files_(seen|changed|with_matches)|memfd_create'

sources() {
  find src -name '*.[ch]pp' ! -name argument_names.cpp -exec cat {} + | grep -v '^#include'
}
in_sources() {
  {
    sources | grep -oE '"[a-z]+(_[a-z]+)+"' | tr -d '"' | grep -vxE "$no_codes" || true
    sources | tr '\n' ' ' | grep -oE '(fail\(|Error\{|Error [a-z]+\{|error_result\(\{) *"[a-z]+"' | grep -oE '[a-z]+"$' | tr -d '"'
  } | sort -u
}
in_catalogue() {
  grep -E '^\| `' docs/errors.md | cut -d'|' -f2 | grep -oE '`[a-z_]+`' | tr -d '`' | sort -u
}

missing=$(comm -23 <(in_sources) <(in_catalogue))
stale=$(comm -13 <(in_sources) <(in_catalogue))
if [[ -n $missing || -n $stale ]]; then
  printf 'not in docs/errors.md: %s\nin docs/errors.md, but not in src: %s\n' "${missing//$'\n'/ }" "${stale//$'\n'/ }"
  exit 1
fi
