#!/usr/bin/env bash
# run.sh STAGE COMMAND...: makes the Node package in STAGE (in the build tree), unless it is there and new enough, and runs COMMAND in a folder
# that has the tests, with the package installed beside them. 77: it can't be made here; that is said, and where CI is set it is a failure.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
stage=$1
shift

skip() {
	printf 'clients/node is not tested: %s\n' "$*" >&2
	if [[ -n ${CI:-} ]]; then
		exit 1
	fi
	exit 77
}

node_is_new() { node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 18 ? 0 : 1)'; }

command -v node >/dev/null || skip 'there is no node'
command -v npm >/dev/null || skip 'there is no npm'
node_is_new || skip "node $(node --version) is older than 18"

sources=("$root"/clients/node/{package.json,package-lock.json,tsconfig.json,build.mjs,README.md,src} "$root/proto/ration.proto"
	"$root"/tests/node "$root/tests/conformance/driver.mjs")

# What everything here depends on, in one line.
print() { find "${sources[@]}" -type f -not -path '*/generated/*' -print0 | sort -z | xargs -0 cksum | cksum; }

install_packages() {
	(cd "$1" && npm ci --ignore-scripts --no-audit --no-fund >"$stage/npm.log" 2>&1) && return
	cat "$stage/npm.log" >&2
	skip 'npm can not install the packages it is made with'
}

# Copies what is in a folder, and leaves what was installed.
copy() {
	mkdir -p "$2"
	find "$2" -mindepth 1 -maxdepth 1 -not -name node_modules -exec rm -rf {} +
	shift
	local into=$1
	shift
	cp -R "$@" "$into"
}

make_stage() {
	copy - "$stage/package" "$root"/clients/node/{package.json,package-lock.json,tsconfig.json,build.mjs,README.md,src}
	copy - "$stage/tests" "$root"/tests/node/. "$root/tests/conformance/driver.mjs"
	install_packages "$stage/package"
	install_packages "$stage/tests"
	(cd "$stage/package" && RATION_PROTO=$root/proto/ration.proto node build.mjs)
	ln -sfn ../../package "$stage/tests/node_modules/rationd"
}

mkdir -p "$stage"
exec 9>"$stage/lock"
flock 9
now=$(print)
if [[ $(cat "$stage/stamp" 2>/dev/null) != "$now" ]]; then
	make_stage
	printf '%s\n' "$now" >"$stage/stamp"
fi
exec 9>&-
cd "$stage/tests"
exec "$@"
