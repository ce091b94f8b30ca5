#!/usr/bin/env bash
# run.sh BUILD CHECKS HELPERS - install the build tree BUILD in a throw-away systemd and run the script CHECKS there, which finds
# the programs of this folder in HELPERS.
#
# Exit status 77 is "this machine can't": a skipped test, but where CI=true, a failed one.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$1 checks=$2 helpers=$3

skip() {
	printf 'SKIPPED: %s\n' "$*" >&2
	if [[ ${CI-} == true ]]; then
		printf 'and where CI=true that is a failure\n' >&2
		exit 1
	fi
	exit 77
}

[[ -f $build/cmake_install.cmake ]] || skip "$build is not built: ./dev build"

# What is not on the root file system is not seen through the box's view of it.
options=()
for tree in "$here" "$build" "$helpers"; do
	[[ $(stat -c %d "$tree") == $(stat -c %d /) ]] || options+=(--bind-rw "$tree")
done

status=0
"$here/systemd-box" run --timeout 240 "${options[@]}" -- \
	env BUILD="$build" HELPERS="$helpers" bash "$here/$checks" || status=$?
((status != 77)) || skip "no systemd of our own on this machine, see above"
exit "$status"
