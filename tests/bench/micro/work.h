// A piece of work of which we want to know what one item costs, in nanoseconds or in instructions:
// rounds of prepare, run, finish, of which only run() is measured. And the list of all of them,
// each beside the plainest thing that would do.
//
// Everything follows from pinned seeds: the same build does the same in every run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace berth::bench {

struct Work {
  std::function<void()> prepare = [] {};
  std::function<uint64_t()> run;  // items done
  std::function<void()> finish = [] {};
};

// Items of a round, about: enough that reading the clock around it costs nothing.
inline constexpr uint64_t kRoundItems = 512;
inline constexpr uint64_t kFewObjects = 10'000;
inline constexpr uint64_t kManyObjects = 1'000'000;

// A round of items that come and go: one of the two is measured, the other one is done unmeasured,
// before or behind it.
inline Work come_and_go(const std::function<void()>& come, const std::function<void()>& go,
                        bool measures_coming) {
  Work work;
  if (!measures_coming) work.prepare = come;
  work.run = [=] {
    measures_coming ? come() : go();
    return kRoundItems;
  };
  if (measures_coming) work.finish = go;
  return work;
}

struct Case {
  std::string name;  // family/what/parameters
  std::function<Work()> make;
  std::string baseline;  // what make_baseline does
  std::function<Work()> make_baseline;
  // Small enough for instructions.py.
  bool is_counted = false;
};
using Cases = std::vector<Case>;

void add_apply_cases(Cases& cases);
void add_index_cases(Cases& cases);
void add_codec_cases(Cases& cases);
void add_ledger_cases(Cases& cases);
void add_extent_cases(Cases& cases);
void add_policy_cases(Cases& cases);
Cases all_cases();

// Keeps the compiler from leaving out what nobody reads.
template <class Value>
void keep(const Value& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace berth::bench
