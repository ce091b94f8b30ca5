#!/usr/bin/env bash
# usage: completion.sh COMPLETION RATIONCTL
# The bash completion is well formed, and offers every command, every option of each, and the values of options.
set -euo pipefail
completion=$1
rationctl=$2
failed=0

# The real one works within a completion alone.
# shellcheck disable=SC2317
compopt() { :; }

bash -n "$completion"
# shellcheck source=/dev/null
source "$completion"

# expect OFFERED WORD...: with the cursor at the last WORD, exactly these words are offered.
expect() {
	local offered=$1
	shift
	COMP_WORDS=(rationctl "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	_rationctl
	if [[ ${COMPREPLY[*]} != "$offered" ]]; then
		printf 'rationctl %s: offers "%s", not "%s"\n' "$*" "${COMPREPLY[*]}" "$offered" >&2
		failed=1
	fi
}

options_of() { sed -n 's/^  \(--[a-z-]*\).*/\1/p'; }

# The lines "  name [second word] ARGS   summary" of help.
mapfile -t commands < <("$rationctl" help | sed -n '/^commands:/,/^$/s/^  \([a-z]\+\( [a-z]\+\)\?\) .*/\1/p')
((${#commands[@]} >= 8))
for command in "${commands[@]}"; do
	read -ra words <<<"$command"
	expect "${words[0]}" "${words[0]}"
	if ((${#words[@]} > 1)); then
		expect "${words[1]}" "${words[@]}"
	fi
	mapfile -t options < <("$rationctl" "${words[@]}" --help | options_of)
	((${#options[@]} >= 4))
	COMP_WORDS=(rationctl "${words[@]}" --)
	COMP_CWORD=$((${#words[@]} + 1))
	_rationctl
	if [[ $(printf '%s\n' "${COMPREPLY[@]}" | sort) != $(printf '%s\n' "${options[@]}" | sort) ]]; then
		printf '%s: offers "%s", help has "%s"\n' "$command" "${COMPREPLY[*]}" "${options[*]}" >&2
		failed=1
	fi
done

mapfile -t first < <(printf '%s\n' "${commands[@]%% *}" | uniq)
expect "${first[*]}" ""
expect "${first[*]}" --json ""
expect "${first[*]}" --timeout 5s ""
expect "${first[*]}" --socket unix : /run/x.sock ""
expect "${first[*]}" --socket = tcp : localhost : 80 ""
expect "show set" metric ""
expect "show set" --socket unix : /x metric ""
expect "" get ""
expect "name total" tree --sort ""
expect "total" tree --sort t
expect "total" tree --sort = t
expect "name total" tree --sort =
expect "counter gauge" metric set x --kind ""
expect "" tree --depth ""
expect "set show explain remove" quota ""
expect "day week month" quota set x --max 5 --calendar ""
expect "" quota set x --rate ""
expect "none rate" quota remove x --window ""
expect "--charge" run --wait --c
expect "" charge --wait ""
expect "unix: tcp:" --socket ""
expect "$completion" --socket unix : "${completion%?}"
expect "--socket --json --timeout --help --version" --
exit "$failed"
