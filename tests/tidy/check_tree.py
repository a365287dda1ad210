#!/usr/bin/env python3
"""Checks that the tree keeps its rules: layers, clocks, sleeps, header comments, names, libraries, format.

Usage: check_tree.py [ROOT] [--format]
  ROOT      the tree to check; default: the one that holds this script
  --format  let clang-format rewrite what it would change, then check

Prints one line for each finding, `file:line: what is wrong; how to mend it`, and exits 1 if there is any.
The rules are tables in rules.py. Needs the standard library, and clang-format for the format check.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import rules

CODE_FOLDERS = ("proto", "server", "worker", "common", "tests")
CODE_SUFFIXES = {".h", ".cc", ".cu"}
TEXT_SUFFIXES = CODE_SUFFIXES | {".md", ".txt", ".py", ".sh", ".proto", ".toml", ".in", ".json",
                                 ".service", ".supp", ".yml", ".yaml"}
# The rules and their planted violations spell out what they look for.
SELF = "tests/tidy/"

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CLOCK = re.compile(r"\b(steady_clock|system_clock|high_resolution_clock|file_clock|utc_clock)\b"
                   r"|\b(clock_gettime|gettimeofday|timespec_get|gpr_now)\s*\("
                   r"|(?<![\w.>])(std::|::)?time\s*\(\s*(nullptr|NULL|0|&)")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep)\b"
                   r"|(?<![\w.>])(::)?sleep\s*\(")
TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def matches(pattern, text):
    return re.fullmatch(pattern, text) is not None


def first_row(table, path):
    return next((row for row in table if matches(row[0], path)), None)


def strip_comment(line):
    """The line without a // comment and without the inside of strings, for checks of code only."""
    return re.sub(r"//.*$", "", re.sub(r'"(\\.|[^"\\])*"', '""', line))


