#include "worker/replay/counts.h"

namespace berth::replay {

void Counts::add(const Counts& other) {
  requests += other.requests;
  blocks += other.blocks;
  prefix_hits += other.prefix_hits;
  stored += other.stored;
  already_present += other.already_present;
  being_written += other.being_written;
  skipped += other.skipped;
  for (const auto& [reason, count] : other.skipped_by_reason) skipped_by_reason[reason] += count;
  skipped_after_warm_up += other.skipped_after_warm_up;
  for (const auto& [reason, count] : other.skipped_after_warm_up_by_reason)
    skipped_after_warm_up_by_reason[reason] += count;
  not_stored += other.not_stored;
  load_errors += other.load_errors;
  store_errors += other.store_errors;
  verify_errors += other.verify_errors;
  load_fallbacks += other.load_fallbacks;
  misses_unavailable += other.misses_unavailable;
  rejoins += other.rejoins;
  loaded_items += other.loaded_items;
  load_nanos += other.load_nanos;
  store_nanos += other.store_nanos;
  probe_micros.insert(probe_micros.end(), other.probe_micros.begin(), other.probe_micros.end());
}

}  // namespace berth::replay
