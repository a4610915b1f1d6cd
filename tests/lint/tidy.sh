#!/usr/bin/env bash
# Usage: tidy.sh [--all | FILE...]
# Runs clang-tidy over sources of src/: all of them, the given ones, or by default those that this branch changes. The
# default checks at most 20 files and ends within 5 minutes. It names the files that it leaves out.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
readonly k_build=build/tidy
readonly k_max_files=20
readonly k_start_seconds=180  # no file is started later
readonly k_file_seconds=100   # a file that takes longer is left out
readonly k_empty_tree=4b825dc642cb6eb9a060e54bf8d69288fbee4904

# The commit where this branch left main. On main itself: the previous commit, or the state before the last merge.
base_commit() {
  local branch base head
  head=$(git rev-parse HEAD)
  for branch in origin/main main; do
    if base=$(git merge-base HEAD "$branch" 2>/dev/null) && [[ $base != "$head" ]]; then
      printf '%s' "$base"
      return
    fi
  done
  git rev-parse --quiet --verify HEAD~1 || printf '%s' "$k_empty_tree"
}

# Files of src/ that are new or differ from the base, those with the most added lines first. Files that were only moved
# are left out.
changed_files() {
  local base
  base=$(base_commit)
  {
    git diff --numstat --find-renames=100% --diff-filter=AM "$base" -- 'src/*.cpp' 'src/*.hpp'
    git ls-files --others --exclude-standard -- 'src/*.cpp' 'src/*.hpp' | sed 's/^/0\t0\t/'
  } | sort --key=1,1nr --key=3 | cut -f 3
}

# Reads names of files, and writes those of the sources to check: for a header, the source of the same name, or the
# first source that includes it.
sources_of() {
  local file source
  while IFS= read -r file; do
    source=${file%.?pp}.cpp
    if [[ ! -e $source ]]; then
      source=$(git grep --untracked -lF "#include \"${file#src/}\"" -- 'src/*.cpp' | head -n 1) || true
    fi
    [[ -z $source ]] || printf '%s\n' "$source"
  done | awk '!seen[$0]++'
}

# check FILE: with $k_stop_at set, only as long as there is time.
check() {
  local output status=0 limit=0
  if [[ -n $k_stop_at ]]; then
    limit=$k_file_seconds
    if (($(date +%s) > k_stop_at)); then
      echo "not checked, out of time: $1"
      return
    fi
  fi
  # One write for each file, so that the findings of two files do not mix.
  output=$(timeout "$limit" clang-tidy -p "$k_build" --quiet "$1" 2>&1) || status=$?
  case $status in
    0) echo "checked: $1" ;;
    124) echo "not checked, it takes over $k_file_seconds s: $1" ;;
    *)
      printf '%s\n' "$output"
      return 1
      ;;
  esac
}

k_stop_at=
if [[ ${1:-} == --all ]]; then
  mapfile -t files < <(git ls-files 'src/*.cpp')
elif [[ $# != 0 ]]; then
  files=("$@")
else
  k_stop_at=$(($(date +%s) + k_start_seconds))
  changed=$(changed_files | sources_of)
  mapfile -t files < <(printf '%s' "$changed")
  if ((${#files[@]} > k_max_files)); then
    echo "${#files[@]} files are changed, and only $k_max_files are checked. For the others, run $0 with" \
      "${files[*]:k_max_files}"
    files=("${files[@]:0:k_max_files}")
  fi
fi
if ((${#files[@]} == 0)); then
  echo 'No source is changed.'
  exit
fi
# Without precompiled headers: clang does not read g++'s.
cmake -S . -B "$k_build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DDOCKBRIDGE_TESTS=OFF -DCMAKE_UNITY_BUILD=OFF \
  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
export -f check
export k_build k_file_seconds k_stop_at
# shellcheck disable=SC2016 # expanded by the inner shell
printf '%s\0' "${files[@]}" | xargs -0 -P 2 -n 1 bash -c 'check "$1"' check
