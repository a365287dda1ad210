#!/usr/bin/env bash
# Installs what a bare Debian 12 lacks to build, run and test Berth. Quick when nothing is missing: it asks
# dpkg first and leaves apt alone. Never asks a question, so it also works under CI without a terminal.
#
# Usage: deploy/install-deps.sh [--list | --check | --help]
#   (no option)  install what is missing; needs root or sudo only when something is
#   --list       print every package, one a line, and stop
#   --check      install nothing; print what is missing and exit 1 if anything is
set -euo pipefail

packages=(
  # Compilers and build tools. clang builds the sanitizer presets and brings clang-format and clang-tidy.
  ca-certificates ccache clang clang-format clang-tidy cmake g++ libclang-rt-14-dev lld
  ninja-build pkg-config python3
  # gRPC, protobuf and the store.
  libabsl-dev libgrpc++-dev libprotobuf-dev librocksdb-dev protobuf-compiler protobuf-compiler-grpc
  # Configuration, logs, metrics, command lines, formats.
  libcli11-dev libexpected-dev libfmt-dev libspdlog-dev libsystemd-dev libtoml11-dev
  libxxhash-dev nlohmann-json3-dev prometheus-cpp-dev
  # Memory and media.
  libdaxctl-dev libnuma-dev libpmem2-dev liburing-dev
  # The full-screen view of berthctl.
  libncurses-dev
  # Tests and benchmarks, and what the scripts call.
  catch2 curl git libbenchmark-dev procps util-linux valgrind
)

fail() {
  printf 'install-deps: %s\n' "$*" >&2
  exit 1
}

# Prints each package that is not fully installed.
missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
    sed -n 's/^installed //p' | sort -u) || true
  comm -13 <(printf '%s\n' "$installed") <(printf '%s\n' "${packages[@]}" | sort -u)
}

run_as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  else
    # -n: fail at once instead of waiting for a password that nobody types. env: sudo drops variables.
    sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

case "${1:-}" in
  '') mode=install ;;
  --list) printf '%s\n' "${packages[@]}" | sort -u; exit 0 ;;
  --check) mode=check ;;
  --help | -h) sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
  *) fail "unknown option '$1'; accepted are --list, --check and --help" ;;
esac

{ command -v dpkg-query && command -v apt-get; } >/dev/null ||
  fail "this is not Debian (no dpkg or apt-get); install what --list prints by your own means"

mapfile -t missing < <(missing_packages)
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "install-deps: all ${#packages[@]} packages are installed"
  exit 0
fi
echo "install-deps: missing: ${missing[*]}"
[[ $mode == check ]] && exit 1

if [[ $EUID -ne 0 ]]; then
  sudo -n true 2>/dev/null ||
    fail "installing needs root; run 'sudo $0', or as root: apt-get install ${missing[*]}"
fi

export DEBIAN_FRONTEND=noninteractive
# Another apt may hold the lock for minutes (unattended upgrades): wait for it instead of failing.
apt=(apt-get -o DPkg::Lock::Timeout=400 -o Acquire::Retries=3 -qq)
run_as_root "${apt[@]}" update </dev/null ||
  fail "apt-get update failed; see its message above (network, /etc/apt/sources.list.d)"
run_as_root "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null ||
  fail "apt-get install failed; see its message above"

mapfile -t missing < <(missing_packages)
[[ ${#missing[@]} -eq 0 ]] || fail "still missing after the installation: ${missing[*]}"
echo "install-deps: done"
