# shellcheck shell=bash
# The files that the lint scripts check.

# list_tracked NAME PATHSPEC...: sets the array NAME to the tracked files that exist. Exits if there are none, because a
# check of no files would pass.
list_tracked() {
  local -n list_tracked_result=$1
  local file
  shift
  list_tracked_result=()
  while IFS= read -r -d '' file; do
    [[ ! -e $file ]] || list_tracked_result+=("$file")
  done < <(git ls-files -z -- "$@")
  if [[ ${#list_tracked_result[@]} == 0 ]]; then
    echo "no tracked files match $*: not a git work tree?" >&2
    exit 2
  fi
}

# is_shell_script FILE: whether its name or its first line says so.
is_shell_script() {
  local first=
  [[ $1 != *.sh ]] || return 0
  # Only files without an extension need a look inside.
  [[ ${1##*/} != ?*.* ]] || return 1
  IFS= read -r first <"$1" || true
  [[ $first =~ ^'#!'.*[/\ ](ba)?sh$ ]]
}
