// Replicas that become READY together, as a commit of a reservation's items makes them, and what
// becomes of them.
#pragma once

#include <utility>
#include <vector>

#include "tests/unit/store/record_samples.h"

namespace berth::testing {

inline Replica ready_replica(RecordSamples& samples, uint64_t id, uint32_t in_namespace = 1) {
  Replica replica = samples.a_replica();
  replica.id = ReplicaId(id);
  replica.key.namespace_number = in_namespace;
  replica.state = ReplicaState::kReady;
  replica.why = Why::kNone;
  return replica;
}

inline Mutation first_record(const Replica& replica) {
  Mutation mutation = put_of(replica);
  mutation.is_first_record = true;
  return mutation;
}

inline std::vector<Mutation> first_records(uint64_t first, uint64_t count) {
  RecordSamples samples(first);
  std::vector<Mutation> mutations;
  for (uint64_t id = first; id < first + count; ++id)
    mutations.push_back(first_record(ready_replica(samples, id)));
  return mutations;
}

inline Mutation in_state(Mutation made, ReplicaState state, Why why) {
  Replica replica = std::get<Replica>(made.value);
  replica.state = state;
  replica.why = why;
  return put_of(replica);
}
inline Mutation retiring(const Mutation& made) {
  return in_state(made, ReplicaState::kRetiring, Why::kEvicted);
}

inline Mutation forgotten(uint64_t id) {
  return {RecordTraits<Replica>::key(ReplicaId(id)), Forgotten{}};
}
inline std::vector<Mutation> all_forgotten(uint64_t first, uint64_t count) {
  std::vector<Mutation> mutations;
  for (uint64_t id = first; id < first + count; ++id) mutations.push_back(forgotten(id));
  return mutations;
}

}  // namespace berth::testing
