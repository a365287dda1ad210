#!/usr/bin/env bash
# Berth on one machine in one go: installs packages, builds, starts one server and two workers in a temporary
# directory, replays a generated trace through them with every byte verified, shows where the bytes are, says
# what to try next, and stops everything.
#
# Usage: deploy/quickstart.sh [--keep] [--bin DIR] [--no-install] [--jobs N] [--help]
#   --keep        leave server and workers running, and print how to stop them
#   --bin DIR     use the berthd, berth-worker, berthctl and berth-replay in DIR; nothing is installed or built
#   --no-install  do not install packages
#   --jobs N      compile N files at a time (default: the number of cores)
#
# Nothing outside the temporary directory and build/release is written, and only free loopback ports are used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

keep=false
install=true
bin=''
jobs=$(nproc)
directory=''
kept=false
names=() # what was started, in order: berthd, w0, w1
pids=()

say() {
  printf '\n==== %s (after %d s)\n' "$*" "$SECONDS"
}

fail() {
  printf 'quickstart: %s\n' "$*" >&2
  exit 1
}

while [[ $# -gt 0 ]]; do
  case "$1" in
    --keep) keep=true ;;
    --no-install) install=false ;;
    --bin)
      bin=${2:-}
      [[ -d $bin ]] || fail "--bin takes a directory, got '$bin'"
      bin=$(cd "$bin" && pwd)
      shift
      ;;
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

# ---- Processes -------------------------------------------------------------------------------------

# start <name> <command...>: in the background, with a log of its own.
start() {
  local name=$1
  shift
  "$@" >"$directory/$name.log" 2>&1 </dev/null &
  names+=("$name")
  pids+=("$!")
}

is_running() {
  kill -0 "$1" 2>/dev/null
}

# Every process of ours is alive; one that ended is the reason to stop here.
check_processes() {
  local i
  for i in "${!pids[@]}"; do
    is_running "${pids[i]}" || fail "${names[i]} ended; see its log below"
  done
}

