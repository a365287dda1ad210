#!/usr/bin/env python3
"""Shows that every rule of check_tree.py works: each violation is planted in a small tree and must be found."""

import shutil
import tempfile
import unittest
from pathlib import Path

import check_tree

COMMENT = "// A thing for tests.\n// It promises nothing.\n"
HEADER = COMMENT + "#pragma once\n"

CLEAN = {
    "CMakeLists.txt": "project(berth)\n",
    ".clang-format": "BasedOnStyle: Google\nColumnLimit: 100\n",
    "common/ids.h": HEADER,
    "common/clock.h": HEADER,
    "common/clock.cc": '#include "common/clock.h"\n\n#include <time.h>\n\n'
                       "int now() { return clock_gettime(0, nullptr); }\n",
    "server/directory/draft.h": HEADER + '\n#include "common/ids.h"\n',
    "server/store/store.h": HEADER,
    "server/sequencer/sequencer.cc": '#include "server/store/store.h"\n',
    "tests/integration/kill_test.cc": "void f() { usleep(10); }\n",
    "docs/testing.md": "Run `berth-replay --trace ../shared/traces/x.jsonl` where it exists.\n",
    # Words that only look like violations.
    "worker/pool/ledger.cc": "// steady_clock is not read here, and nobody may sleep().\n"
                             'const char* kText = "time(nullptr)";\nint runtime(int);\nint x = runtime(0);\n',
    "worker/local/database.cc": "// framework/shared_ptr; TODO(#12): split once a second medium is there.\n",
}

# (name, file, text, part of the finding).
PLANTED = [
    ("layer: core includes the store", "server/directory/a.cc", '#include "server/store/store.h"\n',
     'must not include "server/store/store.h"'),
    ("layer: core includes wire protos", "server/policy/a.cc", '#include "berth/v1/types.pb.h"\n',
     'must not include "berth/v1/types.pb.h"'),
    ("layer: core includes a clock", "server/directory/a.cc", '#include "common/clock.h"\n',
     'must not include "common/clock.h"'),
    ("layer: common includes the server", "common/a.cc", '#include "server/directory/draft.h"\n',
     "common includes only itself"),
    ("layer: the client includes the worker", "worker/client/a.cc", '#include "worker/pool/ledger.h"\n',
     'must not include "worker/pool/ledger.h"'),
    ("layer: the sequencer sees more of the store", "server/sequencer/a.cc",
     '#include "server/store/rocks_store.h"\n', 'must not include "server/store/rocks_store.h"'),
    ("layer: an unknown folder", "server/magic/a.cc", '#include "common/ids.h"\n', "is in no layer"),
    ("include relative to the file", "server/directory/a.cc", '#include "draft.h"\n', "from the root"),
    ("include of nothing", "server/directory/a.cc", '#include "server/directory/none.h"\n', "does not exist"),
    ("pure code takes a mutex", "server/directory/a.cc", "#include <mutex>\n", "pure code must not include"),
    ("pure worker core does I/O", "worker/pool/ledger_io.cc", "#include <fcntl.h>\n",
     "pure code must not include"),
    ("a header that clang 14 lacks", "common/a.cc", "#include <format>\n", "does not compile"),
    ("toml elsewhere", "server/rpc/a.cc", "#include <toml.hpp>\n", "common/config.h"),
    ("rocksdb elsewhere", "server/rpc/a.cc", "#include <rocksdb/db.h>\n", "store.h"),
    ("rocksdb in a public header of the store", "server/store/open.h", HEADER + "\n#include <rocksdb/db.h>\n",
     "store.h"),
    ("prometheus elsewhere", "server/rpc/a.cc", "#include <prometheus/counter.h>\n", "common/metrics.h"),
    ("spdlog elsewhere", "worker/pool/a.cc", "#include <spdlog/spdlog.h>\n", "common/log.h"),
    ("json elsewhere", "server/store/a.cc", "#include <nlohmann/json.hpp>\n", "JSON"),
    ("gRPC in the sequencer", "server/sequencer/a.cc", "#include <grpcpp/grpcpp.h>\n", "speaks no gRPC"),
    ("CUDA elsewhere", "worker/pool/a.cc", "#include <cuda_runtime_api.h>\n", "device.h"),
    ("CLI11 elsewhere", "worker/pool/a.cc", "#include <CLI/CLI.hpp>\n", "beside main"),
    ("steady_clock", "worker/session/a.cc", "auto t = std::chrono::steady_clock::now();\n", "reads a clock"),
    ("time()", "server/rpc/a.cc", "auto t = std::time(nullptr);\n", "reads a clock"),
    ("clock_gettime", "server/a.cc", "int f() { return clock_gettime(1, p); }\n", "reads a clock"),
    ("sleep in a unit test", "tests/unit/common/a_test.cc", "void f() { usleep(10); }\n", "sleeps"),
    ("sleep in the simulator", "tests/sim/a.cc", "void f() { std::this_thread::sleep_for(x); }\n", "sleeps"),
    ("sleep in product code", "worker/local/a.cc", "void f() { sleep(1); }\n", "sleeps"),
    ("header without a comment", "common/a.h", "#pragma once\n", "at least two lines"),
    ("header with one line", "common/a.h", "// A thing.\n#pragma once\n", "at least two lines"),
    ("header without pragma once", "common/a.h", COMMENT, "#pragma once"),
    ("using namespace in a header", "common/a.h", HEADER + "\nusing namespace std;\n", "using namespace"),
    ("a file called utils", "common/utils.cc", "int x;\n", "name the thing's job"),
    ("a folder called helpers", "server/helpers/a.txt", "x\n", "name the thing's job"),
    ("a manager", "worker/pool/pool_manager.cc", "int x;\n", "name the thing's job"),
    ("a bare TODO", "server/rpc/a.cc", "// TODO: later\n", "TODO(#issue)"),
    ("a FIXME in a document", "docs/a.md", "FIXME\n", "TODO(#issue)"),
    ("a folder of one machine", "server/rpc/a.cc", '// see "/work/notes"\n', "outside the project"),
    ("shared traces in product code", "worker/replay/a.cc", "// ../shared/traces/x.jsonl\n",
     "outside the project"),
    ("another shared folder in a document", "docs/a.md", "See ../shared/cases.\n", "outside the project"),
]


