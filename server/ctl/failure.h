// Why a command did not do what was asked, in the terms of whoever typed it: the exit code that
// scripts test, a sentence that names the thing, and what to do about it.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "common/error.h"

namespace berth::ctl {

// Part of the interface: documented in --help and docs/berthctl.md, never renumbered.
enum class ExitCode : int {
  kOk = 0,
  kRefused = 1,      // the server said no, or a check found something broken
  kUsage = 2,        // the command line makes no sense; nothing was sent
  kUnreachable = 3,  // no answer from the server
  kNotReady = 4,     // the server answered that it cannot do this now
};

struct Failure {
  ExitCode exit_code = ExitCode::kRefused;
  std::string message;
  std::string advice;  // a sentence; may be empty
  std::string reason;  // wire name, see docs/errors.md; empty when the server gave none
};

// What the server answered, or why there is no answer.
template <class T>
using Answer = tl::expected<T, Failure>;

inline tl::unexpected<Failure> fail(Failure failure) { return tl::unexpected(std::move(failure)); }
inline tl::unexpected<Failure> fail_usage(std::string message, std::string advice = "") {
  return fail({ExitCode::kUsage, std::move(message), std::move(advice), ""});
}

// A value of the command line that common/ could not parse.
template <class T>
Answer<T> usage_answer(Result<T> result) {
  if (!result) return fail_usage(result.error().message);
  return std::move(*result);
}

}  // namespace berth::ctl
