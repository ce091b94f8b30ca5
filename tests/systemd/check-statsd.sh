#!/usr/bin/env bash
# The socket for StatsD as it is installed: passed in several, kept across restarts.
# shellcheck source=/dev/null
source "$(dirname "$0")/checks.sh"
install_build
ip link set lo up 2>/dev/null || true

say 'the unit says nothing that systemd does not understand, and is off unless somebody wants it'
expect '' systemd-analyze verify rationd-statsd.socket
expect disabled systemctl is-enabled rationd-statsd.socket

say 'the first datagram starts the daemon, and is counted'
systemctl start rationd.socket rationd-statsd.socket
expect inactive systemctl is-active rationd.service
expect 'root:rationd 660' stat -c '%U:%G %a' /run/rationd/statsd.sock
printf 'first.port:2|c' >/dev/udp/127.0.0.1/8125
total() { rationctl get --exact "$@" 2>/dev/null; }
counted() { [[ $(total "$2") == "$1  $2" ]]; }
within 5 counted 2 first/port
expect active systemctl is-active rationd.service
expect_like 'Serving on 5 sockets *' show StatusText

say 'over TCP, and by the path'
printf 'first.tcp:3|c\n' >/dev/tcp/127.0.0.1/8125
"$HELPERS/chatter" /run/rationd/statsd.sock 8125 10 >/tmp/chatted
within 5 counted 3 first/tcp
within 5 counted "$(cat /tmp/chatted)" chat/path
within 5 counted "$(cat /tmp/chatted)" chat/port

say 'with no network of its own'
[[ $(readlink "/proc/$(show MainPID)/ns/net") != "$(readlink /proc/self/ns/net)" ]] || fail 'it has a network'

say 'sockets that a client has connected survive restarts, and nothing is lost'
before=$(total chat/path | cut -d ' ' -f 1)
"$HELPERS/chatter" /run/rationd/statsd.sock 8125 3000 >/tmp/chatted &
chatter=$!
for ((i = 0; i < 4; i++)); do
	sleep 0.4
	systemctl restart rationd.service
done
wait $chatter || fail 'a line could not be sent'
expected=$(($(cat /tmp/chatted) + before))
within 10 counted "$expected" chat/path
within 10 counted "$expected" chat/port
printf '   %d lines each way\n' "$expected"

say 'stopped, the socket takes no more'
systemctl stop rationd-statsd.socket rationd.service
[[ ! -e /run/rationd/statsd.sock ]] || fail 'its socket is still there'
say 'done'
