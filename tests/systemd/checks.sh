# shellcheck shell=bash
# What the scripts in the box share: to be sourced.
set -euo pipefail

export SYSTEMD_COLORS=0 LC_ALL=C.UTF-8

say() { printf -- '-- %s\n' "$*"; }

fail() {
	printf 'FAILED: %s\n' "$*" >&2
	systemctl --no-pager --full status rationd.service rationd.socket >&2 || true
	exit 1
}

# expect TEXT COMMAND...: it must print exactly that.
expect() {
	local wanted=$1 got
	shift
	got=$("$@" 2>&1) || true
	[[ $got == "$wanted" ]] || fail "$* gave '$got', not '$wanted'"
}

# expect_like PATTERN COMMAND...: what it prints must match the glob.
expect_like() {
	local wanted=$1 got
	shift
	got=$("$@" 2>&1) || true
	# shellcheck disable=SC2053 # a pattern it is
	[[ $got == $wanted ]] || fail "$* gave '$got', not like '$wanted'"
}

# expect_status STATUS COMMAND...
expect_status() {
	local wanted=$1 got=0 output
	shift
	output=$("$@" 2>&1) || got=$?
	((got == wanted)) || fail "$* ended with $got, not $wanted: $output"
}

# within SECONDS COMMAND...: until it succeeds.
within() {
	local deadline=$((SECONDS + $1 + 1))
	shift
	until "$@" >/dev/null 2>&1; do
		((SECONDS < deadline)) || fail "it did not come to: $*"
		sleep 0.05
	done
}

show() { systemctl show --value --property "$1" "${2:-rationd.service}"; }
is() { [[ $(show "$1" "${3:-rationd.service}") == "$2" ]]; }
proc_status() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(show MainPID)/status"; }
logged() { [[ $(journalctl --quiet --unit rationd --output cat --grep "$1" 2>/dev/null) ]]; }
journal() { journalctl --quiet --output json --unit rationd "$@"; }

install_build() {
	cmake --install "$BUILD" --prefix /usr >/dev/null
	systemd-sysusers /usr/lib/sysusers.d/rationd.conf
	systemd-tmpfiles --create /usr/lib/tmpfiles.d/rationd.conf
	systemctl daemon-reload
}

# drop_in UNIT NAME LINE...: LINEs for /etc/systemd/system/UNIT.d/NAME.conf
drop_in() {
	mkdir -p "/etc/systemd/system/$1.d"
	printf '%s\n' "${@:3}" >"/etc/systemd/system/$1.d/$2.conf"
	systemctl daemon-reload
}
