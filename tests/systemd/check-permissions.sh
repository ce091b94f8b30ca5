#!/usr/bin/env bash
# Who may open the socket, and who may give orders: users in the groups and out of them.
# shellcheck source=/dev/null
source "$(dirname "$0")/checks.sh"
install_build
groupadd admins
mkdir -p /etc/rationd
printf '[daemon]\nadmin_group = admins\n' >/etc/rationd/rationd.conf
useradd --no-create-home stranger
useradd --no-create-home --groups rationd member
useradd --no-create-home --groups rationd,admins admin
systemctl start rationd.service

as() { # as USER COMMAND...
	setpriv --reuid "$1" --regid "$1" --init-groups "${@:2}"
}

count() { journalctl --quiet --output cat "$@" | grep -c .; }

say 'a stranger does not get in'
expect_status 4 as stranger rationctl add requests/a
expect_like '*ermission denied*' as stranger rationctl status

say 'a member counts and reads'
expect_status 0 as member rationctl add requests/a 2
expect '2  requests' as member rationctl get --exact requests
expect_status 0 as member rationctl status
expect_status 0 as member rationctl charge requests/a

say 'and gives no orders'
expect_status 5 as member rationctl quota set requests --max 5
expect_status 5 as member rationctl metric set jobs --kind gauge
expect_status 5 as member rationctl reload
expect_like '*PERMISSION_DENIED*admin_group*' as member rationctl reload
logged "uid $(id -u member): denied: it may not set limits" || fail 'it is not in the journal'
expect_status 3 rationctl metric show jobs

say 'an admin does'
expect_status 0 as admin rationctl quota set requests --max 5
expect_status 1 as member rationctl charge requests/a 10
expect_status 0 as admin rationctl metric set jobs --kind gauge
expect_status 0 as admin rationctl reload
expect_status 0 as admin rationctl quota remove requests

say 'the journal has it by its fields'
denied=MESSAGE_ID=20e1f1d000514615b9fdac7235e8d116 limits=MESSAGE_ID=ee3b8f4adb5a476b9513c1b31c70050d
expect 4 count $denied _SYSTEMD_UNIT=rationd.service PRIORITY=4
expect 1 count $denied RATIOND_PEER="$(journalctl --quiet --output cat --output-fields RATIOND_PEER $denied | head -n 1)"
expect_like "unix pid * uid $(id -u admin)" journalctl --quiet --output cat --output-fields RATIOND_PEER $limits
expect 2 count $limits RATIOND_PATH=requests PRIORITY=6

say 'so does the user it runs as, and root'
expect_status 0 as rationd rationctl reload
expect_status 0 rationctl reload

say 'a group that does not exist is an error that is found'
printf '[daemon]\nadmin_group = nobodies\n' >/etc/rationd/rationd.conf
expect_like '*admin_group = nobodies: is not the name or number of a group that exists*' rationctl reload
say 'done'
