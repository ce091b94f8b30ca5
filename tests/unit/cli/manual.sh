#!/usr/bin/env bash
# usage: manual.sh PAGE RATIONCTL
# The man page formats without a complaint and names every command and option that --help does.
set -euo pipefail
page=$1
rationctl=$2
failed=0

if command -v groff >/dev/null; then
	complaints=$(groff -ww -man -Tutf8 -z "$page" 2>&1)
	[[ -z $complaints ]] || { printf '%s\n' "$complaints" >&2 && failed=1; }
fi
if command -v mandoc >/dev/null; then
	# The page has no date: two builds of one source are the same.
	complaints=$(mandoc -Tlint "$page" | grep -v 'missing date' || true)
	[[ -z $complaints ]] || { printf '%s\n' "$complaints" >&2 && failed=1; }
fi

plain=$(sed 's/\\-/-/g; s/\\&//g' "$page")
while read -r word; do
	if [[ $plain != *"$word"* ]]; then
		printf 'the page does not name %s\n' "$word" >&2
		failed=1
	fi
done < <("$rationctl" help | sed -n '/^commands:/,/^$/s/^  \([a-z]\+\( [a-z]\+\)\?\) .*/.SS "rationctl \1/p
	s/^  \(--[a-z-]*\).*/\1/p')
while read -r option; do
	[[ $plain == *"$option"* ]] || { printf 'the page does not name %s\n' "$option" >&2 && failed=1; }
done < <("$rationctl" help | sed -n '/^commands:/,/^$/s/^  \([a-z]\+\( [a-z]\+\)\?\) .*/\1/p' | while read -ra words; do
	"$rationctl" "${words[@]}" --help
done | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
exit "$failed"
