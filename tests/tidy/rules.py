"""The rules that check_tree.py enforces, as tables: edit here when the design moves, and say why in the commit.

Patterns are matched against paths from the root, with forward slashes. A table's first matching row wins.
"""

# The pure core takes time, ids, errors and their text forms from common/, memory for its tables, and
# nothing else of it.
PURE_COMMON = r"common/(ids|time|units|error|check|names|text|zeroed_memory)\.h"
COMMON = r"common/.*"
WIRE = r"berth/v1/.*"
RECORDS = r"berth/store/v1/.*"

# (file, [project headers it may include], what the layer is). docs/architecture.md draws it.
LAYERS = [
    (r"common/rpc[^/]*", [COMMON, WIRE], "rpc helpers"),
    (r"common/.*", [COMMON], "common includes only itself"),
    (r"server/(directory|policy)/.*", [r"server/(directory|policy)/.*", PURE_COMMON],
     "the core is pure: records, commands, choices"),
    (r"server/sequencer/.*",
     [r"server/(directory|policy|sequencer)/.*", r"server/store/store\.h", COMMON],
     "the sequencer knows the store only as store.h"),
    (r"server/store/.*", [r"server/(directory|store)/.*", RECORDS, COMMON],
     "the store knows records, nothing that acts on them"),
    (r"server/rpc/.*",
     [r"server/(rpc|sequencer|directory|policy)/.*", r"server/store/store\.h", WIRE, COMMON],
     "rpc translates and submits"),
    (r"server/ctl/.*", [r"server/ctl/.*", WIRE, COMMON], "berthctl is a client like any other"),
    (r"server/[^/]*", [r"server/(?!ctl/).*", WIRE, COMMON], "berthd puts the parts together"),
    (r"worker/io/.*", [r"worker/io/.*", COMMON], "io engines"),
    (r"worker/device/.*", [r"worker/device/.*", COMMON], "the GPU gate"),
    (r"worker/pool/.*", [r"worker/(pool|io)/.*", COMMON], "pools know no protocol"),
    (r"worker/index/.*", [r"worker/(index|pool)/.*", COMMON], "the ledger that outlives a worker"),
    (r"worker/session/.*", [r"worker/(session|pool|io)/.*", WIRE, COMMON],
     "the conversation with berthd"),
    (r"worker/transfer/.*", [r"worker/(transfer|pool|io|device)/.*", WIRE, COMMON], "transfers"),
    (r"worker/local/.*", [r"worker/(local|session|pool|transfer|device|io)/.*", WIRE, COMMON],
     "the service for engines"),
    (r"worker/client/.*", [r"worker/client/.*", WIRE, COMMON],
     "what engines link holds nothing of the worker"),
    (r"worker/replay/.*", [r"worker/(replay|client)/.*", WIRE, COMMON],
     "berth-replay is an engine: it sees the client library"),
    (r"worker/[^/]*", [r"worker/(?!client/|replay/).*", WIRE, COMMON],
     "berth-worker puts the parts together"),
    (r"tests/.*", [r".*"], "tests may include anything"),
]

# Where the same answer must come out of the same commands, whatever the machine does meanwhile.
PURE_FILES = (r"server/(directory|policy)/.*|worker/pool/(ledger|extent_map)[^/]*"
              r"|worker/session/agent[^/]*")
IMPURE_HEADERS = (r"thread|mutex|shared_mutex|condition_variable|future|atomic|chrono|random|fstream"
                  r"|iostream|filesystem|semaphore|latch|barrier|time\.h|ctime|unistd\.h|fcntl\.h"
                  r"|(sys|grpc|grpcpp|rocksdb|spdlog|prometheus|systemd)/.*|liburing\.h|libpmem2\.h"
                  r"|numa\.h|cuda.*")

# (header of an outside library, the files that may include it, what to do instead).
LIBRARIES = [
    (r"toml\.hpp", r"common/config_document\.cc", "read configuration through common/config.h"),
    (r"CLI/.*", r"(server|server/ctl|worker|worker/replay|tests/(sim|bench|bench/rpc|bench/worker))/[^/]*\.cc",
     "parse the command line beside main"),
    (r"rocksdb/.*", r"(server/store|worker/index)/.*\.cc|(server/store|worker/index)/rocks[^/]*\.h|tests/.*",
     "go through server/store/store.h"),
    (r"prometheus/.*", r"common/metrics[^/]*|tests/.*", "go through common/metrics.h"),
    (r"(spdlog|fmt)/.*", r"common/log\.cc", "log through common/log.h"),
    (r"nlohmann/.*", r"(server/ctl|worker/replay)/.*|tests/.*",
     "only views and replay reports speak JSON"),
    (r"systemd/.*", r"common/.*", "notify the service manager through common/"),
    (r"numa(if)?\.h", r"worker/pool/.*", "bind memory in worker/pool"),
    (r"cuda.*", r"worker/device/.*\.cu", "go through worker/device/device.h"),
    (r"(grpc|grpcpp)/.*|google/protobuf/.*",
     r"common/rpc[^/]*|server/(rpc|ctl)/.*|server/[^/]*|worker/(session|local|client|replay)/.*|worker/[^/]*"
     r"|server/store/.*|tests/.*",
     "this layer speaks no gRPC or protobuf"),
]
# At most one file of a folder: each costs tens of seconds to compile.
LIBRARIES_ONCE_PER_FOLDER = [r"toml\.hpp", r"CLI/.*"]

# g++ 12 or clang 14 lack them.
MISSING_HEADERS = {
    "format": "snprintf or string concatenation",
    "source_location": "the BERTH_CHECK macro",
    "expected": "Result<T> of common/error.h",
    "ranges": "plain loops and <algorithm>",
}

# (files, reason): who may read a clock beside files named clock*.
CLOCK_READERS = [
    (r"common/rpc[^/]*", "a gRPC deadline is an absolute time of the system's clock"),
    (r"tests/(bench|integration)/.*", "measures, and waits for other processes with a bound"),
]

# (files, reason): who may sleep. Product code waits on a condition, an event or a descriptor instead.
SLEEPERS = [
    (r"tests/(bench|integration)/.*", "waits for other processes"),
]

# Words that say nothing about a thing's job. `base` only as the whole name.
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "misc", "manager"}
EMPTY_WHOLE_NAMES = {"base", "common_base", "stuff"}

# (files, pattern): places of one machine that must not be in the project.
FOREIGN_PATHS = r"(?<![\w.])/work(?=[/\s\"'`)]|$)|(?<![\w/-])(\.\./)*shared/(?=[a-z])"
# The traces are an optional input of tests and of the commands that documentation shows.
TRACES = r"\.\./shared/traces"
TRACE_READERS = r"(tests|docs)/.*|README\.md"
