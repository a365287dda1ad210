// Every durable record of a directory as text, one line each, in one order: two directories are
// equal when their descriptions are.
#pragma once

#include <string>

#include "server/directory/directory.h"

namespace berth::sim {

std::string describe(const Directory& directory);
// The durable records again, in a directory of their own.
Directory copy_of(const Directory& directory);
uint64_t hash_of_text(const std::string& text);
// The first line in which two descriptions differ, for people.
std::string first_difference(const std::string& a, const std::string& b);

}  // namespace berth::sim
