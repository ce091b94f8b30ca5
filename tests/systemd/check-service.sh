#!/usr/bin/env bash
# The service and its socket as they are installed: start, activation, sandbox, restart, stop.
# shellcheck source=/dev/null
source "$(dirname "$0")/checks.sh"
install_build

say 'the units say nothing that systemd does not understand'
expect '' systemd-analyze verify rationd.service rationd.socket

say 'exposure'
systemd-analyze security --offline=true --threshold=4 rationd.service >/tmp/security ||
	fail "$(grep -E '✗|→' /tmp/security)"
grep -- '→' /tmp/security

say 'the first connection starts it'
systemctl start rationd.socket
expect 'root:rationd 660' stat -c '%U:%G %a' /run/rationd/rationd.sock
expect inactive systemctl is-active rationd.service
rationctl add requests/first 3
expect '3  requests/first' rationctl get --exact requests/first
expect active systemctl is-active rationd.service
expect rationd stat -c %U "/proc/$(show MainPID)"
expect 'root:rationd 660' stat -c '%U:%G %a' /run/rationd/rationd.sock
expect_like 'Serving on 1 socket with * worker*: * connection*, * requests/s, * adds/s.' show StatusText
expect 0 show NFileDescriptorStore

say 'what is after it finds it ready'
systemctl stop rationd.service
cat >/etc/systemd/system/user-of-it.service <<'UNIT'
[Unit]
Wants=rationd.service
After=rationd.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/rationctl add requests/after
UNIT
systemctl daemon-reload
systemctl start user-of-it.service || fail 'it was not there'
ready=$(show ActiveEnterTimestampMonotonic)
used=$(systemctl show --value --property ExecMainStartTimestampMonotonic user-of-it.service)
((0 < ready && ready <= used)) || fail "it was ready at $ready, and used at $used"

say 'the sandbox is in force'
for setting in User=rationd Type=notify Restart=on-failure LimitNOFILE=65536 OOMScoreAdjust=-500 \
	WatchdogUSec=30s NoNewPrivileges=yes PrivateNetwork=yes PrivateDevices=yes PrivateTmp=yes PrivateIPC=yes PrivateMounts=yes \
	ProtectSystem=strict ProtectHome=yes ProtectProc=invisible ProcSubset=pid ProtectClock=yes ProtectControlGroups=yes \
	ProtectHostname=yes ProtectKernelLogs=yes ProtectKernelModules=yes ProtectKernelTunables=yes LockPersonality=yes \
	MemoryDenyWriteExecute=yes RemoveIPC=yes RestrictRealtime=yes RestrictSUIDSGID=yes RestrictNamespaces=yes \
	RestrictAddressFamilies=AF_UNIX SystemCallArchitectures=native UMask=0077 DevicePolicy=closed CapabilityBoundingSet= \
	AmbientCapabilities= RuntimeDirectoryPreserve=yes RuntimeDirectory=rationd ConfigurationDirectory=rationd \
	NoExecPaths=/; do
	expect "${setting#*=}" show "${setting%%=*}"
done
pid=$(show MainPID)
expect 0000000000000000 proc_status CapEff
expect 0000000000000000 proc_status CapBnd
expect 1 proc_status NoNewPrivs
expect 2 proc_status Seccomp
[[ $(readlink "/proc/$pid/ns/net") != "$(readlink /proc/self/ns/net)" ]] || fail 'it has a network'
if nsenter --target "$pid" --mount touch /usr/x /etc/x 2>/dev/null; then
	fail 'it may write to the system'
fi

say 'over TCP too, with no network of its own'
cp /usr/share/doc/rationd/examples/rationd-tcp.socket /etc/systemd/system/
systemctl daemon-reload
systemctl stop rationd.service
systemctl start rationd-tcp.socket
expect_status 0 rationctl --socket tcp:127.0.0.1:9475 add requests/tcp 5
expect '5  requests/tcp' rationctl get --exact requests/tcp
expect_like 'Serving on 2 sockets *' show StatusText
systemctl stop rationd-tcp.socket
rm /etc/systemd/system/rationd-tcp.socket
systemctl daemon-reload
systemctl restart rationd.service

say 'a restart refuses no connection'
"$HELPERS/knock" /run/rationd/rationd.sock 4 2500 >/tmp/knock &
knock=$!
for ((i = 0; i < 4; i++)); do
	systemctl restart rationd.service
done
kill -KILL "$(show MainPID)"
wait $knock || fail "refused: $(cat /tmp/knock)"
cat /tmp/knock
within 5 is ActiveState active
expect 1 show NRestarts

say 'a clean stop: nothing is left but the socket, and it starts again'
# What still waits in the socket would start it again; with this answer all that came before has been accepted.
rationctl get --exact requests >/dev/null
systemctl stop rationd.service
expect inactive systemctl is-active rationd.service
expect success show Result
logged 'stopped: .* sum of all totals' || fail 'it does not say what it had'
rationctl add requests/again
expect active systemctl is-active rationd.service

say 'a group of the administrator for the socket stays'
systemctl stop rationd.socket
[[ ! -e /run/rationd/rationd.sock ]] || fail 'the socket is still there'
groupadd counters
drop_in rationd.socket group '[Socket]' 'SocketGroup=counters'
systemctl start rationd.service
expect 'root:counters 660' stat -c '%U:%G %a' /run/rationd/rationd.sock

say 'a bad configuration: not started again and again, and it is said why'
printf '[daemon]\nworkrs = 3\n' >/etc/rationd/rationd.conf
systemctl stop rationd.socket
if systemctl start rationd.service 2>/dev/null; then
	fail 'it started with a bad configuration'
fi
expect 78 show ExecMainStatus
expect 'The configuration has errors: see the log.' show StatusText
expect 22 show StatusErrno
logged "unknown key 'workrs'.*did you mean 'workers'" || fail 'no such line in the journal'
rm /etc/rationd/rationd.conf
systemctl reset-failed
systemctl start rationd.service
expect_status 0 rationctl add requests/good

say 'a crash: it comes again'
kill -ABRT "$(show MainPID)"
within 5 is NRestarts 1
within 5 is ActiveState active
expect_status 0 rationctl add requests/crash
say 'done'
