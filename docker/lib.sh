# shellcheck shell=bash
# Functions of run.sh, test.sh, reset-docker.sh and the scripts of this folder: host packages, the engine, images, the
# container and the build. Sourcing has no effect. All output is on stderr, because stdout may carry MCP.
# shellcheck disable=SC2034 # some names are for the scripts that source this

project_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
state_dir=${XDG_STATE_HOME:-$HOME/.local/state}/dockbridge
readonly project_dir state_dir

readonly k_container=mcp-container
readonly k_sandbox_image=dockbridge-sandbox:latest
readonly k_slim_image=dockbridge-test:slim
readonly k_data_image=dockbridge-test:data
readonly k_sh_only_image=dockbridge-test:sh-only
readonly k_base_image=dockbridge-base:bookworm
readonly k_default_base=node:current-bookworm
readonly k_inputs_label=dockbridge.inputs
readonly k_host_authorities=/usr/local/share/ca-certificates
readonly k_engine_socket=/var/run/docker.sock
readonly k_engine_pid_file=/var/run/docker.pid

readonly k_answer_seconds=10        # limit for an answer of a running engine
readonly k_engine_start_seconds=60  # limit from the start of dockerd to its first answer
readonly k_pull_seconds=900         # limit for a registry that stalls; an unreachable one fails sooner

k_build_packages=(g++ cmake ninja-build git pkg-config libcurl4-openssl-dev nlohmann-json3-dev libboost-dev
  libboost-filesystem-dev libfmt-dev libcli11-dev libexpected-dev doctest-dev
  libre2-dev libstb-dev libvterm-dev libxxhash-dev libcpp-httplib-dev libssl-dev)
readonly k_build_packages

