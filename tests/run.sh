#!/usr/bin/env bash
# Installs the packages, builds the release preset and runs every test. Ends with ctest's summary and fails
# if anything failed. From a cold machine with two cores this takes under half an hour.
#
# Usage: tests/run.sh [--full] [--jobs N] [--no-install] [--help]
#   --full        also: unit, scenario and simulation tests under the address and thread sanitizers,
#                 clang-tidy over the core, a long simulation with fresh seeds, and the torture tests
#   --jobs N      compile and test N at a time (default: the number of cores)
#   --no-install  do not install packages
#
# Environment:
#   BERTH_SIM_SECONDS      how long the long simulation of --full runs (default 300)
#   BERTH_SIM_SEED         its first seed (default: the time of day); printed, and so is a seed that fails
#   BERTH_TORTURE_SECONDS  passed on to the torture tests, which read it themselves
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  printf 'tests/run.sh: %s\n' "$*" >&2
  exit 1
}

full=false
install=true
jobs=$(nproc)
while [[ $# -gt 0 ]]; do
  case "$1" in
    --full) full=true ;;
    --no-install) install=false ;;
    --jobs)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || fail "--jobs takes a whole number from 1, got '${2:-}'"
      jobs=$2
      shift
      ;;
    --help | -h)
      sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
      exit 0
      ;;
    *) fail "unknown option '$1'; --help prints the accepted ones" ;;
  esac
  shift
done
sim_seconds=${BERTH_SIM_SECONDS:-300}
sim_seed=${BERTH_SIM_SEED:-$(date +%s)}
[[ $sim_seconds =~ ^[0-9]+$ ]] || fail "BERTH_SIM_SECONDS takes whole seconds, got '$sim_seconds'"
[[ $sim_seed =~ ^[0-9]+$ ]] || fail "BERTH_SIM_SEED takes a whole number, got '$sim_seed'"

step() {
  printf '\n==== %s (after %d s)\n' "$*" "$SECONDS"
}

# build <preset> [target...]
build() {
  local preset=$1
  shift
  step "configure and build: $preset"
  cmake --preset "$preset"
  cmake --build --preset "$preset" --parallel "$jobs" ${1:+--target "$@"}
}

# ctest fails when a preset has no test to run, so an empty build cannot pass.
run_ctest() {
  step "test: $1"
  ctest --preset "$1" --parallel "$jobs"
}

# Prints what a failing seed said and how to replay it; 255 tells xargs to start no further seed.
simulate_seed() {
  local output
  output=$(build/release/bin/berth-sim --seed "$1" 2>&1) && return
  printf '%s\nfailed; replay with: build/release/bin/berth-sim --seed %s\n' "$output" "$1"
  exit 255
}
export -f simulate_seed

# Fresh seeds, `jobs` at a time, until the time is over.
long_simulation() {
  step "simulation: seeds from $sim_seed for $sim_seconds s"
  local end=$((SECONDS + sim_seconds)) seed=$sim_seed batch=50
  while [[ $SECONDS -lt $end ]]; do
    # shellcheck disable=SC2016  # $1 belongs to the inner shell
    seq "$seed" $((seed + batch - 1)) | xargs -P "$jobs" -n 1 bash -c 'simulate_seed "$1"' _ ||
      fail "the simulation failed"
    seed=$((seed + batch))
  done
  echo "$((seed - sim_seed)) seeds passed"
}

# Test cases tagged [.torture] run for minutes each and are hidden from ctest.
torture() {
  local binary=build/release/bin/berth-integration
  step "torture"
  # The listing's exit status is the number of tests, so only its lines tell.
  local names
  names=$("$binary" --list-test-names-only '[torture]') || true
  if [[ -z ${names//[[:space:]]/} ]]; then
    echo "no test case is tagged [.torture]"
    return
  fi
  "$binary" '[torture]'
}

if $install; then
  step "packages"
  deploy/install-deps.sh
fi
build release
if $full; then
  step "clang-tidy"
  cmake --build --preset release --target tidy
  for preset in asan tsan; do
    build "$preset" quick-tests
    run_ctest "$preset"
  done
  long_simulation
  torture
fi
# Last, so that its summary closes the output.
run_ctest release