class CheckTreeTest(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="berth-tidy-"))
        self.addCleanup(shutil.rmtree, self.root)
        for path, text in CLEAN.items():
            self.write(path, text)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def findings(self):
        return check_tree.check_all(self.root).findings

    def test_a_clean_tree_has_no_findings(self):
        self.assertEqual(self.findings(), [])

    def test_every_planted_violation_is_found_once_where_it_is_and_names_a_fix(self):
        for name, path, text, expected in PLANTED:
            with self.subTest(name):
                existed = CLEAN.get(path)
                self.write(path, text)
                found = self.findings()
                self.assertEqual(len(found), 1, found)
                self.assertIn(expected, found[0])
                self.assertTrue(path.startswith(found[0].split(":")[0]), found[0])
                self.assertRegex(found[0], r"^[^:]+:\d+: .+; .+")
                (self.root / path).unlink()
                if existed is not None:
                    self.write(path, existed)
                parent = (self.root / path).parent
                if not any(parent.iterdir()):
                    parent.rmdir()

    def test_a_second_file_with_a_slow_library_is_found(self):
        self.write("server/ctl/first.cc", "#include <CLI/CLI.hpp>\n")
        self.assertEqual(self.findings(), [])
        self.write("server/ctl/second.cc", "#include <CLI/CLI.hpp>\n")
        self.assertIn("a second file of server/ctl/", " ".join(self.findings()))

    def test_a_layer_row_exists_for_every_folder_of_the_real_tree(self):
        tree = check_tree.Tree(Path(check_tree.__file__).parents[2])
        homeless = [f for f in tree.code() if not check_tree.first_row(check_tree.rules.LAYERS, f)]
        self.assertEqual(homeless, [])

    @unittest.skipUnless(shutil.which("clang-format"), "clang-format is missing")
    def test_unformatted_code_is_found_and_the_named_command_mends_it(self):
        self.write("common/a.cc", "int  f( ){return 1;}\n")
        found = self.findings()
        self.assertEqual(len(found), 1, found)
        self.assertIn("--format", found[0])
        self.assertEqual(check_tree.check_all(self.root, rewrite=True).findings, [])


if __name__ == "__main__":
    unittest.main()
