#!/usr/bin/env bash
# The socket for HTTP as it is installed: passed in, kept across restarts.
# shellcheck source=/dev/null
source "$(dirname "$0")/checks.sh"
install_build
ip link set lo up 2>/dev/null || true

# get PATH: what is answered, headers and all; fails if nobody listens.
get() {
	exec 3<>/dev/tcp/127.0.0.1/9476 || return
	printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
	cat <&3
	exec 3>&-
}
has() { get "$1" 2>/dev/null | grep -qxF -- "$2"; }

say 'the unit says nothing that systemd does not understand, and is off unless somebody wants it'
expect '' systemd-analyze verify rationd-http.socket
expect disabled systemctl is-enabled rationd-http.socket

say 'the first request starts the daemon, and is answered'
systemctl start rationd.socket rationd-http.socket
expect inactive systemctl is-active rationd.service
within 5 has /readyz ready
expect active systemctl is-active rationd.service
expect_like 'Serving on 2 sockets *' show StatusText

say 'it shows what is counted, with no network of its own'
expect_status 0 rationctl add requests/acme/web 5
has /metrics 'requests_total{path="acme/web"} 5' || fail 'not in /metrics'
[[ $(readlink "/proc/$(show MainPID)/ns/net") != "$(readlink /proc/self/ns/net)" ]] || fail 'it has a network'

say 'a restart refuses no connection, and the socket outlives it'
refused=0 answered=0
for ((i = 0; i < 300; i++)); do
	if ((i % 60 == 30)); then
		systemctl restart --no-block rationd.service
	fi
	if answer=$(get /metrics 2>/dev/null); then
		[[ $answer != *'requests_total{path="acme/web"} 5'* ]] || answered=$((answered + 1))
	else
		refused=$((refused + 1))
	fi
done
expect 0 echo "$refused"
printf '   %d of %d requests answered\n' "$answered" "$i"
((answered > 250)) || fail 'too few were answered'
within 5 has /metrics 'requests_total{path="acme/web"} 5'

say 'stopped, nobody listens'
systemctl stop rationd-http.socket rationd.service
if get /healthz >/dev/null 2>&1; then
	fail 'somebody does'
fi
say 'done'
