#!/usr/bin/env bash
# Runs the benchmarks that ./dev bench has built, one after another: all, or those named. README.md says what they measure.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

programs=${RATIOND_BENCH_DIR:-build/release/bin-bench}

die() {
	printf 'bench: %s\n' "$*" >&2
	exit 1
}

names() { find "$programs" -maxdepth 1 -type f -perm -u+x -name 'bench-*' -printf '%f\n' 2>/dev/null | sed 's/^bench-//' | sort; }

# Benchmarks of one subject whose names have no beginning in common.
declare -A groups=(
	[charge]='quota ration-try wire-charge' # limits, charges, leases
)

ungrouped() {
	local name
	for name in "$@"; do
		name=${name#bench-}
		printf '%s\n' "${groups[$name]:-$name}"
	done
}

# The benchmark of this name, and those whose names begin with it and a dash: wire is wire-ingest, wire-latency and so on.
chosen() {
	local name found
	for name in $(ungrouped "$@"); do
		found=$(names | grep -E "^${name//[^a-z0-9-]/.}(-|$)") || die "there is no benchmark \"$name\"; there are: $(names | xargs)"
		printf '%s\n' "$found"
	done | awk '!seen[$0]++'
}

machine() {
	printf '%s, %s CPUs, Linux %s, load %s\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
		"$(nproc)" "$(uname -r)" "$(cut -d ' ' -f 1-3 /proc/loadavg)"
}

mapfile -t all < <(names)
((${#all[@]} > 0)) || die "nothing in $programs: run ./dev bench"
if (($# > 0)); then
	list=$(chosen "$@")
	mapfile -t all <<<"$list"
fi
machine
failed=()
for name in "${all[@]}"; do
	printf '\n==== %s\n' "$name"
	"$programs/bench-$name" || failed+=("$name")
done
printf '\n'
machine
((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
