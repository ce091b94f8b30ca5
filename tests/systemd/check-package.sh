#!/usr/bin/env bash
# The Debian packages: install, upgrade under load, remove, purge.
# shellcheck source=/dev/null
source "$(dirname "$0")/checks.sh"
if ! command -v dpkg-shlibdeps >/dev/null; then
	printf 'SKIPPED: there is no dpkg-shlibdeps (dpkg-dev)\n' >&2
	exit 77
fi
rm -f /usr/sbin/policy-rc.d # which may forbid that services are started
rm -f /var/lib/man-db/auto-update # an index of all manual pages is not what takes its time here
cd /tmp || exit

count_packages() { find /tmp/packages -name '*.deb' | grep -c .; }

version_of() { dpkg --status "$1" | sed -n 's/^Version: //p'; }

install() { # install PACKAGE...: the newest that was made of each
	local package files=()
	for package in "$@"; do
		files+=("$(find /tmp/packages -name "${package}_*.deb" -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2)")
	done
	dpkg --install "${files[@]}" >/tmp/dpkg.log 2>&1 || fail "$(cat /tmp/dpkg.log)"
}

repack() { # repack PACKAGE VERSION NEW-VERSION: the same, as a newer one
	rm -rf repacked
	dpkg-deb --raw-extract /tmp/packages/"$1_$2"_*.deb repacked
	sed -i "s/^Version: .*/Version: $3/" repacked/DEBIAN/control
	dpkg-deb --build --root-owner-group repacked "/tmp/packages/$1_$3_all.deb" >/dev/null
}

say 'they are made'
cpack --config "$BUILD/CPackConfig.cmake" -B /tmp/packing -D CPACK_OUTPUT_FILE_PREFIX=/tmp/packages >/tmp/cpack.log 2>&1 ||
	fail "$(cat /tmp/cpack.log)"
version=$(dpkg-deb --field /tmp/packages/rationd_*.deb Version)
with_python=()
if command -v protoc >/dev/null && [[ -x /usr/bin/python3 ]] && dpkg --status python3-protobuf >/dev/null 2>&1; then
	with_python=(python3-rationd)
fi
expect $((3 + ${#with_python[@]})) count_packages

say 'installed: it runs, and starts at boot'
install rationd libration0 libration-dev
expect active systemctl is-active rationd.service
expect active systemctl is-active rationd.socket
expect enabled systemctl is-enabled rationd.service
expect enabled systemctl is-enabled rationd.socket
expect rationd stat -c %U "/proc/$(show MainPID)"
expect 'root:rationd 660' stat -c '%U:%G %a' /run/rationd/rationd.sock
expect_status 0 rationctl add requests/a
expect '' dpkg --verify rationd libration0 libration-dev
[[ -e /usr/share/man/man8/rationd.8.gz && -e /usr/share/man/man1/rationctl.1.gz ]] || fail 'no manual pages'

say 'a program builds with what is installed'
cat >try.c <<'C'
#include <ration.h>
#include <stdio.h>
int main(void) { return puts(ration_version()) < 0; }
C
# shellcheck disable=SC2046 # several words they are
cc try.c -o try $(pkg-config --cflags --libs ration)
expect_status 0 ./try

if ((${#with_python[@]} > 0)); then
	say 'a program in Python counts with what is installed'
	install python3-rationd
	expect '' dpkg --verify python3-rationd
	cat >try.py <<'PYTHON'
import importlib.metadata
import rationd
with rationd.Client() as client:
    client.incr("requests/python", 5)
    client.flush()
    print(client.get("requests/python", consistency="exact").total, importlib.metadata.version("rationd"))
PYTHON
	expect "5 $version" env -u PYTHONPATH /usr/bin/python3 try.py
fi

say 'upgraded: the daemon is a new one, no connection was refused, settings stay'
printf '[daemon]\nmax_items = 7\n' >/etc/rationd/rationd.conf
expect_status 0 rationctl add requests/a 3
counted=$(rationctl get --exact requests)
repack rationd "$version" "$version+1"
pid=$(show MainPID)
"$HELPERS/knock" /run/rationd/rationd.sock 4 3000 >knocked &
knock=$!
install rationd
wait $knock || fail "refused: $(cat knocked)"
cat knocked
expect active systemctl is-active rationd.service
[[ $(show MainPID) != "$pid" ]] || fail 'the old one still runs'
expect "$version+1" version_of rationd
[[ -s /etc/rationd/rationd.conf ]] || fail 'the configuration is gone'
expect "$counted" rationctl get --exact requests

say 'disabled by the administrator: an upgrade leaves it so'
systemctl disable --now rationd.service rationd.socket
repack rationd "$version" "$version+2"
install rationd
expect disabled systemctl is-enabled rationd.service

say 'removed: nothing runs, the configuration stays'
dpkg --remove rationd >/dev/null 2>&1
expect inactive systemctl is-active rationd.socket
[[ ! -e /run/rationd && -s /etc/rationd/rationd.conf && -s /var/lib/rationd/state.db ]] || fail 'it did not go as it should'

say 'and installed again, purged: nothing is left'
install rationd
dpkg --purge rationd libration-dev libration0 "${with_python[@]}" >/dev/null 2>&1 || fail 'the purge failed'
[[ ! -e /run/rationd && ! -e /var/lib/rationd ]] || fail 'a folder of its own is left'
expect '' find /etc /usr/bin /usr/sbin /usr/include /usr/lib/systemd /usr/lib/sysusers.d /usr/lib/tmpfiles.d \
	/usr/lib/python3/dist-packages /usr/share/bash-completion /usr/share/doc /usr/share/man /var/lib/systemd \
	\( -name 'rationd*' -o -name 'rationctl*' -o -name 'libration*' -o -name 'ration.h' \)
expect inactive systemctl is-active rationd.service
say 'done'
