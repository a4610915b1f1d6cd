# shellcheck shell=bash
# To be sourced, in the folder of package.json: what is needed to run programs from npm.

# Once, also if several tests begin at the same time.
install_clients() {
  local lock installed=node_modules/.installed-lock.json output
  exec {lock}<.
  flock "$lock"
  if ! cmp --silent package-lock.json "$installed"; then
    if ! output=$(npm ci --ignore-scripts --include=optional --no-audit --no-fund --loglevel=error 2>&1); then
      printf 'install.sh: npm ci failed in %s\n%s\n' "$PWD" "$output" >&2
      exit 1
    fi
    cp package-lock.json "$installed"
  fi
  exec {lock}<&-
}

# By its place: older npm makes no link to it in .bin. On other machines than x86-64 and arm64 it is the machine's own.
find_node() {
  local installed=(node_modules/node-linux-*/bin/node)
  if [[ -x ${installed[0]} ]]; then
    realpath "${installed[0]}"
  else
    command -v node
  fi
}
