#!/usr/bin/env bash
# Makes the image dockbridge-test:sh-only, which has only a static busybox under a few names: no bash, no libc.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

k_applets=(sh cat chmod cp dd echo env false grep head id kill ln ls mkdir mv printf ps pwd rm sed seq sleep sort stty
  tail test touch tr true tty uname wc yes)

main() {
  local inputs
  ensure_packages busybox-static
  inputs=$(cat "${BASH_SOURCE[0]}" /bin/busybox | hash_input)
  if image_is_current "$k_sh_only_image" "$inputs"; then
    return
  fi
  ensure_engine

  local tree applet
  tree=$(mktemp -d)
  # shellcheck disable=SC2064 # the path is wanted as it is now
  trap "rm -rf '$tree'" EXIT
  mkdir -p "$tree"/{app,bin,dev,etc,proc,root,sys,tmp}
  chmod 755 "$tree"
  chmod 1777 "$tree/tmp"
  cp /bin/busybox "$tree/bin/busybox"
  for applet in "${k_applets[@]}"; do
    ln -s busybox "$tree/bin/$applet"
  done
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$tree/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$tree/etc/group"
  run_step "making $k_sh_only_image" import_tree "$tree" "$inputs"
}

import_tree() {
  tar -C "$1" --owner=0 --group=0 --numeric-owner -c . |
    docker import --change "LABEL $k_inputs_label=$2" --change 'WORKDIR /app' --change 'ENV PATH=/bin' \
      --change 'CMD ["sleep", "infinity"]' - "$k_sh_only_image"
}

main
