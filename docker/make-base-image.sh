#!/usr/bin/env bash
# Makes the image dockbridge-base:bookworm with debootstrap and `docker import`, for machines that reach a Debian mirror
# but no image registry. The mirror is that of the host's apt, else debootstrap's default.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Prints "URI RELEASE LABEL" for every Debian archive in the host's apt sources. apt knows origin and label
# only from downloaded indexes, so a machine without any needs an update first.
host_archives() {
  command -v apt-get >/dev/null || return 0
  local query=(apt-get indextargets --format "\$(REPO_URI) \$(RELEASE) \$(LABEL)"
    'Created-By: Packages' 'Origin: Debian' 'Component: main') found
  found=$("${query[@]}" | grep -E '^https?://[^@ ]+ ' | sort -u || true)
  if [[ -z $found ]]; then
    run_step 'reading the package lists of the host' as_root apt-get update
    found=$("${query[@]}" | grep -E '^https?://[^@ ]+ ' | sort -u || true)
  fi
  printf '%s\n' "$found"
}

# Prints the lines of the image's sources.list. Prints nothing if the host has no Debian archive.
image_sources() {
  local uri release label
  while read -r uri release label; do
    case $label:$release in
      Debian:*-backports* | Debian:*-proposed-updates) ;;
      Debian:*-updates) echo "deb $uri $k_suite-updates main" ;;
      Debian:*) echo "deb $uri $k_suite main" ;;
      Debian-Security:*) echo "deb $uri $k_suite-security main" ;;
    esac
  done | sort -u
}

main() {
  local tree sources mirror
  ensure_packages debootstrap debian-archive-keyring
  ensure_engine

  tree=$(mktemp -d "${TMPDIR:-/var/tmp}/dockbridge-base.XXXXXX")
  # shellcheck disable=SC2064 # the path is wanted as it is now
  trap "as_root rm -rf --one-file-system '$tree'" EXIT

  configure_dpkg "$tree"
  sources=$(host_archives | image_sources)
  mirror=$(awk -v suite="$k_suite" '$3 == suite { print $2; exit }' <<<"$sources")
  run_step "fetching a minimal Debian $k_suite (about a minute)" \
    as_root env ${apt_proxy:+"http_proxy=$apt_proxy"} \
    debootstrap --variant=minbase --include=ca-certificates "$k_suite" "$tree" ${mirror:+"$mirror"}
  if [[ -n $mirror ]]; then
    as_root tee "$tree/etc/apt/sources.list" <<<"$sources" >/dev/null
  fi
  run_step "importing $k_base_image" import_tree "$tree"
}

# Makes installing packages twice as fast. A crash needs no protection by fsync, because an interrupted build of an
# image leaves nothing; and the image has no program that shows manuals.
configure_dpkg() {
  as_root mkdir -p "$1/etc/dpkg/dpkg.cfg.d"
  as_root tee "$1/etc/dpkg/dpkg.cfg.d/dockbridge" >/dev/null <<'END'
force-unsafe-io
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/man/*
END
}

import_tree() {
  as_root tar -C "$1" --exclude='./var/cache/apt/archives/*.deb' --exclude='./var/lib/apt/lists/*_*' -c . |
    docker import --change 'CMD ["bash"]' - "$k_base_image"
}

k_suite=bookworm
apt_proxy=${http_proxy:-$(host_apt_proxy)}
main
