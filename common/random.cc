#include "common/random.h"

#include <sys/random.h>

#include <cerrno>

#include "common/check.h"

namespace berth {
namespace {

uint64_t random_word() {
  uint64_t word = 0;
  ssize_t got = 0;
  do {
    got = getrandom(&word, sizeof word, 0);
  } while (got < 0 && errno == EINTR);
  // Requests of up to 256 bytes are never cut short, and a kernel without getrandom is not
  // supported.
  BERTH_CHECK(got == static_cast<ssize_t>(sizeof word), "getrandom failed");
  return word;
}

}  // namespace

Id128 random_id128() {
  Id128 id;
  while (!id.valid()) id = Id128{random_word(), random_word()};
  return id;
}

uint64_t random_seed() { return random_word(); }

}  // namespace berth
