// CHECK: for what only our own code can break. It stays on in release builds, because a directory
// that runs on after a broken assumption would free memory on a guess. Input from callers, disks
// and networks never ends here: it gets an Error.
#pragma once

#include <cstdio>
#include <cstdlib>

#define BERTH_CHECK(condition, message)                                                     \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::fprintf(stderr, "%s:%d: CHECK failed: %s: %s\n", __FILE__, __LINE__, #condition, \
                   (message));                                                              \
      std::abort();                                                                         \
    }                                                                                       \
  } while (false)