class Tree:
    """The files under a root and what was found in them."""

    def __init__(self, root):
        self.root = root
        self.findings = []
        self.files = sorted(self._walk())

    def _walk(self):
        for folder, names, files in os.walk(self.root):
            relative = Path(folder).relative_to(self.root)
            names[:] = [n for n in names if not n.startswith(".") and n != "__pycache__"
                        and not (relative == Path(".") and n.startswith("build"))]
            for name in files:
                yield (relative / name).as_posix()

    def code(self):
        return [f for f in self.files
                if f.startswith(tuple(c + "/" for c in CODE_FOLDERS)) and Path(f).suffix in CODE_SUFFIXES]

    def lines(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace").splitlines()

    def report(self, path, line, what, fix):
        self.findings.append(f"{path}:{line}: {what}; {fix}")


def check_includes(tree):
    users = defaultdict(set)
    for path in tree.code():
        for number, line in enumerate(tree.lines(path), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            kind, header = found.groups()
            if kind == '"':
                check_layer(tree, path, number, header)
            check_library(tree, path, number, header)
            for pattern in rules.LIBRARIES_ONCE_PER_FOLDER:
                if matches(pattern, header) and not path.startswith("tests/bench/"):
                    users[(pattern, os.path.dirname(path))].add(path)
    for (pattern, folder), paths in users.items():
        for path in sorted(paths)[1:]:
            tree.report(path, 1, f"a second file of {folder}/ includes <{pattern}>",
                        "it costs 10 to 25 seconds each time: keep one file per folder and call that")


def check_layer(tree, path, number, header):
    if header.startswith(".") or not (header.startswith("berth/") or "/" in header):
        return tree.report(path, number, f'"{header}" is not written from the root',
                           'write the path from the root, as in "server/directory/draft.h"')
    row = first_row(rules.LAYERS, path)
    if row is None:
        return tree.report(path, number, "this folder is in no layer",
                           "add it to LAYERS in tests/tidy/rules.py and to docs/architecture.md")
    if not any(matches(allowed, header) for allowed in row[1]):
        tree.report(path, number, f'must not include "{header}" ({row[2]})',
                    "move the code to the layer that may, or pass the value in")
    elif not header.startswith("berth/") and header != "common/version.h":
        if not (tree.root / header).is_file():
            tree.report(path, number, f'"{header}" does not exist', "correct the path from the root")


def check_library(tree, path, number, header):
    if matches(rules.PURE_FILES, path) and matches(rules.IMPURE_HEADERS, header):
        tree.report(path, number, f"pure code must not include <{header}>",
                    "take the value as an argument and let the shell around it do this")
    if header in rules.MISSING_HEADERS:
        tree.report(path, number, f"<{header}> does not compile with g++ 12 and clang 14",
                    f"use {rules.MISSING_HEADERS[header]}")
    for pattern, users, instead in rules.LIBRARIES:
        if matches(pattern, header) and not matches(users, path):
            tree.report(path, number, f"<{header}> must not be included here", instead)


def check_clocks_and_sleeps(tree):
    for path in tree.code():
        may_read = (Path(path).name.startswith("clock")
                    or first_row(rules.CLOCK_READERS, path) is not None)
        may_sleep = first_row(rules.SLEEPERS, path) is not None
        for number, line in enumerate(tree.lines(path), 1):
            code = strip_comment(line)
            if not may_read and CLOCK.search(code):
                tree.report(path, number, "reads a clock",
                            "take a Time or a Clock& (common/clock.h) as an argument")
            if not may_sleep and SLEEP.search(code):
                tree.report(path, number, "sleeps",
                            "wait on a condition, an event or a descriptor; drive tests with a fake clock")


def check_headers(tree):
    for path in tree.code():
        if not path.endswith(".h"):
            continue
        lines = tree.lines(path)
        opening = 0
        while opening < len(lines) and lines[opening].startswith("//"):
            opening += 1
        if opening < 2:
            tree.report(path, 1, "does not open with a comment of at least two lines",
                        "say what the thing is and what it promises: ownership, threads, lifetime")
        if "#pragma once" not in lines:
            tree.report(path, 1, "has no #pragma once", "put it under the opening comment")
        for number, line in enumerate(lines, 1):
            if re.match(r"\s*using namespace\b", line):
                tree.report(path, number, "`using namespace` in a header",
                            "name what is used, or move it to the .cc file")


def check_names(tree):
    reported = set()
    for path in tree.files:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            place = "/".join(parts[:depth + 1])
            stem = part.split(".")[0].lower()
            words = set(re.split(r"[_-]", stem))
            if words & rules.EMPTY_NAMES or stem in rules.EMPTY_WHOLE_NAMES:
                if place not in reported:
                    tree.report(place, 1, "the name does not say what this is for",
                                "name the thing's job")
                reported.add(place)


def check_texts(tree):
    for path in tree.files:
        if Path(path).suffix not in TEXT_SUFFIXES and Path(path).name != "CMakeLists.txt":
            continue
        if path.startswith(SELF):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            if TODO.search(line) and not re.search(r"\bTODO\(#\d+\): \S", line):
                tree.report(path, number, "a note to self without an issue",
                            "do it now, or write `TODO(#issue): what and why`")
            if matches(rules.TRACE_READERS, path):
                line = re.sub(rules.TRACES, "", line)
            if re.search(rules.FOREIGN_PATHS, line):
                tree.report(path, number, "names a folder outside the project",
                            "take the path as an argument; only tests and documentation may name "
                            "../shared/traces, and must do without")


def check_format(tree, rewrite):
    files = tree.code()
    tool = shutil.which("clang-format")
    if tool is None:
        print("SKIPPED the format check: clang-format is missing; deploy/install-deps.sh installs it")
        return
    for start in range(0, len(files), 40):
        batch = [str(tree.root / f) for f in files[start:start + 40]]
        if rewrite:
            subprocess.run([tool, "-i", "--style=file", *batch], check=True)
        run = subprocess.run([tool, "--dry-run", "--style=file", *batch], text=True, check=False,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if run.returncode != 0:
            tree.report("tests/tidy/check_tree.py", 1, "clang-format failed: " + run.stderr.strip()[-300:],
                        "correct .clang-format")
        seen = set()
        for name, line in re.findall(r"^(.+?):(\d+):\d+: warning:", run.stderr, re.MULTILINE):
            if name not in seen:
                seen.add(name)
                tree.report(Path(name).relative_to(tree.root).as_posix(), line,
                            "is not formatted", "run tests/tidy/check_tree.py --format")


def check_all(root, rewrite=False):
    tree = Tree(root)
    check_includes(tree)
    check_clocks_and_sleeps(tree)
    check_headers(tree)
    check_names(tree)
    check_texts(tree)
    check_format(tree, rewrite)
    return tree


def main(arguments):
    rewrite = "--format" in arguments
    places = [a for a in arguments if a != "--format"]
    if len(places) > 1 or any(p.startswith("-") for p in places):
        print(__doc__)
        return 0 if places in (["--help"], ["-h"]) else 2
    root = Path(places[0] if places else Path(__file__).parents[2]).resolve()
    if not (root / "CMakeLists.txt").is_file():
        print(f"{root}: not a Berth tree (no CMakeLists.txt)", file=sys.stderr)
        return 2
    tree = check_all(root, rewrite)
    print("\n".join(tree.findings))
    print(f"{len(tree.code())} code files of {len(tree.files)} files checked, "
          f"{len(tree.findings)} findings")
    return 1 if tree.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
