// Numbered commits of three records each, which are there whole or not at all: what a test of
// durability writes, and how it counts what is left of it.
#pragma once

#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/store/record_samples.h"
#include "tests/unit/store/stored.h"

namespace berth::testing {

inline std::vector<Mutation> transition(uint64_t n) {
  RecordSamples samples(n);
  Replica replica = samples.a_replica();
  replica.id = ReplicaId(n);
  Lease lease = samples.a_lease();
  lease.id = LeaseId(n);
  Job job = samples.a_job();
  job.id = JobId(n);
  return {put_of(replica), put_of(lease), put_of(job)};
}

// The number of transitions that are there, each whole, from the first one on.
inline uint64_t whole_transitions(const Stored& stored) {
  uint64_t count = 0;
  while (stored.find(RecordTraits<Replica>::key(ReplicaId(count + 1)))) ++count;
  CHECK(stored.loaded.records == 3 * count);
  if (count > 0) {
    CHECK(stored.find(RecordTraits<Lease>::key(LeaseId(count))));
    CHECK(stored.find(RecordTraits<Job>::key(JobId(count))));
  }
  return count;
}

}  // namespace berth::testing
