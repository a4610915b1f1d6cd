# shellcheck shell=sh disable=SC2016,SC2059,SC2064,SC2128,SC2162,SC3000-SC4000
# Driver of a shell that remembers, for bash and for POSIX shells (dash, the ash of busybox). It is started so that
# messages of commands look as those of `bash -c`:
#
#   bash -c '. "$1/shell.sh"; shift; eval "$__dockbridge_start"' bash DIRECTORY
#
# The channel is descriptor 3. A request is a line, followed by the lines that it announces:
#
#   run CELL KEY SETUP LINES FIRST   SETUP lines that must succeed before the command, then LINES lines of the command.
#                                    FIRST is a JSON text, which `begin` repeats.
#   ping
#
# Events are JSON lines: ready, begin, end, stale, idle, pong, bad_request. A command runs only if CELL is the last
# number plus one. If a read fails, the idle limit has passed (receive timeout of the socket) or the channel is closed,
# and the driver exits. It never forks.
#
# Names that begin with __dockbridge_ are the driver's. Commands may define functions and aliases of any name, set any
# option and move any descriptor. So the driver calls builtins through `builtin` or `command`, and works under `set -eu`.
# It is silent under `set -x` because its stderr is closed. The loop is entered again if `break` or `return` leaves it.

trap : INT # until the first request

__dockbridge_cell=0
__dockbridge_status=0     # of the last command, which the next one sees as $?
__dockbridge_previous=0
__dockbridge_begun=       # number of the running cell
__dockbridge_interrupted=
__dockbridge_refused=     # the setup of the running cell has failed
__dockbridge_flags=       # options that are off while the driver runs
__dockbridge_wraps=       # commands may use errexit or a trap of ERR
__dockbridge_ended=       # the command has saved its status
__dockbridge_code=
__dockbridge_op=
__dockbridge_number=
__dockbridge_key=
__dockbridge_setup=
__dockbridge_lines=
__dockbridge_first=
__dockbridge_newline='
'

__dockbridge_last() {
  return "$__dockbridge_previous"
}

# Reports the end of the last command, and takes requests until the next command is to run.
__dockbridge_step() {
  case $- in
    *x*a* | *a*x*) __dockbridge_flags=ax ;;
    *x*) __dockbridge_flags=x ;;
    *a*) __dockbridge_flags=a ;;
  esac
  set +ax
  __dockbridge_clean_up
  __dockbridge_outcome=ok
  case $__dockbridge_refused in
    ?*) __dockbridge_outcome=error ;;
  esac
  case $__dockbridge_interrupted in
    ?*)
      __dockbridge_status=130
      __dockbridge_outcome=interrupted
      ;;
  esac
  case $__dockbridge_begun in
    ?*)
      __dockbridge_begun=
      __dockbridge_send '{"event":"end","cell":%d,"status":"%s","exit":%d,"kept":true}\n' \
        "$__dockbridge_cell" "$__dockbridge_outcome" "$__dockbridge_status"
      ;;
  esac
  __dockbridge_refused=
  while :; do
    __dockbridge_interrupted=
    if ! __dockbridge_read_line; then
      : # the trap runs before the next command at the latest
      case $__dockbridge_interrupted in
        ?*) continue ;;
      esac
      __dockbridge_send '{"event":"idle"}\n' || :
      exit 0
    fi
    case $__dockbridge_op in
      run) ;;
      '') continue ;;
      ping)
        __dockbridge_send '{"event":"pong"}\n'
        continue
        ;;
      *)
        __dockbridge_send '{"event":"bad_request","message":"unknown request"}\n'
        continue
        ;;
    esac
    case ${__dockbridge_number:-x}${__dockbridge_setup:-x}${__dockbridge_lines:-x} in
      *[!0-9]*)
        __dockbridge_send '{"event":"bad_request","message":"not a number"}\n'
        continue
        ;;
    esac
    case ${__dockbridge_key:-x} in
      *[!0-9a-f]*)
        __dockbridge_send '{"event":"bad_request","message":"not a key"}\n'
        continue
        ;;
    esac
    __dockbridge_read_lines "$__dockbridge_setup"
    __dockbridge_before=$__dockbridge_code
    __dockbridge_read_lines "$__dockbridge_lines"
    if [ "$__dockbridge_number" -eq "$((__dockbridge_cell + 1))" ]; then
      break
    fi
    __dockbridge_send '{"event":"stale","cell":%d,"key":"%s"}\n' "$__dockbridge_number" "$__dockbridge_key"
  done
  __dockbridge_cell=$__dockbridge_number
  __dockbridge_send '{"event":"begin","cell":%d,"key":"%s","first":%s}\n' "$__dockbridge_cell" "$__dockbridge_key" \
    "${__dockbridge_first:-\"\"}"
  case $__dockbridge_before in
    ?*)
      if ! __dockbridge_evaluate "$__dockbridge_before"; then
        # Runs again where its message is seen.
        __dockbridge_code=$__dockbridge_before
        __dockbridge_refused=1
      fi
      ;;
  esac
  __dockbridge_previous=$__dockbridge_status
  __dockbridge_status=0
  # A command under errexit or with a trap of ERR ends without a failed `eval`, which would be a failure by itself.
  case $__dockbridge_code in
    *set\ -* | *ERR*) __dockbridge_wraps=1 ;;
  esac
  case $-,$__dockbridge_wraps,$__dockbridge_code in
    *"<<"*) ;;
    *e*,,* | *,1,*)
      __dockbridge_code="$__dockbridge_code{ __dockbridge_status=\$?; __dockbridge_ended=1; } 2>&-$__dockbridge_newline"
      ;;
  esac
  case $__dockbridge_flags in
    ?*)
      __dockbridge_code="{ __dockbridge_resume; set -$__dockbridge_flags; } 2>&-; $__dockbridge_code"
      ;;
  esac
  __dockbridge_ended=
  __dockbridge_interrupted=
  __dockbridge_begun=$__dockbridge_cell
}

