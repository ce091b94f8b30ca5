#!/usr/bin/env bash
# run.sh CLIENT RATIOND RATIONCTL - a StatsD client of other people, as Debian or npm has it, against a daemon of its own. Each client-* is a program
# that is told where to send, UDP-PORT TCP-PORT UNIX-PATH, and prints what must have been counted then: lines of PATH TOTAL. A client
# that is not installed is skipped (exit status 77), and it is said why.
set -euo pipefail
client=$1 rationd=$2 rationctl=$3
here=$(dirname "$(readlink -f "$0")")
export NODE_PATH=${RATIOND_NODE_MODULES:-$here/../../../../build/npm/node_modules}

skip() {
	printf 'SKIPPED: %s is not installed (./dev test installs it)\n' "$1" >&2
	exit 77
}

case $client in
statsd.py | aiodogstatsd.py)
	command=(/usr/bin/python3)
	/usr/bin/python3 -c "import ${client%.py}" 2>/dev/null || skip "python3-${client%.py}"
	;;
net-statsd.pl)
	command=(perl)
	perl -MNet::Statsd -e 1 2>/dev/null || skip libnet-statsd-perl
	;;
ruby-statsd.rb)
	command=(ruby)
	ruby -e 'require "statsd"' 2>/dev/null || skip ruby-statsd
	;;
*.js)
	command=(node)
	node -e "require('${client%.js}')" 2>/dev/null || skip "${client%.js} (npm)"
	;;
esac

folder=$(mktemp -d /tmp/rationd-clients-XXXXXX)
daemon=
clean() {
	[[ -z $daemon ]] || { kill "$daemon" && wait "$daemon"; } || true
	rm -rf "$folder"
}
trap clean EXIT
printf '[metric deploys]\nkind = gauge\n' >"$folder/conf"
export RATIOND_SOCKET=unix:$folder/socket
"$rationd" --config "$folder/conf" --ephemeral --listen "$RATIOND_SOCKET" --listen statsd+udp:127.0.0.1:0 \
	--listen statsd+tcp:127.0.0.1:0 --listen "statsd+unix:$folder/statsd" 2>"$folder/log" &
daemon=$!
until grep -q 'serving with' "$folder/log"; do
	kill -0 "$daemon" || { cat "$folder/log" >&2 && exit 1; }
	sleep 0.02
done
port() { sed -n "s/^rationd: listening on statsd+$1:127.0.0.1://p" "$folder/log"; }

"${command[@]}" "$here/client-$client" "$(port udp)" "$(port tcp)" "$folder/statsd" >"$folder/expected"
[[ -s $folder/expected ]] || { printf '%s said nothing\n' "$client" >&2 && exit 1; }
# What a client has sent is in the kernel's hands: it is counted soon.
for ((i = 0; i < 600; i++)); do
	wrong=0
	while read -r path total; do
		got=$("$rationctl" get --exact "$path" 2>/dev/null | cut -d ' ' -f 1) || got=
		[[ $got == "$total" ]] || { wrong=1 && seen="$path: ${got:-nothing}, not $total"; }
	done <"$folder/expected"
	((wrong == 1)) || break
	sleep 0.05
done
if ((wrong == 1)); then
	printf '%s\n' "$seen" >&2
	cat "$folder/log" >&2
	"$rationctl" status | grep statsd_ >&2
	exit 1
fi
cat "$folder/expected"
