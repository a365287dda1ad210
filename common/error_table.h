// The table of reasons (error.h) as docs/errors.md prints it, so that the page cannot differ from
// the code. Pure; the same text in every build.
#pragma once

#include <string>

namespace berth {

// One row a Reason, in the order of the enum. Ends with a newline.
std::string render_reasons_markdown();

}  // namespace berth
