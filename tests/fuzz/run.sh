#!/usr/bin/env bash
# Usage: run.sh jsonrpc|http|frames [SECONDS]
# Builds a fuzzer with clang and runs it for SECONDS (30) from the corpus in this directory. Findings are in build/fuzz.
# A long run: run.sh http 36000. Inputs that reach new code are kept in build/fuzz/http-corpus.
set -euo pipefail
name=${1:?one of jsonrpc, http, frames}
seconds=${2:-30}
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
build=$here/../../build/fuzz

build_fuzzers() {
  cmake -S "$here" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=clang++ >/dev/null && cmake --build "$build" -j 2
}

mkdir -p "$build"
exec {lock}<"$build"
flock "$lock"
if ! output=$(build_fuzzers 2>&1); then
  printf '%s\nrun.sh: the fuzzers could not be built\n' "$output" >&2
  exit 1
fi
exec {lock}<&-
mkdir -p "$build/$name-corpus"
cd "$build"
exec "./${name}_fuzz" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
  -artifact_prefix="$name-" "$name-corpus" "$here/corpus/$name"