# Takes the exit status of an evaluation, unless the command has done so.
__dockbridge_save() {
  case $__dockbridge_ended in
    '') __dockbridge_status=$1 ;;
  esac
}

# The command begins: `set` shows its options from now on.
__dockbridge_resume() {
  __dockbridge_flags=
}

if [ -n "${BASH_VERSION-}" ]; then
  unset DOCKBRIDGE_IDLE_LIMIT_MS
  shopt -s expand_aliases

  # bash keeps descriptor 3 there while it is redirected: closed on exec.
  __dockbridge_channel=10
  while builtin test -e "/dev/fd/$__dockbridge_channel"; do
    __dockbridge_channel=$((__dockbridge_channel + 1))
  done

  __dockbridge_send() {
    builtin printf "$@" >&"$__dockbridge_channel"
  }

  __dockbridge_read_line() {
    IFS=' ' builtin read -r -u "$__dockbridge_channel" __dockbridge_op __dockbridge_number __dockbridge_key \
      __dockbridge_setup __dockbridge_lines __dockbridge_first
  }

  __dockbridge_read_lines() {
    __dockbridge_code=
    if [[ $1 != 0 ]]; then
      builtin mapfile -u "$__dockbridge_channel" -n "$1" __dockbridge_text
      # A request that was not sent to its end must not run.
      if [[ ${#__dockbridge_text[@]} -ne $1 || ${__dockbridge_text[$1 - 1]} != *$'\n' ]]; then
        builtin exit 0
      fi
      builtin printf -v __dockbridge_code %s "${__dockbridge_text[@]}"
      builtin unset -v __dockbridge_text
    fi
  }

  __dockbridge_evaluate() {
    builtin eval "$1"
  }

  # SIGINT returns from the innermost function, and then from each outer one before its next command. The commands at
  # the top level are in a sourced file, so `return` ends them too, even in a `read`.
  __dockbridge_unwind='
    if builtin test "${#BASH_SOURCE[@]}" -gt 0; then
      builtin return 0
    else
      builtin trap - DEBUG
    fi'
  __dockbridge_on_interrupt='
    if builtin test -n "$__dockbridge_begun"; then
      __dockbridge_interrupted=1
      builtin trap "$__dockbridge_unwind" DEBUG
      builtin return 0
    fi'

  __dockbridge_clean_up() {
    builtin trap "$__dockbridge_on_interrupt" INT
  }

  # Messages begin with the name of the sourced file. `bash` is a name without a directory if the file is in the cwd.
  __dockbridge_enter() {
    set +ax
    __dockbridge_file=$__dockbridge_directory/bash
    __dockbridge_cwd=
    if builtin test . -ef "$PWD" && [[ $PWD == /* ]]; then
      __dockbridge_cwd=$PWD
      __dockbridge_oldpwd=${OLDPWD-}
      __dockbridge_sourcepath=-u
      if builtin shopt -q sourcepath; then
        __dockbridge_sourcepath=-s
      fi
      if builtin cd "$__dockbridge_directory"; then
        __dockbridge_file=bash
        builtin shopt -u sourcepath
      fi
    fi
  }

  __dockbridge_leave() {
    set +ax
    if [[ $__dockbridge_file == bash ]]; then
      builtin cd -- "$__dockbridge_cwd" || :
      OLDPWD=$__dockbridge_oldpwd
      if [[ -z $OLDPWD ]]; then
        builtin unset OLDPWD
      fi
      builtin shopt "$__dockbridge_sourcepath" sourcepath
    fi
  }

  __dockbridge_directory=$1
  __dockbridge_steps='{ __dockbridge_leave; } >&- 2>&-; while { __dockbridge_step; } >&- 2>&-; do if __dockbridge_last; then builtin eval "$__dockbridge_code"; else builtin eval "$__dockbridge_code"; fi; { __dockbridge_save "$?"; } 2>&-; done'
  __dockbridge_outer='while { __dockbridge_enter; } >&- 2>&-; do builtin . "$__dockbridge_file"; { __dockbridge_save "$?"; } 2>&-; done; builtin eval "$__dockbridge_outer"'
  __dockbridge_start='builtin eval "$__dockbridge_outer" 3<&-'
  builtin printf '{"event":"ready","shell":"bash"}\n' >&3
else
  # A descriptor has one digit here, so commands run without this one, and it is restored after them.
  exec 7<&3 3<&-

  __dockbridge_send() {
    command printf "$@" >&7
  }

  # The `read` of busybox polls, so it does not see the receive timeout of the socket.
  __dockbridge_timeout=
  case ${DOCKBRIDGE_IDLE_LIMIT_MS:-0} in
    *[!0-9]* | 0) ;;
    *)
      command read -t 1 __dockbridge_text 2>&- </dev/null
      if [ $? -eq 1 ]; then
        __dockbridge_timeout=$(((DOCKBRIDGE_IDLE_LIMIT_MS + 999) / 1000))
      fi
      ;;
  esac

  __dockbridge_read_line() {
    IFS=' ' command read -r ${__dockbridge_timeout:+"-t$__dockbridge_timeout"} __dockbridge_op __dockbridge_number __dockbridge_key __dockbridge_setup \
      __dockbridge_lines __dockbridge_first <&7
  }

  unset DOCKBRIDGE_IDLE_LIMIT_MS

  # Long texts are collected in blocks, because each concatenation copies the text.
  __dockbridge_read_lines() {
    __dockbridge_code=
    __dockbridge_block=
    __dockbridge_count=0
    while [ "$__dockbridge_count" -lt "$1" ]; do
      IFS= command read -r __dockbridge_text || exit 0 # a request that was not sent to its end must not run
      __dockbridge_block=$__dockbridge_block$__dockbridge_text$__dockbridge_newline
      __dockbridge_count=$((__dockbridge_count + 1))
      case $__dockbridge_count in
        *00)
          __dockbridge_code=$__dockbridge_code$__dockbridge_block
          __dockbridge_block=
          ;;
      esac
    done <&7
    __dockbridge_code=$__dockbridge_code$__dockbridge_block
  }

  __dockbridge_evaluate() {
    command eval "$1"
  }

  # `command eval` catches the error of an unset parameter, as every other one.
  __dockbridge_on_interrupt='
    __dockbridge_interrupted=1
    case $__dockbridge_begun in
      ?*) { : "${__dockbridge_unset?}"; } 2>&- ;;
    esac'

  __dockbridge_clean_up() {
    trap "$__dockbridge_on_interrupt" INT
  }

  __dockbridge_directory=$1
  __dockbridge_steps='while { __dockbridge_step; } >&- 2>&-; do if __dockbridge_last; then command eval "$__dockbridge_code" 7<&-; else command eval "$__dockbridge_code" 7<&-; fi; { __dockbridge_save "$?"; } 2>&-; done'
  __dockbridge_start='while :; do . "$__dockbridge_directory/bash"; { __dockbridge_save "$?"; } 2>&-; done; eval "$__dockbridge_start"'
  printf '{"event":"ready","shell":"sh"}\n' >&7
fi
