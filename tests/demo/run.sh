#!/usr/bin/env bash
# The main job, on real input, with every sum checked: ./dev demo builds the programs and runs this.
#
# usage: run.sh [--bin DIR] [--load PROGRAM] [--increments N]
#   --bin DIR         where rationd and rationctl are (build/release/bin)
#   --load PROGRAM    load.c, compiled; without it, it is compiled here against the libration of the same build
#   --increments N    of each thread in step 4
set -euo pipefail
export LC_ALL=C.UTF-8
top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
bin=$top/build/release/bin
load=""
processes=4
threads=4
counters=64
increments=10000000

# ---- how it speaks ----

bold="" plain=""
if [[ -t 1 ]]; then
	bold=$'\033[1m' plain=$'\033[0m'
fi
step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
say() { printf '   %s\n' "$@"; }
indent() { sed 's/^/     /'; }
die() {
	printf 'demo: %s\n' "$*" >&2
	exit 1
}
# 1234567 as 1,234,567
commas() { sed ':a; s/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/; ta' <<<"$1"; }
# Microseconds as "1.234 s"
seconds() { printf '%d.%03d s\n' $(($1 / 1000000)) $(($1 / 1000 % 1000)); }

while (($# > 0)); do
	(($# > 1)) || die "\"$1\" lacks its value, or is none of --bin DIR, --load PROGRAM, --increments N"
	case $1 in
	--bin) bin=$2 ;;
	--load) load=$2 ;;
	--increments) increments=$2 ;;
	*) die "\"$1\" is none of --bin DIR, --load PROGRAM, --increments N" ;;
	esac
	shift 2
done

# ---- what it starts, it ends ----

dir=$(mktemp -d "${TMPDIR:-/tmp}/rationd-demo.XXXXXX")
pids=()
cleanup() {
	local status=$? i
	trap - EXIT
	# The daemon, the first, goes last: who still talks to it does not complain.
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		kill "${pids[i]}" 2>/dev/null || true
		wait "${pids[i]}" 2>/dev/null || true
	done
	if ((status == 1)) && [[ -s $dir/rationd.log ]]; then
		printf '\nThe daemon said:\n' >&2
		tail -n 20 "$dir/rationd.log" >&2
	fi
	rm -rf "$dir"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# forget PID: it has been waited for.
forget() {
	local pid left=()
	for pid in "${pids[@]}"; do
		[[ $pid == "$1" ]] || left+=("$pid")
	done
	pids=("${left[@]}")
}

# wait_all PID...: all of them have ended well.
wait_all() {
	local pid
	for pid in "$@"; do
		wait "$pid" || die "process $pid ended with status $?"
		forget "$pid"
	done
}

command -v dpkg-query >/dev/null || die "the input is Debian's package database, and there is no dpkg-query here"
for program in rationd rationctl; do
	[[ -x $bin/$program ]] || die "there is no $bin/$program; ./dev build makes it"
done
rationctl=$bin/rationctl
export RATIOND_SOCKET=unix:$dir/rationd.sock

if [[ -z $load ]]; then
	load=$dir/demo-load
	library=$(dirname "$bin")/clients/c
	cc -O2 -std=gnu11 -pthread -o "$load" "$top/tests/demo/load.c" -I"$top/clients/c/include" \
		-L"$library" -Wl,-rpath,"$library" -lration
fi

# ---- 1 ----

# Always the first of `pids`.
start_daemon() {
	"$bin/rationd" --listen "$RATIOND_SOCKET" --listen http:127.0.0.1:0 --listen statsd+udp:127.0.0.1:0 \
		--state "$dir/state.db" 2>"$dir/rationd.log" &
	daemon=$!
	pids=("$daemon" "${pids[@]}")
	for ((i = 0; ; i++)); do
		"$rationctl" flush 2>/dev/null && break
		kill -0 "$daemon" 2>/dev/null || die "rationd did not start"
		((i < 600)) || die "rationd does not answer on $RATIOND_SOCKET"
		sleep 0.05
	done
}

step "1. A daemon"
start_daemon
say "rationd, process $daemon, listens on $RATIOND_SOCKET and keeps what is counted in $dir/state.db"

# ---- 2 ----

step "2. What is installed on this machine, by section"
# A section like contrib/net is two levels of the tree. Packages without a section count under "none", without a size 0.
# shellcheck disable=SC2016 # dpkg-query's own ${}
dpkg-query -W -f '${db:Status-Status}\t${Section}\t${Package}\t${Installed-Size}\n' |
	awk -F '\t' '$1 == "installed" { print ($2 == "" ? "none" : $2) "\t" $3 "\t" ($4 == "" ? 0 : $4) }' >"$dir/packages"
[[ -s $dir/packages ]] || die "the package database is empty"
awk -F '\t' '{ print "installed_kib/" $1 "/" $2, $3 }' "$dir/packages" >"$dir/lines"
split -n "r/$processes" "$dir/lines" "$dir/part."
senders=()
for part in "$dir"/part.*; do
	"$rationctl" add - <"$part" &
	senders+=($!)
done
pids+=("${senders[@]}")
wait_all "${senders[@]}"
say "$(wc -l <"$dir/packages") packages, sent by $processes processes at once as lines like"
head -n 2 "$dir/lines" | indent
say "rationctl tree installed_kib --depth 1 --sort total:"
"$rationctl" tree --exact installed_kib --depth 1 --sort total >"$dir/tree"
head -n 9 "$dir/tree" | indent
(($(wc -l <"$dir/tree") <= 9)) || say "  ..."

# An independent sum for every level: each prefix of a section gets the sizes of all packages below it.
awk -F '\t' '{
	n = split($1, segments, "/")
	path = "installed_kib"
	sum[path] += $3
	for (i = 1; i <= n; i++) {
		path = path "/" segments[i]
		sum[path] += $3
	}
}
END { for (path in sum) printf "%.0f %s\n", sum[path], path }' "$dir/packages" | sort -k 2 >"$dir/expected"
cut -d ' ' -f 2 "$dir/expected" | xargs "$rationctl" get --exact | awk '{ print $1, $2 }' | sort -k 2 >"$dir/counted"
diff -u --label "summed by awk" --label "counted by rationd" "$dir/expected" "$dir/counted" || die "these sums differ"
say "$(($(wc -l <"$dir/expected") - 1)) sections, each total equal to awk's sum; $(commas "$(head -n 1 "$dir/expected" | cut -d ' ' -f 1)") KiB in all"

