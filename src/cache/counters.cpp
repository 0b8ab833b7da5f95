#include "cache/counters.h"

namespace wavejit::cache {

CounterValues Counters::values() const {
  return {.lookups = lookups,
          .hits = hits,
          .misses = misses,
          .absent = absent,
          .damaged = damaged,
          .refused = refused,
          .read_faults = read_faults,
          .publishes = publishes,
          .published = published,
          .publish_failures = publish_failures,
          .publishes_skipped = publishes_skipped,
          .dropped = dropped};
}

}  // namespace wavejit::cache
