# Read by a restricted bash before the script whose commands are wanted (script.py): nothing that the script names is run. PATH leads
# to an empty directory, so that every program is "not found" and lands in the handler below, which notes its words; a restricted
# bash runs no program by its path, writes no file and sources none.

__ascend_e2e_note() {
  local name field
  local -a exported=()
  for name in $(compgen -e); do exported+=("$name=${!name}"); done
  # Two commands of a pipeline write at the same time: each field says who wrote it.
  for field in "$#" "$@" "${#exported[@]}" "${exported[@]}"; do
    printf '%s\0' "$BASHPID=$field" >&"$ASCEND_E2E_TRACE"
  done
}

command_not_found_handle() {
  __ascend_e2e_note "$@"
  return 0
}

# A restricted bash refuses these, and a script under `set -e` would end there.
source() { __ascend_e2e_note source "$@"; }
.() { __ascend_e2e_note source "$@"; }
cd() { :; }
pushd() { :; }
popd() { :; }
ulimit() { :; }
trap() { :; }
kill() { :; }
enable -n kill
exec() { "$@"; }
# What a script asks of its machine, with an answer that does no harm.
nproc() { echo 8; }
whoami() { echo user; }
hostname() { echo host; }
seq() { local i first=1 last=$1; (($# > 1)) && first=$1 last=$2; for ((i = first; i <= last; i++)); do echo "$i"; done; }
dirname() { [[ $1 == */* ]] && echo "${1%/*}" || echo .; }
basename() { local name=${1##*/}; echo "${name%"${2-}"}"; }
date() { printf '%(%Y%m%d-%H%M%S)T\n' -1; }

# A program that is named by its path, or whose output goes to a file, would be refused: its words are noted, and it is skipped.
__ascend_e2e_watch() {
  local text=$BASH_COMMAND words
  # What lets a trap skip a command; set by a startup file, bash would take it for the wish to start a debugger.
  shopt -s extdebug
  # Nothing that was skipped may end the script, whatever it has set.
  set +ex
  [[ ${FUNCNAME[1]-} == __ascend_e2e_* || ${FUNCNAME[1]-} == command_not_found_handle ]] && return 0
  [[ $text == "[["* || $text == "(("* || $text == "for "* || $text == "case "* ]] && return 0
  words=$text
  if [[ $text =~ (^|[[:space:]])[0-9]*(\&\>\>?|\>\>?\|?)[[:space:]]*[^\&[:space:]] ]]; then
    words=${text%%"${BASH_REMATCH[0]}"*}
  elif [[ ! $text =~ ^([A-Za-z_][A-Za-z0-9_]*=[^[:space:]]*[[:space:]]+)*[^[:space:]=]*/ ]]; then
    return 0
  fi
  # A sign within quotes is no redirection: then the words before it are no whole command.
  (eval "set -- $words") 2>&- || return 0
  eval "__ascend_e2e_note $words"
  return 1
}
set -T
builtin trap __ascend_e2e_watch DEBUG