# ---- 3 ----

step "3. A quota for each section: half of what it has"
# Sizes of packages that have one, as charges. A section of two levels, contrib/net, has a max at both.
awk -F '\t' '$3 > 0 { print "allowed_kib/" $1 "/" $2, $3 }' "$dir/packages" >"$dir/charges"
awk '{
	n = split($1, segments, "/")
	path = segments[1]
	for (i = 2; i < n; i++) {
		path = path "/" segments[i]
		sum[path] += $2
	}
}
END { for (path in sum) printf "%s %.0f\n", path, int(sum[path] / 2) }' "$dir/charges" | sort >"$dir/maxima"
while read -r path max; do
	"$rationctl" quota set "$path" --max "$max" 2>>"$dir/notes"
done <"$dir/maxima"
say "$(wc -l <"$dir/maxima") limits, set by commands like" "  rationctl quota set $(sed 's/ / --max /;q' "$dir/maxima")"

# All of a section goes to one process: so the order in it is that of the list, whatever the others do.
awk -v dir="$dir" -v n="$processes" '{
	split($1, segments, "/")
	if (!(segments[2] in group)) {
		group[segments[2]] = groups++ % n
	}
	print >(dir "/charge." group[segments[2]])
}' "$dir/charges"
chargers=()
for part in "$dir"/charge.*; do
	# Status 1: some were refused.
	{ "$rationctl" charge - <"$part" >"$part.verdicts" 2>"$part.said" || (($? == 1)) || { cat "$part.said" >&2 && exit 1; }; } &
	chargers+=($!)
done
pids+=("${chargers[@]}")
wait_all "${chargers[@]}"
cat "$dir"/charge.*.verdicts >"$dir/verdicts"
granted=$(grep -c ^granted "$dir/verdicts" || true)
refused=$(grep -c ^refused "$dir/verdicts" || true)
say "$processes processes ask for room for each package, section by section, with rationctl charge -:" \
	"  $(commas "$granted") charges granted, $(commas "$refused") refused; the first of them, asked again:"
IFS=$'\t' read -r _ size path _ < <(grep -m 1 ^refused "$dir/verdicts")
say "  rationctl charge $path $size"
status=0
"$rationctl" charge "$path" "$size" 2>"$dir/refusal" || status=$?
fold -s -w 100 "$dir/refusal" | indent
((status == 1)) || die "a charge that was refused before ended with status $status, not 1"
say "rationctl tree allowed_kib --depth 1 --sort total --limits:"
"$rationctl" tree --exact allowed_kib --depth 1 --sort total --limits >"$dir/tree"
head -n 9 "$dir/tree" | indent

