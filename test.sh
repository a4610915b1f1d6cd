#!/usr/bin/env bash
# Usage: test.sh [--full] [ctest arguments]
# Installs missing packages, builds, and runs all tests, also those that need an engine. --full adds the long ones: soak
# tests, container tests without the direct line, a page screenshot in the full image, and all tests again with the
# address and thread sanitizers. With the address sanitizer, the agent in the containers is sanitized as well.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=docker/lib.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/docker/lib.sh"

set_up_packages() {
  ensure_packages "${k_build_packages[@]}" busybox-static ccache patch openssl clang libclang-rt-14-dev \
    clang-format clang-tidy shellcheck podman conmon catatonit uidmap \
    python3-matplotlib python3-numpy python3-pandas ipython3
  command -v npm >/dev/null || ensure_packages nodejs npm
}

set_up_test_images() {
  ensure_sandbox_image "$k_slim_image" slim
  ensure_sandbox_image "$k_data_image" data
  "$project_dir/docker/make-sh-only-image.sh"
  ensure_podman_image "$k_slim_image"
}

# ensure_podman_image IMAGE: copies IMAGE from the engine to podman unless podman has the same one.
ensure_podman_image() {
  local id
  id=$(image_id "$1")
  [[ $(podman image inspect --format '{{.Id}}' "$1" 2>/dev/null) == "${id#sha256:}" ]] ||
    run_step "copying $1 to podman" copy_to_podman "$1"
}

copy_to_podman() { docker save "$1" | podman load; }

# phase WHAT COMMAND...: like run_step, with the output always shown.
phase() {
  local what=$1 started=$SECONDS status=0
  shift
  say "$what ..."
  "$@" </dev/null || status=$?
  if [[ $status != 0 ]]; then
    say "$what: failed with status $status after $((SECONDS - started)) s"
    exit "$status"
  fi
  say "$what: done in $((SECONDS - started)) s"
}

run_tests() {
  local preset=$1
  shift
  # Three tests at a time, because most tests wait most of the time.
  phase "testing $preset" in_project ctest --preset "$preset" --output-on-failure --parallel 3 "$@"
}

main() {
  if [[ ${1:-} == --full ]]; then
    export DOCKBRIDGE_FULL=1
    shift
  fi
  with_setup_lock set_up_packages
  with_setup_lock at_once 'build release all' set_up_test_images
  run_tests release "$@"
  if [[ -n ${DOCKBRIDGE_FULL:-} ]]; then
    # Again with containers that share no directory with the host, so that everything goes through the engine.
    DOCKBRIDGE_TEST_UNSHARED=1 run_tests release --label-regex container "$@"
    with_setup_lock ensure_sandbox_image "$k_sandbox_image" full
    phase 'taking a screenshot' "$project_dir/tests/container/screenshot.sh"
    local preset
    for preset in asan tsan; do
      with_setup_lock build "$preset" all
      run_tests "$preset" "$@"
    done
  fi
  say "all done in $SECONDS s"
}

set_up_engine "$project_dir/test.sh" "$@"
main "$@"
