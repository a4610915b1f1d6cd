#!/usr/bin/env bash
# Usage: thread_safety.sh [FILE...]
# Runs clang's thread-safety analysis over the given files, by default over the sources of src/ that use a mutex. Fails
# if one uses a guarded member without its mutex, a mutex that the analysis does not know, or one that no annotation
# names.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
# shellcheck source-path=SCRIPTDIR source=tracked.sh
source tests/lint/tracked.sh

if git grep --untracked -nE 'std::([a-z]+_)*mutex\b|std::(lock_guard|unique_lock|scoped_lock|shared_lock)\b' \
  -- src ':!src/util/mutex.hpp'; then
  echo 'The analysis does not know these. Use src/util/mutex.hpp.' >&2
  exit 1
fi

unnamed=$(git grep --untracked -noE '\bMutex [a-z_]+;' -- src | while IFS=: read -r file line mutex; do
  mutex=${mutex//Mutex /}
  grep -qE "(GUARDED_BY|REQUIRES)\((\w+(\.|->))?${mutex%;}\)" "$file" || echo "$file:$line: ${mutex%;}"
done)
if [[ -n $unnamed ]]; then
  printf 'No GUARDED_BY or REQUIRES in the same file names these:\n%s\n' "$unnamed" >&2
  exit 1
fi

k_library_flags=$(pkg-config --cflags cpp-httplib)
analyse() {
  # shellcheck disable=SC2086 # several flags
  clang++ -fsyntax-only -std=c++20 -Isrc -DDOCKBRIDGE_VERSION='""' $k_library_flags \
    -Wno-everything -Wthread-safety -Werror=thread-safety -x c++ "$1"
}
export -f analyse
export k_library_flags

# The analysis must find this mistake. Otherwise the annotations have no effect, and it would accept everything.
if analyse - 2>/dev/null <<<'#include "util/mutex.hpp"
struct Counter { dockbridge::Mutex mutex; int count GUARDED_BY(mutex) = 0; };
int unlocked(Counter& counter) { return counter.count; }'; then
  echo 'The analysis accepts a guarded member that is used without its mutex.' >&2
  exit 1
fi

files=("$@")
if [[ $# == 0 ]]; then
  tracked=()
  list_tracked tracked 'src/*.cpp' 'src/*.hpp'
  # A header is checked with the source of the same name, if there is one.
  mapfile -t files < <(grep -lwE 'Mutex|MutexLock' "${tracked[@]}" | while IFS= read -r file; do
    [[ ! -e ${file%.hpp}.cpp ]] || file=${file%.hpp}.cpp
    printf '%s\n' "$file"
  done | sort -u)
fi
echo "checking ${#files[@]} files"
# shellcheck disable=SC2016 # expanded by the inner shell
printf '%s\0' "${files[@]}" | xargs -0 -P 2 -n 1 bash -c 'analyse "$1"' analyse