# wait_until <what> <seconds> <command...>
wait_until() {
  local what=$1 end=$((SECONDS + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    check_processes
    [[ $SECONDS -lt $end ]] || fail "waited too long for this: $what"
    sleep 0.2
  done
}

# Ends what was started, the last first, so that workers can say goodbye. Fails when one did not end well.
stop_processes() {
  local i end status result=0
  for ((i = ${#pids[@]} - 1; i >= 0; --i)); do
    kill -TERM "${pids[i]}" 2>/dev/null || true
    end=$((SECONDS + 20))
    while is_running "${pids[i]}" && [[ $SECONDS -lt $end ]]; do sleep 0.1; done
    if is_running "${pids[i]}"; then
      echo "quickstart: ${names[i]} did not stop within 20 s and was killed" >&2
      kill -KILL "${pids[i]}" 2>/dev/null || true
      result=1
    fi
    status=0
    wait "${pids[i]}" 2>/dev/null || status=$?
    if [[ $status -ne 0 ]]; then
      echo "quickstart: ${names[i]} ended with $status" >&2
      result=1
    fi
  done
  names=()
  pids=()
  return $result
}

# Runs at every end. A failure keeps the logs, prints their ends, and never leaves a process behind.
finish() {
  local status=$?
  trap - EXIT INT TERM
  if $kept; then exit "$status"; fi
  local name
  if [[ $status -ne 0 && -n $directory ]]; then
    for name in "${names[@]}"; do
      printf '\n---- the end of %s.log\n' "$name" >&2
      tail -n 20 "$directory/$name.log" >&2 || true
    done
  fi
  stop_processes || status=1
  if [[ -n $directory ]]; then
    if [[ $status -eq 0 ]]; then rm -rf "$directory"; else echo "quickstart: logs are in $directory" >&2; fi
  fi
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A port that nobody listens on, from $1 upwards.
free_port() {
  local port
  for ((port = $1; port < $1 + 200; ++port)); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || {
      echo "$port"
      return
    }
  done
  fail "no free port between $1 and $((port - 1))"
}

# ---- Binaries --------------------------------------------------------------------------------------

if [[ -z $bin ]]; then
  if $install; then
    say "packages"
    deploy/install-deps.sh
  fi
  say "build (release preset; the first time takes some minutes)"
  cmake --preset release
  cmake --build --preset release --parallel "$jobs" --target berthd berth-worker berthctl berth-replay
  bin=$PWD/build/release/bin
fi
for name in berthd berth-worker berthctl berth-replay; do
  [[ -x $bin/$name ]] || fail "$bin/$name is missing"
done

# ---- Server and workers ----------------------------------------------------------------------------

# Short, because a unix socket's path may have about a hundred characters.
directory=$(mktemp -d /tmp/berth-quickstart.XXXXXX)
mkdir "$directory/state" "$directory/run"
http_port=$(free_port 7421)
export BERTH_SERVER=unix:$directory/berthd.sock

cat >"$directory/berthd.toml" <<TOML
[server]
listen = ["unix:$directory/berthd.sock"]
http = "127.0.0.1:$http_port"
state_directory = "$directory/state"
TOML
for worker in w0 w1; do
  cat >"$directory/$worker.toml" <<TOML
[worker]
name = "$worker"
node = "quickstart"
server = "unix:$directory/berthd.sock"
socket = "$directory/$worker.sock"
runtime_directory = "$directory/run"
http = "off"

[[pool]]
name = "$worker-cpu"
medium = "cpu"
scope = "host"
capacity = "256MiB"
page = "16KiB"
TOML
done

say "start berthd and two workers in $directory"
start berthd "$bin/berthd" --config "$directory/berthd.toml"
wait_until "berthd serves" 60 "$bin/berthctl" status
echo "berthd serves (pid ${pids[0]})"
start w0 "$bin/berth-worker" --config "$directory/w0.toml"
start w1 "$bin/berth-worker" --config "$directory/w1.toml"
pool_is_live() {
  local pools
  pools=$("$bin/berthctl" pools --csv) && grep -q "$1-cpu.*,live," <<<"$pools"
}
for worker in w0 w1; do
  wait_until "worker $worker is attached and its pool is live" 60 pool_is_live "$worker"
  echo "$worker is attached, its pool is live"
done

# ---- Replay and a look around ------------------------------------------------------------------------

say "replay a generated chat trace with two engines, verifying every byte"
"$bin/berth-replay" --generate chat --requests 400 --block-bytes 16KiB --engines 2 \
  --worker-socket "$directory/w0.sock" --worker-socket "$directory/w1.sock"
check_processes

say "berthctl status"
"$bin/berthctl" status
say "berthctl usage"
"$bin/berthctl" usage
say "berthctl check"
"$bin/berthctl" check

if $keep; then
  kept=true
  say "running; things to try"
  cat <<TEXT
  export PATH="$bin:\$PATH" BERTH_SERVER=$BERTH_SERVER
  berthctl sessions
  berthctl objects --limit 5
  berthctl events -f
  curl -s http://127.0.0.1:$http_port/metrics | grep ^berth_replicas
  berth-replay --generate rag --block-bytes 16KiB --worker-socket $directory/w0.sock
  kill -9 ${pids[0]}; berthd --config $directory/berthd.toml &     # the workers keep everything

To stop it:
  kill ${pids[2]} ${pids[1]} ${pids[0]}; sleep 2; rm -r $directory
TEXT
else
  say "stop"
  stop_processes || exit 1
  echo "stopped; nothing is left"
  say "things to try"
  cat <<TEXT
  deploy/quickstart.sh --keep                                # the same, left running, with commands to try
  $bin/berth-replay --local --generate agents --workers 2 --engines 4
  $bin/berthctl --help
  tests/run.sh                                               # every test
  docs/operations.md                                         # on a host of your own
TEXT
fi
