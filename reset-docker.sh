#!/usr/bin/env bash
# Usage: reset-docker.sh [--yes] [--no-cache]
# A fresh start: removes the container with all that runs in it, rebuilds the image, empties tmp/, starts the container.
#   --yes        do not ask
#   --no-cache   build every layer of the image again, with the packages of today
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=docker/lib.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/docker/lib.sh"

confirmed=false
build_options=()

read_arguments() {
  local argument
  for argument in "$@"; do
    case $argument in
      -y | --yes) confirmed=true ;;
      --no-cache) build_options+=(--no-cache) ;;
      *) die "unknown argument $argument. Accepted: --yes, --no-cache" ;;
    esac
  done
}

confirm() {
  local answer
  [[ -t 0 && -t 2 ]] || die 'not on a terminal: say --yes to remove the container and everything in tmp/'
  read -r -p "Remove the container $k_container and everything in $project_dir/tmp? [y/N] " answer
  [[ $answer == [yY]* ]] || die 'nothing was changed'
}

remove_container() {
  docker container inspect "$k_container" >/dev/null 2>&1 || return 0
  run_step "removing $k_container" docker_remove
}

docker_remove() { docker stop --time 5 "$k_container"; docker rm --force "$k_container"; }

# In a container, as what its root wrote belongs to root here too.
empty_workspace() {
  run_step 'emptying tmp/' docker run --rm --network none --volume "$project_dir/tmp:/app" "$k_sandbox_image" \
    find /app -mindepth 1 ! -path /app/.gitkeep -delete
}

reset() {
  local old_image
  old_image=$(image_id "$k_sandbox_image" || true)
  remove_container
  ensure_compose
  build_sandbox_image "$k_sandbox_image" "$(sandbox_target)" "${build_options[@]}"
  if [[ -n $old_image && $old_image != "$(image_id "$k_sandbox_image")" ]]; then
    docker image rm "$old_image" >/dev/null || say "the old image $old_image is still in use and stays"
  fi
  empty_workspace
  run_step "starting $k_container" compose up -d --no-build
}

read_arguments "$@"
[[ $confirmed == true ]] || confirm
set_up_engine "$project_dir/reset-docker.sh" --yes "${build_options[@]}"
with_setup_lock reset
