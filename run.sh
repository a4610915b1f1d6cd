#!/usr/bin/env bash
# Usage: run.sh [dockbridge arguments]
# Sets up what is missing (packages, build, engine, image, container) and becomes dockbridge; with no arguments that is
# an MCP server on stdin and stdout. See docker/lib.sh for the steps.
#   DOCKBRIDGE_IMAGE_TARGET=slim   an image without browser and compilers
#   DOCKBRIDGE_IMAGE_TARGET=data   the slim image with numpy, pandas and matplotlib
#   DOCKBRIDGE_BASE_IMAGE=IMAGE    what the image is built on
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=docker/lib.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/docker/lib.sh"

container=${DOCKBRIDGE_CONTAINER_NAME:-$k_container}
docker_host=${DOCKBRIDGE_DOCKER_HOST:-}
docker_command=${DOCKBRIDGE_DOCKER_COMMAND:-docker}
only_words=false

read_arguments() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      -h | --help | --help-all | --version) only_words=true ;;
      -c | --container-name) container=${2:-} ;;
      -c?*) container=${1#-c} ;;
      --container-name=*) container=${1#*=} ;;
      --docker-host) docker_host=${2:-} ;;
      --docker-host=*) docker_host=${1#*=} ;;
      --docker-command) docker_command=${2:-} ;;
      --docker-command=*) docker_command=${1#*=} ;;
    esac
    shift
  done
}

# A container or an engine that the user names is the user's: it is used, never made.
set_up() {
  if [[ -n $docker_host ]]; then
    export DOCKER_HOST=$docker_host
  fi
  choose_engine "$project_dir/run.sh" "$@"
  if [[ $container == "$k_container" ]] && ! with_setup_lock container_exists; then
    set_up_engine "$project_dir/run.sh" "$@"
    with_setup_lock ensure_program_and_container
    return
  fi
  if [[ $container != "$k_container" ]]; then
    set_up_engine "$project_dir/run.sh" "$@"
  fi
  with_setup_lock ensure_built release dockbridge
}

read_arguments "$@"
if [[ $only_words == true || $docker_command != docker ]]; then
  with_setup_lock ensure_built release dockbridge
else
  set_up "$@"
fi
exec "$project_dir/build/release/dockbridge" "$@"
