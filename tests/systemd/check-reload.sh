#!/usr/bin/env bash
# systemctl reload: it waits, it fails if the configuration is bad, and nobody is cut off.
# shellcheck source=/dev/null
source "$(dirname "$0")/checks.sh"
install_build
mkdir -p /etc/rationd
limit() { # limit NUMBER: of counters of the metric "some"
	printf '[metric some]\nmax_counters = %s\n' "$1" >/etc/rationd/rationd.conf
}
max_counters() { rationctl metric show --json some | sed 's/.*"max_counters": \([0-9]*\).*/\1/'; }
limit 10
systemctl start rationd.service
pid=$(show MainPID)

say 'once it returns, what is new is in force'
for ((n = 11; n < 31; n++)); do
	limit $n
	systemctl reload rationd.service
	expect "$n" max_counters
done

say 'a bad configuration: the reload fails, says why, and the daemon goes on as it was'
limit lots
expect_status 1 systemctl reload rationd.service
expect active systemctl is-active rationd.service
expect 30 max_counters
logged 'rationd.conf:2: max_counters = lots' || fail 'it is not in the journal'
expect_like '*The last reload failed*' show StatusText
expect_status 5 rationctl reload
expect_like 'rationctl: /etc/rationd/rationd.conf:2: max_counters = lots: *' rationctl reload
limit 40
expect_status 0 rationctl reload
expect 40 max_counters
expect_like 'Serving on *' show StatusText

say 'SIGHUP does the same'
limit 50
kill -HUP "$pid"
until_fifty() { [[ $(max_counters) == 50 ]]; }
within 2 until_fifty
within 2 is ActiveState active

say 'a connection that is there stays'
rationctl add - < <(echo 'some/a 1'; sleep 0.5; echo 'some/b 2') &
sleep 0.2
systemctl reload rationd.service
wait $! || fail 'it was cut off'
expect '3  some' rationctl get --exact some
expect "$pid" show MainPID
expect 0 show NRestarts
say 'done'
