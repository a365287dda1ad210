#!/usr/bin/env python3
"""Compares two result files of berth-bench by their ratios to the floors, cell by cell.

Usage: compare.py OLD.json NEW.json [--all]
  --all  also cells whose ratio did not move

Ratios, never plain figures: two runs of one program on one machine differ by more than most changes bring. A cell
has moved when the spreads of both files do not overlap. Exits 1 when some cell moved for the worse, 2 for files
that cannot be compared, else 0.
"""

import argparse
import json
import sys

# (figure, what it is called, whether more is better)
RATIOS = [
    ("items_of_echo", "items/echo", True),
    ("p50_of_echo", "p50/echo", False),
    ("server_cpu_of_echo", "cpu/echo", False),
    ("calls_of_syncs", "calls/fsync", True),
]
EVENT_RATIOS = [
    ("items_of_undisturbed", "items", True),
    ("p50_of_undisturbed", "p50", False),
    ("p99.9_of_undisturbed", "p99.9", False),
]


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        return result["machine"], ratios_of(result)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"compare.py: {path} is no result of berth-bench: {error!r}", file=sys.stderr)
        sys.exit(2)


def ratios_of(result):
    """{(cell, name): (spread, more is better)} of a whole file."""
    found = {}
    for fleet in result["fleets"]:
        where = f"{fleet['transport']} {fleet['durability']} {fleet['population']}"
        # Too few objects say nothing about the memory of one.
        if fleet["population"] >= 1_000_000:
            size = fleet["resident_bytes_per_object"]
            found[(where, "bytes/object")] = ({"median": size, "low": size, "high": size}, False)
        for row in fleet.get("rows", []):
            mode = " open" if "cycles_per_second" in row else ""
            cell = f"{where} | {row['workload']} {row['api']} x{row['callers']} batch {row['batch']}{mode}"
            add(found, cell, row["ratios"], RATIOS)
            for event in row.get("during", []):
                add(found, f"{cell} during {event['event']}", event, EVENT_RATIOS)
    return found


def add(found, cell, spreads, names):
    for key, name, more_is_better in names:
        if key in spreads:
            found[(cell, name)] = (spreads[key], more_is_better)


def verdict(old, new, more_is_better):
    """What the spreads allow to say."""
    if new["low"] > old["high"]:
        return "better" if more_is_better else "WORSE"
    if new["high"] < old["low"]:
        return "WORSE" if more_is_better else "better"
    return ""


def text_of(spread):
    return f"{spread['median']:.3g} [{spread['low']:.3g}-{spread['high']:.3g}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD.json")
    parser.add_argument("new", metavar="NEW.json")
    parser.add_argument("--all", action="store_true", help="also cells whose ratio did not move")
    arguments = parser.parse_args()
    old_machine, old = read(arguments.old)
    new_machine, new = read(arguments.new)
    for fact in ("cpu", "cores", "kernel"):
        if old_machine.get(fact) != new_machine.get(fact):
            print(f"note: another machine: {fact} {old_machine.get(fact)!r} before, {new_machine.get(fact)!r} now")
    for name, machine in (("OLD", old_machine), ("NEW", new_machine)):
        if machine.get("load_average_at_start", 0) > 0.5:
            print(f"note: {name} was measured beside others (load average {machine['load_average_at_start']})")

    common = [key for key in old if key in new]
    if not common:
        print("compare.py: the files have no cell in common", file=sys.stderr)
        return 2
    worse = 0
    moved = 0
    for key in common:
        before, more_is_better = old[key]
        after, _ = new[key]
        said = verdict(before, after, more_is_better)
        worse += said == "WORSE"
        moved += bool(said)
        if said or arguments.all:
            change = after["median"] / before["median"] if before["median"] else float("nan")
            print(f"{key[0]:<60} {key[1]:<12} {text_of(before):>24} -> {text_of(after):>24} x{change:.2f} {said}")
    print(f"{len(common)} ratios in common, {moved} moved beyond both spreads, {worse} of them for the worse")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
