#!/bin/sh
# Runs the Postman collection by newman: against BASE_URL when it is given, else against a Citu started for the purpose
# on a free port with a data directory of its own, and stopped afterwards. Without node it says so and succeeds.
#
#   postman/run.sh                                     BASE_URL=http://127.0.0.1:8084 postman/run.sh
#
# REPORT names a file for newman's report, of which `python postman/record.py` keeps the replies as the collection's examples.
# API_KEY is sent with every request when it is given. PYTHON (default: .venv/bin/python) runs the server;
# START_TIMEOUT_S (default: 180) is how long it may take to be ready.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$here")
python=${PYTHON:-$root/.venv/bin/python}
newman_package=newman@6.2.2
server=
work_dir=

skip() {
    echo "skipped: $1"
    exit 0
}

fail() {
    echo "postman/run.sh: $1" >&2
    exit 1
}

run_newman() {
    if command -v newman >/dev/null 2>&1; then newman "$@"; else npx --yes "$newman_package" "$@"; fi
}

stop_server() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$server" ]; then
        kill -TERM "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    if [ -n "$work_dir" ]; then rm -rf "$work_dir"; fi
    exit "$status"
}

free_port() {
    "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

is_ready() {
    "$python" - "$1/ready" <<'PYTHON'
import sys
import urllib.request

try:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    sys.exit(0 if opener.open(sys.argv[1], timeout=5).status == 200 else 1)
except OSError:
    sys.exit(1)
PYTHON
}

# Sets base_url, server and work_dir.
start_server() {
    [ -x "$python" ] || fail "$python does not exist; run 'make install' or set PYTHON"
    work_dir=$(mktemp -d)
    port=$(free_port)
    base_url=http://127.0.0.1:$port
    (cd "$root" && HOST=127.0.0.1 PORT=$port DATA_DIR=$work_dir/data exec "$python" unified_api.py) >"$work_dir/log" 2>&1 &
    server=$!
    deadline=$(($(date +%s) + ${START_TIMEOUT_S:-180}))
    until is_ready "$base_url"; do
        kill -0 "$server" 2>/dev/null || { cat "$work_dir/log" >&2; fail "the server ended before it was ready"; }
        [ "$(date +%s)" -lt "$deadline" ] || { cat "$work_dir/log" >&2; fail "the server was not ready in time"; }
        sleep 0.3
    done
}

command -v node >/dev/null 2>&1 || skip "node is not installed, so newman can't run the Postman collection"
command -v newman >/dev/null 2>&1 || command -v npx >/dev/null 2>&1 || skip "neither newman nor npx is installed"
run_newman --version >/dev/null 2>&1 || skip "$newman_package can't be fetched and is not installed"

trap stop_server EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
base_url=${BASE_URL:-}
[ -n "$base_url" ] || start_server

run_newman run "$here/citu.postman_collection.json" \
    --environment "$here/citu.postman_environment.json" \
    --env-var "base_url=$base_url" \
    --env-var "api_key=${API_KEY:-}" \
    --timeout-request 180000 \
    --reporters cli${REPORT:+,json} ${REPORT:+--reporter-json-export "$REPORT"}
