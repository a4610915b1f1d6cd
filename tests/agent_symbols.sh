#!/usr/bin/env bash
# Usage: agent_symbols.sh AGENT: fails if the agent is not static or has a function of libc that loads NSS libraries.
set -euo pipefail
if readelf --dynamic "$1" | grep -q NEEDED; then
  echo "the agent is not static" >&2
  exit 1
fi
found=$(nm "$1" | grep -E ' [TtWi] (getpw(nam|uid|ent)|getgr(nam|gid|ent)|getaddrinfo|gethostby)' || true)
if [[ -n $found ]]; then
  printf 'the agent should not have:\n%s\n' "$found" >&2
  exit 1
fi
