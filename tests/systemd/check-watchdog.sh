#!/usr/bin/env bash
# A daemon that hangs, all of it or one thread, is ended and started again; one that does not is left alone.
# shellcheck source=/dev/null
source "$(dirname "$0")/checks.sh"
install_build
drop_in rationd.service quick '[Service]' 'WatchdogSec=1'
systemctl start rationd.service

# hang COMMAND...: it makes the daemon hang; for the NUMBER-th time.
restarted=0
counted=0
hang() {
	local pid began
	pid=$(show MainPID)
	expect_status 0 rationctl add --durable requests/kept 7
	counted=$((counted + 7))
	began=$(date +%s%N)
	"$@" &
	within 15 is NRestarts $((++restarted))
	within 15 is ActiveState active
	[[ $(show MainPID) != "$pid" ]] || fail 'it is the same one'
	expect_status 0 rationctl --timeout 5s add requests/after
	expect "$counted  requests/kept" rationctl get --exact requests/kept
	printf '   back after %d ms\n' $((($(date +%s%N) - began) / 1000000))
}

say 'all of it'
hang kill -STOP "$(show MainPID)"
logged 'Watchdog timeout' || fail 'it was not the watchdog'

say 'a worker'
hang "$HELPERS/hold" "$(show MainPID)" worker-0
logged 'worker-0 has not gone round' || fail 'the worker is not named in the log'

say 'the thread of the state file'
hang "$HELPERS/hold" "$(show MainPID)" store
logged 'store has not gone round' || fail 'the thread is not named in the log'

say 'the main thread'
hang "$HELPERS/hold" "$(show MainPID)" rationd

say 'one that turns is left alone, idle and busy, on a busy machine too'
drop_in rationd.service quick '[Service]' 'WatchdogSec=2'
systemctl restart rationd.service
for ((i = 0; i < 25; i++)); do
	seq -f 'requests/%g 1' 2000 | rationctl add -
	sleep 0.1
done
expect 0 show NRestarts
busy() { [[ $(show StatusText) =~ ,\ [1-9][0-9]*\ adds/s ]]; }
within 6 busy
say 'done'
