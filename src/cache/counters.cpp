// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/counters.h"

namespace wavejit::cache {

CounterValues Counters::values() const {
  return {.lookups = lookups,
          .hits = hits,
          .layer_hits = layer_hits,
          .user_hits = user_hits,
          .memory_hits = memory_hits,
          .misses = misses,
          .absent = absent,
          .damaged = damaged,
          .refused = refused,
          .read_faults = read_faults,
          .publishes = publishes,
          .published = published,
          .publish_failures = publish_failures,
          .publishes_skipped = publishes_skipped,
          .kept_in_memory = kept_in_memory,
          .dropped = dropped,
          .turns = turns,
          .turns_taken = turns_taken,
          .turns_answered = turns_answered,
          .turns_timed_out = turns_timed_out,
          .turns_unlocked = turns_unlocked,
          .turns_waited = turns_waited,
          .sweeps = sweeps,
          .evicted = evicted,
          .evicted_bytes = evicted_bytes,
          .leftovers_removed = leftovers_removed,
          .sweep_faults = sweep_faults,
          .remote_lookups = remote_lookups,
          .remote_hits = remote_hits,
          .remote_misses = remote_misses,
          .remote_damaged = remote_damaged,
          .remote_faults = remote_faults,
          .remote_skipped = remote_skipped,
          .remote_publishes = remote_publishes,
          .remote_published = remote_published,
          .remote_publish_failures = remote_publish_failures,
          .remote_dropped = remote_dropped};
}

}  // namespace wavejit::cache
