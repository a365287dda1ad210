#!/usr/bin/env bash
# What eviction costs and keeps on a recorded trace, through real processes: berthd, one worker, one
# engine that loads and verifies every byte and stores what is missing.
#
# Workload: the whole trace, in blocks of 4 KiB, into a pool of exactly 10000 of them, which makes room
# all the time, under each of two policies. Baseline in the same run: the same replay into a pool that
# never fills. The runs of both alternate, so that what else the machine does meets both alike.
#
# Printed: hits, skips in the warm-up and after it, wrong bytes, what eviction did, the result of the
# invariants' check, and for the probe's p99 every run and the median.
#
# Usage: tests/bench/eviction_replay.sh [--trace FILE] [--runs N] [--bin DIR] [--limit N]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

trace=../shared/traces/conversation_trace.jsonl
runs=5
bin=build/release/bin
limit=0
while [[ $# -gt 0 ]]; do
  case "$1" in
    --trace | --runs | --bin | --limit)
      [[ $# -gt 1 ]] || { echo "$1 takes a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift
      ;;
    *) sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
  esac
  shift
done
[[ -r $trace ]] || { echo "no trace at $trace; name one with --trace" >&2; exit 2; }

block=4096
blocks=10000
warm_up=1000
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# replay NAME POOL_BYTES POLICY
replay() {
  "$bin/berth-replay" --local --engines 1 --trace "$trace" --limit "$limit" --block-bytes "$block" \
    --cpu-pool "$2" --eviction-policy "$3" --warm-up "$warm_up" --json >>"$results/$1"
}
for ((run = 1; run <= runs; ++run)); do
  replay "adaptive" $((blocks * block)) adaptive
  replay "unbounded" 2GiB adaptive
  [[ $run -gt 1 ]] || replay "lru" $((blocks * block)) lru
done

python3 - "$results" <<'PYTHON'
import json, statistics, sys

for name in ("adaptive", "lru", "unbounded"):
    with open(f"{sys.argv[1]}/{name}") as file:
        runs = [json.loads(line) for line in file]
    first, fleet = runs[0], runs[0]["fleet"]
    late = first["skipped_after_warm_up"]
    print(f"{name:10} hits {first['prefix_hits']} of {first['blocks']} ({first['prefix_hit_ratio']:.4f}), "
          f"skips {first['skipped'] - late} in the warm-up and {late} after it, "
          f"verify errors {sum(run['verify_errors'] for run in runs)}, check {fleet['check']}")
    print(f"{'':10} evicted {fleet['evicted']} in {fleet['eviction_slices']} slices, the largest "
          f"{fleet['slice_replicas_max']} copies, the slowest {fleet['slice_us_max']} us")
    for reason, count in first["skipped_after_warm_up_by_reason"].items():
        print(f"{'':10} {count} {reason} after the warm-up")
    for key in ("probe_p50_us", "probe_p99_us"):
        values = [run[key] for run in runs]
        print(f"{'':10} {key} median {statistics.median(values):.0f} of {values}")
PYTHON
