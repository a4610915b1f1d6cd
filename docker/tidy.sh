#!/usr/bin/env bash
# Usage: tidy.sh [FILE...]: runs clang-tidy over the given sources, or all of them, with the debug preset's flags.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
build=build/tidy
# Without precompiled headers: clang does not read g++'s.
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DDOCKBRIDGE_TESTS=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
if [[ $# == 0 ]]; then
  mapfile -t files < <(git ls-files 'src/*.cpp')
else
  files=("$@")
fi
printf '%s\n' "${files[@]}" | xargs -P 2 -n 4 clang-tidy -p "$build" --quiet
