// An operating-system refusal as our Error: what was attempted, on what, and what the kernel said.
// Always Reason::kIoError; a caller that can tell more from errno makes its own Error.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "common/error.h"

namespace berth {

// "cannot lock /run/berth/w0.life: Permission denied". `code` is an errno value.
inline tl::unexpected<Error> refuse_os(const std::string& attempt, int code = errno) {
  return refuse(Reason::kIoError,
                "cannot " + attempt + ": " + std::generic_category().message(code));
}

}  // namespace berth