# The same by awk: in the order of the list, a package is in if it fits its section, and the section above. Then, whatever the order:
# nothing that was refused fits into what is left.
awk -v verdicts="$dir/verdicts.expected" -v usage="$dir/usage.expected" '
function fits(path, size, used, i, n, segments, at) {
	n = split(path, segments, "/")
	at = segments[1]
	for (i = 2; i < n; i++) {
		at = at "/" segments[i]
		if (used[at] + size > max[at]) {
			return 0
		}
	}
	return 1
}
function use(path, size, i, n, segments, at) {
	n = split(path, segments, "/")
	at = segments[1]
	for (i = 2; i < n; i++) {
		at = at "/" segments[i]
		used[at] += size
	}
}
NR == FNR { max[$1] = $2; next }
fits($1, $2, used) { use($1, $2); print "granted\t" $2 "\t" $1 >verdicts; next }
{ out[$1] = $2; print "refused\t" $2 "\t" $1 >verdicts }
END {
	for (path in max) {
		printf "%.0f %s\n", used[path], path >usage
	}
	for (path in out) {
		if (fits(path, out[path], used)) {
			print "demo: " path " was refused, and fits" >"/dev/stderr"
			exit 1
		}
	}
}' "$dir/maxima" "$dir/charges" || die "this is not the most that fits"
compare() {
	diff -u --label "$1 by awk" --label "$1 by rationd" <(sort "$2") <(sort "$3") || die "these differ"
}
cut -f 1-3 "$dir/verdicts" >"$dir/verdicts.given"
compare decided "$dir/verdicts.expected" "$dir/verdicts.given"
cut -d ' ' -f 1 "$dir/maxima" | xargs "$rationctl" get --exact | awk '{ print $1, $2 }' >"$dir/usage.given"
compare used "$dir/usage.expected" "$dir/usage.given"
say "each of the $(commas $((granted + refused))) charges was decided as awk decides, and $(wc -l <"$dir/usage.given") usages equal awk's:" \
	"no section has more than its max, and no refused package fits into what is left"

# ---- 4 ----

