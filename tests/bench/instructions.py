#!/usr/bin/env python3
"""Counts the instructions of one item of each hot path under callgrind, and compares with a recorded file.

Usage: instructions.py [--only REGEX] [--bin DIR] [--against FILE] [--record] [--json]
  --only REGEX    only cases whose name matches
  --bin DIR       where berth-bench-micro lies (default: build/release/bin of this tree)
  --against FILE  what to compare with (default: results/instructions.json beside this script)
  --record        write that file anew instead of comparing; with --only, the other cases stay as they are
  --json          print the counts as JSON and compare nothing

A count does not depend on how busy the machine is, so a regression shows anywhere; it is no time, though: a miss of
the cache costs as much as an addition. Compilers and libraries differ: compare what one machine built. Exits 1 when
a case needs over 5 % more than recorded, 2 when nothing can be counted, else 0.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOLERANCE = 0.05
MEASURED = "berth_measured"  # tests/bench/micro/main.cc


class CannotCount(Exception):
    pass


def total_of(profile):
    """The instructions that a callgrind output file says were collected."""
    match = re.search(r"^(?:summary|totals): *(\d+)", profile, re.MULTILINE)
    if not match or int(match.group(1)) == 0:
        raise CannotCount(f"callgrind collected nothing inside of {MEASURED}")
    return int(match.group(1))


def judge(old, new, tolerance=TOLERANCE):
    """(change as a factor or None, verdict) of one case."""
    if old is None:
        return None, "new"
    if new is None:
        return None, "gone"
    change = new / old
    if change > 1 + tolerance:
        return change, "MORE"
    if change < 1 - tolerance:
        return change, "less"
    return change, ""


def compare(old, new, only=None):
    """Lines to print and how many cases need more; both dictionaries lead from a case to its instructions an item."""
    names = [name for name in list(new) + [name for name in old if name not in new] if not only or only.search(name)]
    width = max((len(name) for name in names), default=0)
    lines = []
    more = 0
    for name in names:
        change, verdict = judge(old.get(name), new.get(name))
        more += verdict == "MORE"
        text = [f"{old[name]:.1f}" if name in old else "-", f"{new[name]:.1f}" if name in new else "-"]
        factor = f"x{change:.3f}" if change is not None else ""
        lines.append(f"{name:<{width}} {text[0]:>10} -> {text[1]:>10} {factor:>8} {verdict}".rstrip())
    return lines, more


def merge(old, new, only=None):
    """What is recorded: the new counts, and with a filter the old ones that it left out."""
    kept = {name: count for name, count in old.items() if only and not only.search(name)}
    return dict(sorted({**kept, **new}.items()))


def count_case(program, name):
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, "callgrind.out")
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect={MEASURED}", f"--callgrind-out-file={profile}",
                   "--quiet", program, "--count", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotCount(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")
        with open(profile, encoding="utf-8") as file:
            return total_of(file.read()) / int(done.stdout)


def count_all(program, only):
    if not shutil.which("valgrind"):
        raise CannotCount("valgrind is not installed (deploy/install-deps.sh installs it)")
    if not os.access(program, os.X_OK):
        raise CannotCount(f"{program} is not there: build the target berth-bench-micro, or name its folder with --bin")
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in listed if not only or only.search(name)]
    if not names:
        raise CannotCount("--only leaves no case")
    counts = {}
    for name in names:
        if sys.stderr.isatty():
            print(f"\r{len(counts) + 1} of {len(names)}: {name:<60}", end="", file=sys.stderr, flush=True)
        counts[name] = round(count_case(program, name), 1)
    if sys.stderr.isatty():
        print(f"\r{'':<80}\r", end="", file=sys.stderr)
    return counts


def compiler_of(program):
    """As the program names it itself: what ships its code decides the counts."""
    done = subprocess.run(["readelf", "-p", ".comment", program], capture_output=True, text=True, check=False)
    found = re.findall(r"\] +((?:GCC|clang|Debian clang).*)", done.stdout)
    return found[0].strip() if found else "unknown"


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            recorded = json.load(file)
        return recorded["compiler"], {name: float(count) for name, count in recorded["instructions"].items()}
    except FileNotFoundError:
        return None, {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CannotCount(f"{path} is no record of this script: {error!r}") from error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="REGEX", type=re.compile)
    parser.add_argument("--bin", metavar="DIR", default=os.path.join(HERE, "../../build/release/bin"))
    parser.add_argument("--against", metavar="FILE", default=os.path.join(HERE, "results/instructions.json"))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    program = os.path.normpath(os.path.join(arguments.bin, "berth-bench-micro"))
    try:
        counts = count_all(program, arguments.only)
        if arguments.json:
            print(json.dumps(counts, indent=1))
            return 0
        compiler, old = read(arguments.against)
    except CannotCount as error:
        print(f"instructions.py: {error}", file=sys.stderr)
        return 2
    if compiler and compiler != compiler_of(program):
        print(f"note: recorded from a build by {compiler}, this one is by {compiler_of(program)}")
    lines, more = compare(old, counts, arguments.only)
    print("\n".join(lines))
    if arguments.record:
        os.makedirs(os.path.dirname(arguments.against), exist_ok=True)
        with open(arguments.against, "w", encoding="utf-8") as file:
            recorded = {"compiler": compiler_of(program), "instructions": merge(old, counts, arguments.only)}
            file.write(json.dumps(recorded, indent=1) + "\n")
        print(f"recorded {len(counts)} cases in {arguments.against}")
        return 0
    print(f"{len(counts)} cases, {more} need over {TOLERANCE:.0%} more than recorded")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
