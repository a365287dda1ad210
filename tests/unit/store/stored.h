// A store read back whole, for tests that look at what is in it.
// The records are in the order in which the store handed them over.
#pragma once

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "server/store/store.h"

namespace berth::testing {

struct Stored {
  Store::Loaded loaded;
  std::vector<Mutation> mutations;

  const Mutation* find(const RecordKey& key) const {
    for (const Mutation& mutation : mutations)
      if (mutation.key == key) return &mutation;
    return nullptr;
  }
};

inline Stored read_all(Store& store) {
  Stored stored;
  const auto loaded = store.load(
      [&](std::vector<Mutation>&& batch) {
        for (Mutation& mutation : batch) stored.mutations.push_back(std::move(mutation));
      },
      {});
  if (!loaded) FAIL(loaded.error().message);
  stored.loaded = *loaded;
  return stored;
}

inline Mutation a_header(Epoch epoch = 1) { return put_of(Meta{{21, 42}, epoch}); }

}  // namespace berth::testing