# The daemon's CPU time in microseconds: what the scheduler has given to its threads; from a kernel that doesn't say so, in ticks.
cpu_us() {
	if [[ -r /proc/$daemon/schedstat ]]; then
		cat "/proc/$daemon"/task/*/schedstat | awk '{ ns += $1 } END { printf "%.0f\n", ns / 1e3 }'
	else
		# User and system are fields 14 and 15, after a name that may hold blanks.
		sed 's/.*) //' "/proc/$daemon/stat" | awk -v hz="$(getconf CLK_TCK)" '{ printf "%.0f\n", ($12 + $13) * 1e6 / hz }'
	fi
}

step "4. Counting at full speed"
total=$((processes * threads * increments))
say "$processes processes of $threads threads add 1 to $counters shared counters, $(commas $total) times in all,"
say "while rationctl tree load walks in a loop"
cpu_before=$(cpu_us)
start=${EPOCHREALTIME/./}
start_loads() {
	loads=()
	for ((i = 0; i < processes; i++)); do
		"$load" "$RATIOND_SOCKET" "$threads" "$increments" "$counters" &
		loads+=($!)
	done
	pids+=("${loads[@]}")
}
start_loads
(
	# A first walk may come before the first counter: status 3.
	walks=0
	until [[ -e $dir/stop ]]; do
		"$rationctl" tree load >"$dir/walk" 2>&1 || (($? == 3)) || { cat "$dir/walk" >&2 && exit 1; }
		walks=$((walks + 1))
	done
	echo "$walks" >"$dir/walks"
) &
reader=$!
pids+=("$reader")
wait_all "${loads[@]}"
end=${EPOCHREALTIME/./}
touch "$dir/stop"
wait_all "$reader"
cpu=$(($(cpu_us) - cpu_before))
counted=$("$rationctl" get --exact load | awk '{ print $1 }')
say "added   $(commas $total)" \
	"counted $(commas "$counted")" \
	"in $(seconds $((end - start))): $((total / (end - start))) million a second, while the tree was walked $(<"$dir/walks") times" \
	"the daemon's CPU time for it, walks included: $(seconds "$cpu"); libration sends it sums, not single increments"
[[ $counted == "$total" ]] || die "added and counted differ"

# ---- 5 ----

# port_of KIND: where the daemon listens for it.
port_of() { sed -n "s/^rationd: listening on $1:127\.0\.0\.1://p" "$dir/rationd.log"; }

step "5. A StatsD client of other people"
if /usr/bin/python3 -c 'import statsd' 2>/dev/null; then
	/usr/bin/python3 - "$(port_of 'statsd+udp')" "$dir/packages" <<'END'
import sys

import statsd

with statsd.StatsClient("127.0.0.1", int(sys.argv[1])).pipeline() as pipe, open(sys.argv[2]) as packages:
    for line in packages:
        section, _, size = line.rstrip("\n").split("\t")
        pipe.incr("statsd_kib." + section.replace("/", "."), int(size))
END
	lines=$(wc -l <"$dir/packages")
	for ((i = 0; ; i++)); do
		counted=$("$rationctl" status | awk '$1 == "statsd_lines" { print $2 }')
		((counted < lines)) || break
		((i < 600)) || die "of $lines lines $counted were counted"
		sleep 0.05
	done
	sed 's/ installed_kib/ statsd_kib/' "$dir/expected" >"$dir/statsd.expected"
	cut -d ' ' -f 2 "$dir/statsd.expected" | xargs "$rationctl" get --exact | awk '{ print $1, $2 }' >"$dir/statsd.given"
	compare counted "$dir/statsd.expected" "$dir/statsd.given"
	say "Debian's python3-statsd, as it is, has sent the $(commas "$lines") sizes over UDP; rationctl tree statsd_kib --depth 1 --sort total:"
	"$rationctl" tree --exact statsd_kib --depth 1 --sort total >"$dir/tree"
	head -n 4 "$dir/tree" | indent
	say "all $(wc -l <"$dir/statsd.given") totals equal those of step 2"
else
	say "python3-statsd is not here"
fi

# ---- 6 ----

step "6. What Prometheus gets"
http=$(port_of http)
# page PATH: what rationd answers over HTTP, without the headers.
page() {
	exec 3<>"/dev/tcp/127.0.0.1/$http"
	printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
	sed '1,/^\r$/d' <&3
	exec 3>&-
}
page /metrics >"$dir/metrics"
say "http://127.0.0.1:$http/metrics has $(grep -vc '^#' "$dir/metrics") series, such as"
grep -m 2 '^installed_kib' "$dir/metrics" | indent
grep -m 1 '^rationd_quota_usage' "$dir/metrics" | indent
scraped=$(awk '/^load_total\{/ { sum += $NF } END { printf "%.0f\n", sum }' "$dir/metrics")
[[ $scraped == "$total" ]] || die "the sum of load_total is $scraped, not $total"
say "the sum of load_total is $(commas "$scraped"), as it was counted"
if command -v promtool >/dev/null; then
	promtool check metrics <"$dir/metrics" >"$dir/promtool" 2>&1 || die "promtool check metrics: $(<"$dir/promtool")"
	say "promtool check metrics, of Prometheus: $(promtool --version 2>&1 | sed -n 's/.*version \([^ ]*\).*/\1/p;q') has nothing to say against it"
else
	say "promtool is not here: Debian's prometheus has it"
fi

# ---- 7 ----

step "7. kill -9, while it counts"
# What rationctl and StatsD have sent is kept by nobody but the daemon. The programs keep theirs until it is durable.
"$rationctl" flush --durable
start_loads
until counted=$("$rationctl" get load | awk '{ print $1 }') && ((counted > total)); do
	sleep 0.01
done
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null || true
forget "$daemon"
say "the same programs count once more; rationd is killed when $(commas "$counted") are counted, and started again:"
start_daemon
grep '^rationd: restored from' "$dir/rationd.log" | sed "s|$dir/||" | fold -s -w 100 | indent
wait_all "${loads[@]}"
counted=$("$rationctl" get --exact load | awk '{ print $1 }')
say "added   $(commas $((2 * total)))" "counted $(commas "$counted")"
[[ $counted == "$((2 * total))" ]] || die "added and counted differ"
cut -d ' ' -f 1 "$dir/maxima" | xargs "$rationctl" get --exact | awk '{ print $1, $2 }' >"$dir/usage.given"
compare used "$dir/usage.expected" "$dir/usage.given"
say "and nothing else has changed: $(wc -l <"$dir/usage.given") usages equal awk's as before"

# ---- 8 ----

step "8. The end"
kill -TERM "$daemon"
status=0
wait "$daemon" || status=$?
forget "$daemon"
((status == 0)) || die "rationd ended with status $status"
[[ ! -e $dir/rationd.sock ]] || die "rationd left its socket behind"
say "SIGTERM; rationd ended with status 0"

step "All matched."
