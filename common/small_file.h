// Small files read and written whole: kernel files, identities, ready markers. Bounded, so that a
// wrong path never fills the memory.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "common/error.h"

namespace berth {

inline constexpr size_t kSmallFileBytesMax = 1 << 20;

// Errors: kIoError naming the path; a file larger than the bound is refused.
Result<std::string> read_small_file(const std::string& path);

// Readers see the old content or the new, never a part: a temporary file beside it, fsync, rename,
// and fsync of the directory, so that it also survives a power cut. Errors: kIoError naming the
// path.
Result<> write_small_file(const std::string& path, std::string_view content, mode_t mode = 0644);

}  // namespace berth
