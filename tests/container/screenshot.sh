#!/usr/bin/env bash
# A page screenshot through execute_command in the full image, with no capability at all: less than compose gives.
# Usage: screenshot.sh [path of dockbridge]
set -euo pipefail

project_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dockbridge=${1:-$project_dir/build/release/dockbridge}
container=dockbridge-screenshot-$$
png=$(mktemp)

clean_up() {
  docker rm --force "$container" >/dev/null
  rm -f "$png"
}
trap clean_up EXIT

fail() {
  echo "screenshot: $*" >&2
  exit 1
}

docker run --detach --init --name "$container" --cap-drop ALL --security-opt no-new-privileges \
  dockbridge-sandbox:latest >/dev/null

read -r -d '' script <<'JS' || true
import { chromium } from 'playwright';
const browser = await chromium.launch();
const page = await browser.newPage({ viewport: { width: 640, height: 360 } });
await page.goto('data:text/html,<title>hello</title><h1 style="font-size:90px">hello</h1>');
await page.screenshot({ path: '/app/page.png' });
console.log('title: ' + await page.title());
await browser.close();
JS
command=$(printf "cat >page.mjs <<'JS'\n%s\nJS\nnode page.mjs" "$script")
command=${command//\\/\\\\}
command=${command//\"/\\\"}
command=${command//$'\n'/\\n}
arguments='{"command": "'$command'", "maxWaitTime": 60, "rationale": "take a screenshot"}'

reply=$("$dockbridge" --container-name "$container" call execute_command "$arguments" </dev/null) ||
  fail "execute_command failed: $reply"
[[ $reply == *'title: hello'* ]] || fail "the page was not loaded: $reply"

docker cp "$container:/app/page.png" "$png" >/dev/null
header=$(od -An -tx1 -N24 "$png" | tr -d ' \n')
[[ $header == 89504e470d0a1a0a*0000028000000168 ]] || fail "not a PNG of 640x360: $header"
bytes=$(wc -c <"$png")
((bytes > 2000)) || fail "a PNG of only $bytes bytes: an empty page?"
echo "screenshot: a PNG of 640x360, $bytes bytes" >&2
