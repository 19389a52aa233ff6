#!/usr/bin/env bash
# Measures the server under load from wrk, with the filter and without it. Prints a Markdown table.
#
#     examples/web_server/load.sh [SECONDS [ROUNDS]]
#
# Needs cargo and wrk. A million tokens are revoked, and every request has one that is not. The settings are measured
# interleaved, and the table has the median of the rounds. wrk and the server share the machine's cores, so "requests a
# second" is a figure of both together. "CPU" is the time that the server alone takes for a request, user and system.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-5} rounds=${2:-3} revoked=1000000
threads=2 connections=64
export LC_ALL=C

command -v wrk >/dev/null || { echo "wrk is not installed (Debian: apt-get install wrk)" >&2; exit 1; }
cargo build --release --quiet -p web-server
target=$(cargo metadata --format-version 1 --no-deps | grep -o '"target_directory":"[^"]*"' | cut -d'"' -f4)
server_binary=$target/release/web-server

directory=$(mktemp -d)
server=
end() {
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    rm -rf "$directory"
}
trap end EXIT

# start OPTIONS...: sets `server` and `address`.
start() {
    : >"$directory/out"
    "$server_binary" --listen 127.0.0.1:0 --data "$directory/data" --capacity $revoked --ids 20000000 \
        --snapshot-every 0 "$@" >"$directory/out" 2>"$directory/err" &
    server=$!
    until address=$(grep -o '127[0-9.:]*' "$directory/out"); do
        kill -0 $server 2>/dev/null || { cat "$directory/err" >&2; exit 1; }
        sleep 0.05
    done
}

stop() {
    kill -TERM "$server"
    wait "$server"
    server=
}

# How often the store has been asked so far.
questions() {
    exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
    printf 'GET /stats HTTP/1.0\r\n\r\n' >&3
    grep -o '"store_questions":[0-9]*' <&3 | cut -d: -f2
    exec 3>&-
}

# User and system time of the server so far, in clock ticks.
ticks() { awk '{ print $14 + $15 }' "/proc/$server/stat"; }

# measure NAME WRK-ARGUMENT SERVER-OPTIONS...: a line in $directory/results.
measure() {
    local name=$1 ids=$2 cpu asked result
    shift 2
    start "$@"
    # The first second fills the caches.
    wrk -t$threads -c$connections -d1s -s examples/web_server/load.lua "http://$address" -- "$ids" >/dev/null
    cpu=$(ticks) asked=$(questions)
    result=$(wrk -t$threads -c$connections "-d${seconds}s" -s examples/web_server/load.lua "http://$address" -- "$ids")
    cpu=$(($(ticks) - cpu)) asked=$(($(questions) - asked))
    echo "$result" | awk -v name="$name" -v cpu=$cpu -v hz="$(getconf CLK_TCK)" -v asked=$asked '
        $1 == "RESULT" {
            if ($4 > 0) { print $4 " requests of " name " failed" > "/dev/stderr"; exit 1 }
            printf "%s|%.0f|%.2f|%.2f|%.1f|%.2f\n", name, $2 / $3, $5, $6, cpu / hz / $2 * 1e6, asked / $2 * 1000
        }' >>"$directory/results"
    stop
}

awk -v n=$revoked 'BEGIN {
    for (i = 1; i <= n; i++) printf "%08x-bad-%d\n", (i * 2654435761 + 2147483648) % 4294967296, i
}' | sort >"$directory/tokens"
echo "revoking $revoked tokens ..." >&2
start --load "$directory/tokens"
stop

for round in $(seq "$rounds"); do
    echo "round $round of $rounds ..." >&2
    measure "filter" none
    measure "no filter" none --no-filter
    measure "filter; store with a cache of 1 MiB" none --store-cache 1
    measure "no filter; store with a cache of 1 MiB" none --no-filter --store-cache 1
    measure "filter; store 2 ms away" none --store-delay 2
    measure "no filter; store 2 ms away" none --no-filter --store-delay 2
    measure "filter; each request with an identifier" ids
done

echo "| | requests a second | median, ms | 99 %, ms | CPU a request, µs | questions to the store in 1000 requests |"
echo "|---|---|---|---|---|---|"
cut -d'|' -f1 "$directory/results" | awk '!seen[$0]++' | while read -r name; do
    printf '| %s' "$name"
    for column in 2 3 4 5 6; do
        printf ' | %s' "$(awk -F'|' -v name="$name" '$1 == name' "$directory/results" | cut -d'|' -f$column | sort -n |
            awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }')"
    done
    echo ' |'
done
