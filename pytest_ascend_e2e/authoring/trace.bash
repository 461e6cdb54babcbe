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

# What a program would have printed is not known: a name stands for it, which no arithmetic of bash takes for a number.
__ascend_e2e_skip() {
  __ascend_e2e_note "$@"
  echo "OUTPUT.OF.${1##*/}"
}

command_not_found_handle() {
  __ascend_e2e_skip "$@"
  return 0
}

# A restricted bash refuses these, and a script under `set -e` would end there.
source() { __ascend_e2e_note source "$@"; }
.() { __ascend_e2e_note source "$@"; }
cd() {
  while [[ ${1-} == -[LPe@]* || ${1-} == -- ]]; do shift; done
  local to=${1:-$HOME}
  [[ $to == - ]] && to=${OLDPWD:-$PWD}
  [[ $to == /* ]] || to=$PWD/$to
  to=$to/
  while [[ $to == *//* ]]; do to=${to//\/\//\/}; done
  while [[ $to == */./* ]]; do to=${to//\/.\//\/}; done
  while [[ $to == *?/../* ]]; do
    local above=${to%%/../*}
    to=${above%/*}/${to#*/../}
  done
  OLDPWD=$PWD
  PWD=${to%/}
  PWD=${PWD:-/}
}
pwd() { echo "$PWD"; }
pushd() { cd "$@"; }
popd() { cd -; }
ulimit() { :; }
trap() { :; }
# What a script waits for is over.
kill() { [[ ${1-} != -0 ]]; }
enable -n kill
disown() { :; }
wait() { builtin wait; }
exec() {
  while [[ ${1-} == -* ]]; do
    [[ $1 == -a ]] && shift
    shift
  done
  "$@"
}
# What a script asks of its machine, with an answer that does no harm.
nproc() { __ascend_e2e_note nproc "$@" && echo 8; }
whoami() { __ascend_e2e_note whoami "$@" && echo user; }
hostname() { __ascend_e2e_note hostname "$@" && echo host; }
seq() { local i first=1 last=$1; (($# > 1)) && first=$1 last=$2; for ((i = first; i <= last; i++)); do echo "$i"; done; }
dirname() {
  local above=.
  [[ $1 == */* ]] && above=${1%/*}
  echo "${above:-/}"
}
basename() {
  local name=${1%/}
  name=${name##*/}
  echo "${name%"${2-}"}"
}
realpath() { (cd "${!#}" && pwd); }
readlink() { realpath "$@"; }
cat() {
  local file
  for file in "${@:-/dev/stdin}"; do
    if [[ -r $file ]]; then printf '%s\n' "$(<"$file")"; else __ascend_e2e_skip cat "$file"; fi
  done
}
date() {
  local form=%Y%m%d-%H%M%S
  [[ ${1-} == +* ]] && form=${1#+}
  printf "%($form)T\n" -1
}

# Go through a function or a text of the script as bash would have, with variables of its own before it.
ascend_e2e_enter() {
  while [[ $1 == [A-Za-z_]*([A-Za-z0-9_])=* ]]; do
    export "$1"
    shift
  done
  "$@"
}

# A program that is named by its path, or whose output goes to a file, would be refused: its words are noted, and it is skipped. A
# function is entered without the file. Nothing here may hide or change a variable of the script.
__ascend_e2e_watch() {
  local __ascend_e2e_words __ascend_e2e_place=1
  # What lets a trap skip a command; set by a startup file, bash would take it for the wish to start a debugger.
  shopt -s extdebug
  # Nothing that was skipped may end the script, whatever it has set.
  set +ex
  [[ ${FUNCNAME[1]-} == __ascend_e2e_* || ${FUNCNAME[1]-} == command_not_found_handle ]] && return 0
  [[ $BASH_COMMAND == "[["* || $BASH_COMMAND == "(("* || $BASH_COMMAND == "for "* || $BASH_COMMAND == "case "* ]] && return 0
  # Most commands are told apart without another process, of which a loop would start thousands.
  [[ $BASH_COMMAND == *[\>/]* || $BASH_COMMAND == ?(\")\$* || $BASH_COMMAND == [A-Za-z_]*([A-Za-z0-9_])=*[[:space:]]?(\")\$* ]] ||
    return 0
  __ascend_e2e_words=$(__ascend_e2e_refused "$BASH_COMMAND") && (eval "set -- $__ascend_e2e_words") 2>&- || return 0
  eval "set -- $__ascend_e2e_words"
  while [[ ${!__ascend_e2e_place-} == [A-Za-z_]*([A-Za-z0-9_])=* ]]; do ((__ascend_e2e_place += 1)); done
  [[ -n ${!__ascend_e2e_place-} ]] || return 0
  [[ $__ascend_e2e_words != "$BASH_COMMAND" || ${!__ascend_e2e_place} == */* ]] || return 0
  if [[ ${!__ascend_e2e_place} == eval || -n $(declare -F -- "${!__ascend_e2e_place}") ]]; then
    (
      builtin trap '__ascend_e2e_watch "$@"' DEBUG
      ascend_e2e_enter "$@"
    )
  else
    __ascend_e2e_skip "$@"
  fi
  return 1
}

# Print the words of a command that a restricted bash may refuse, up to a redirection to a file; fail for any other.
__ascend_e2e_refused() {
  local rest=$1 words=
  local plain="[^[:space:]\"'\`\$(]|\"[^\"]*\"|'[^']*'|[\$][A-Za-z_0-9]+|[\$][{][^}]*[}]"
  while [[ $rest =~ (^|[[:space:]])[0-9]*(\&\>\>?|\>\>?\|?)[[:space:]]*[^\&[:space:]] ]]; do
    words+=${rest%%"${BASH_REMATCH[0]}"*}
    # A sign within quotes is no redirection: then the words before it are no whole command.
    (eval "_() { set -- $words"$'\n}') 2>&- && printf '%s' "$words" && return
    words+=${BASH_REMATCH[0]} rest=${rest#*"${BASH_REMATCH[0]}"}
  done
  [[ $1 =~ ^([A-Za-z_][A-Za-z0-9_]*=($plain)*[[:space:]]+)*(\"?[\$]|[^[:space:]=\(]*/) ]] && printf '%s' "$1"
}

# A program that would have read a pipe ends at once, and who writes to it goes on.
builtin trap '' PIPE
# What is skipped in the background leaves no $!, which a script under `set -u` reads.
: &
builtin wait
set -T
builtin trap '__ascend_e2e_watch "$@"' DEBUG