say() { printf 'dockbridge: %s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

# run_step WHAT COMMAND...: runs a long command. Its output is shown on a terminal; elsewhere only its end, if it fails.
# A function given as COMMAND runs without errexit, so it must chain its commands with &&.
run_step() {
  local what=$1 started=$SECONDS status=0 log
  shift
  say "$what ..."
  if [[ -t 2 ]]; then
    ("$@") >&2 || status=$?
  else
    log=$(mktemp)
    ("$@") >"$log" 2>&1 || status=$?
    [[ $status == 0 ]] || tail -n 40 "$log" >&2
    rm -f "$log"
  fi
  if [[ $status != 0 ]]; then
    say "$what: failed with status $status after $((SECONDS - started)) s"
    return "$status"
  fi
  say "$what: done in $((SECONDS - started)) s"
}

# at_once COMMAND...: runs commands at the same time. Each is one argument, which is split at blanks. Returns when all
# have ended, and fails if one of them has failed.
at_once() {
  local command pid pids=() failed=0
  for command in "$@"; do
    # shellcheck disable=SC2086 # split on purpose
    ($command) 2> >(cat >&2) &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || failed=1
  done
  return "$failed"
}

# with_setup_lock COMMAND...: runs one set-up at a time, because clients may start two servers at once. COMMAND does not
# get the stdin and stdout of the MCP client.
with_setup_lock() {
  mkdir -p "$state_dir"
  (
    if ! flock --timeout 1 9; then
      say 'waiting for another set-up to finish ...'
      flock 9
    fi
    "$@"
  ) 9>"$state_dir/setup.lock" </dev/null >&2
}

as_root() {
  if [[ $EUID == 0 ]]; then
    "$@"
  elif ! command -v sudo >/dev/null; then
    die "this needs root: $*. Run the script as root, or install sudo."
  elif [[ ! -t 2 ]] && ! sudo -n true 2>/dev/null; then
    die "this needs root, and sudo wants a password: $*. Run the script once in a terminal."
  else
    sudo "$@"
  fi
}

## Host packages

ensure_packages() {
  local installed package missing=()
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system; assuming that these packages are installed under other names: $*"
    return
  fi
  # shellcheck disable=SC2016 # dpkg-query's own variables
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "$package installed" <<<"$installed" || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  run_step 'updating the package lists' apt_get update
  run_step "installing ${missing[*]}" apt_get install -y --no-install-recommends "${missing[@]}"
}

apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@"; }

host_apt_proxy() {
  local proxy=
  if command -v apt-config >/dev/null; then
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
  fi
  [[ $proxy == DIRECT ]] || printf '%s' "$proxy"
}

## Engine

# set_up_engine SCRIPT ARGUMENT...: ensures that an engine runs and that this process may use it. Starts SCRIPT again in
# the group docker if the user was added to that group, but has not logged in since.
set_up_engine() {
  choose_engine "$@"
  with_setup_lock ensure_engine
  choose_engine "$@"
}

choose_engine() {
  if engine_is_chosen_by_user || [[ $EUID == 0 ]]; then
    return
  fi
  if [[ ! -e $k_engine_socket ]]; then
    local socket
    for socket in "${XDG_RUNTIME_DIR:-/run/user/$UID}/docker.sock" "$HOME/.docker/desktop/docker.sock"; do
      if [[ -S $socket ]]; then
        export DOCKER_HOST=unix://$socket
        return
      fi
    done
  elif [[ ! -w $k_engine_socket ]] && docker_group_awaits; then
    local argument command=exec
    for argument in "$@"; do
      command+=" '${argument//\'/\'\\\'\'}'"
    done
    exec sg docker -c "$command"
  fi
}

engine_is_chosen_by_user() {
  [[ -n ${DOCKER_HOST:-}${DOCKER_CONTEXT:-} ]] ||
    grep -qs '"currentContext"' "${DOCKER_CONFIG:-$HOME/.docker}/config.json"
}

# Whether the user is in the group docker, but this process is not.
docker_group_awaits() {
  [[ ,$(getent group docker | cut -d: -f4), == *,"$(id -un)",* && " $(id -nG) " != *' docker '* ]]
}

# Succeeds if an engine runs, even if this process gets access only by choose_engine. Else sets $engine_refusal.
engine_answers() {
  engine_refusal=
  command -v docker >/dev/null || return 1
  engine_refusal=$(timeout "$k_answer_seconds" docker version --format '{{.Server.Version}}' 2>&1 >/dev/null) &&
    return 0
  [[ $engine_refusal == *'permission denied'* ]] || return 1
  docker_group_awaits ||
    die "no permission to use the engine. Run: sudo usermod -aG docker $(id -un), then log in again. $engine_refusal"
}

ensure_engine() {
  ! engine_answers || return 0
  if engine_is_chosen_by_user; then
    die "the engine of DOCKER_HOST or the active docker context does not answer: ${engine_refusal:-no docker command}"
  fi
  if ! command -v docker >/dev/null || ! command -v dockerd >/dev/null; then
    ensure_packages docker.io iptables ca-certificates
    if [[ $EUID != 0 && " $(id -nG) " != *' docker '* ]]; then
      say "adding $(id -un) to the group docker, which may use the engine"
      as_root usermod -aG docker "$(id -un)"
    fi
  fi
  if ! engine_process_lives; then
    start_engine
  fi
  await_engine
}

engine_process_lives() {
  local pid
  pid=$(cat "$k_engine_pid_file" 2>/dev/null) && [[ -e /proc/$pid ]]
}

start_engine() {
  if [[ -d /run/systemd/system ]]; then
    run_step 'starting the Docker engine' as_root systemctl start docker
    return
  fi
  say "starting the Docker engine, log in $state_dir/dockerd.log"
  mkdir -p "$state_dir"
  # The engine outlives this script, so it must hold neither the lock nor the client's pipes.
  (cd / && as_root setsid --fork dockerd) </dev/null >"$state_dir/dockerd.log" 2>&1 9>&-
}

await_engine() {
  local deadline=$((SECONDS + k_engine_start_seconds))
  until engine_answers; do
    if ((SECONDS >= deadline)); then
      [[ ! -s $state_dir/dockerd.log ]] || tail -n 20 "$state_dir/dockerd.log" >&2
      die "the Docker engine did not answer within $k_engine_start_seconds s: $engine_refusal"
    fi
    sleep 0.2
  done
}

## Images

hash_input() { sha256sum | cut -d' ' -f1; }

image_id() { docker image inspect --format '{{.Id}}' "$1" 2>/dev/null; }

image_exists() { image_id "$1" >/dev/null; }

# image_is_current IMAGE INPUTS: whether IMAGE was built from inputs with the hash INPUTS.
image_is_current() {
  local format="{{index .Config.Labels \"$k_inputs_label\"}}"
  [[ $(docker image inspect --format "$format" "$1" 2>/dev/null) == "$2" ]]
}

wanted_base() { printf '%s' "${DOCKBRIDGE_BASE_IMAGE:-$k_default_base}"; }

# sandbox_inputs TARGET: a hash of all inputs of the image, computed without the engine.
sandbox_inputs() {
  {
    printf '%s %s\n' "$1" "$(wanted_base)"
    cat "$project_dir/Dockerfile.debian"
    [[ ! -d $k_host_authorities ]] || find -L "$k_host_authorities" -name '*.crt' -print0 | sort -z | xargs -0r cat
  } | hash_input
}

# Sets $base to the wanted base image, or to one made from Debian packages if the default cannot be pulled.
find_base() {
  base=$(wanted_base)
  if image_exists "$base"; then
    return
  fi
  if [[ $base == "$k_default_base" ]] && image_exists "$k_base_image"; then
    base=$k_base_image
    return
  fi
  if run_step "pulling $base" timeout "$k_pull_seconds" docker pull "$base"; then
    return
  fi
  [[ $base == "$k_default_base" ]] ||
    die "DOCKBRIDGE_BASE_IMAGE=$base does not exist and cannot be pulled. Unset it to use a Debian base."
  say "no registry can be reached: making $k_base_image from Debian packages instead"
  "$project_dir/docker/make-base-image.sh"
  base=$k_base_image
}

# ensure_sandbox_image IMAGE TARGET [BUILD OPTION...]: builds the image if it does not exist or its inputs have changed.
ensure_sandbox_image() {
  local inputs
  inputs=$(sandbox_inputs "$2")
  image_is_current "$1" "$inputs" || build_sandbox_image "$@"
}

build_sandbox_image() {
  local image=$1 target=$2 base variable options=()
  shift 2
  find_base
  copy_host_authorities
  for variable in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [[ -z ${!variable:-} ]] || options+=(--build-arg "$variable")
  done
  if [[ -z ${http_proxy:-}${HTTP_PROXY:-} && -n $(host_apt_proxy) ]]; then
    options+=(--build-arg "http_proxy=$(host_apt_proxy)")
  fi
  run_step "building $image ($target, from $base)" docker_build --file "$project_dir/Dockerfile.debian" \
    --target "$target" --build-arg "BASE_IMAGE=$base" --label "$k_inputs_label=$(sandbox_inputs "$target")" \
    --tag "$image" "${options[@]}" "$@" "$project_dir"
}

docker_build() {
  local buildkit=0
  if docker buildx version >/dev/null 2>&1; then
    buildkit=1
  fi
  DOCKER_BUILDKIT=${DOCKER_BUILDKIT:-$buildkit} docker build "$@"
}

copy_host_authorities() {
  local folder=$project_dir/docker/ca-certificates
  find "$folder" -mindepth 1 ! -name .gitkeep -delete
  [[ -d $k_host_authorities ]] || return 0
  (cd "$k_host_authorities" && find -L . -name '*.crt' -exec cp -L --parents -t "$folder" {} +)
}

## Container

compose() {
  local command=(docker compose)
  docker compose version >/dev/null 2>&1 || command=(docker-compose)
  "${command[@]}" --project-name dockbridge --project-directory "$project_dir" \
    --file "$project_dir/docker-compose.yml" "$@"
}

ensure_compose() {
  docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null || ensure_packages docker-compose
}

sandbox_target() { printf '%s' "${DOCKBRIDGE_IMAGE_TARGET:-full}"; }

# Succeeds if the container exists. dockbridge starts a stopped one when it is first used.
container_exists() {
  local made_from format="{{index .Config.Labels \"$k_inputs_label\"}}"
  command -v docker >/dev/null || return 1
  made_from=$(timeout "$k_answer_seconds" docker container inspect --format "$format" "$k_container" 2>/dev/null) ||
    return 1
  [[ $made_from == "$(sandbox_inputs "$(sandbox_target)")" ]] ||
    say "$k_container is from another image and is used unchanged; ./reset-docker.sh replaces it"
}

# An existing container is never replaced, because it has processes and installed packages of its user.
ensure_container() {
  container_exists && return
  ensure_compose
  ensure_sandbox_image "$k_sandbox_image" "$(sandbox_target)"
  run_step "starting $k_container" compose up -d --no-build
}

# The image build waits for downloads most of the time, so it slows the compiler only a little.
ensure_program_and_container() {
  ensure_packages "${k_build_packages[@]}"
  ensure_compose
  at_once 'ensure_built release dockbridge' "ensure_sandbox_image $k_sandbox_image $(sandbox_target)"
  ensure_container
}

## Build

# ensure_built PRESET TARGET: builds unless no source has changed since the last time.
ensure_built() {
  local stamp=$project_dir/build/$1/.built-$2
  if [[ -e $stamp &&
    -z $(in_project find src cmake CMakeLists.txt CMakePresets.json -newer "$stamp" -print -quit) ]]; then
    return
  fi
  ensure_packages "${k_build_packages[@]}"
  mkdir -p "${stamp%/*}"
  # Dated before the build, so that sources saved during it are built next time.
  touch "$stamp.new"
  build "$@"
  mv "$stamp.new" "$stamp"
}

build() {
  run_step "configuring $1" in_project cmake --preset "$1"
  run_step "building $1" in_project cmake --build --preset "$1" --target "$2"
}

in_project() { (cd "$project_dir" && "$@"); }
