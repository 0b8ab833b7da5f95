// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits: which of what is on its way is over for certain.
#include <algorithm>

#include "simgpu/checkers/checks/arrivals.h"

namespace wavejit::simgpu::checks {

std::uint64_t Arrivals::there_by(Counts counts) const {
  std::uint64_t time = 0;
  const auto all_but = [&](const Queue& queue, std::size_t newest) {
    for (std::size_t i = 0; i + newest < queue.size(); ++i) time = std::max(time, queue[i]->arrives);
  };
  if (counts.vector < most_vector) all_but(vector_queue_, counts.vector);
  if (counts.local < most_local) all_but(local_queue_, counts.local);
  if (counts.local == 0) all_but(scalar_queue_, 0);
  return time;
}

// Where LDS DMA lands in any order, a count says how many are on their way and not which. Only 0 makes one certain; for
// another one the newest have landed, which is the worst for who waits for the oldest.
void Arrivals::land_newest(Wave& wave, const Queue& queue, unsigned count) {
  auto left = static_cast<std::size_t>(std::ranges::count(queue, false, [](const auto& o) { return o->delivered; }));
  for (std::size_t i = queue.size(); i-- > 0 && left > count;) {
    if (!queue[i]->effects->lds_dma || queue[i]->delivered) continue;
    deliver(wave, *queue[i]);
    --left;
  }
}

void Arrivals::wait_vector(Wave& wave, Queue& queue, unsigned count) {
  auto ordered =
      static_cast<std::size_t>(std::ranges::count_if(queue, [&](const auto& o) { return !is_unordered(*o); }));
  for (std::size_t i = 0; i < queue.size();) {
    Operation& operation = *queue[i];
    if (operation.flat) {
      if (count == 0) operation.vector_done = true;
      if (operation.vector_done && operation.local_done) {
        complete(wave, queue, i);
      } else {
        ++i;
      }
    } else if (is_unordered(operation) ? count == 0 : ordered > count) {
      if (!is_unordered(operation)) --ordered;
      complete(wave, queue, i);
    } else {
      ++i;
    }
  }
  if (arrival_ == Arrival::unordered) land_newest(wave, queue, count);
}

void Arrivals::wait_local(Wave& wave, unsigned count) {
  while (local_queue_.size() > count) complete(wave, local_queue_, 0);
  if (count != 0) return;
  wait_scalar(wave);
  wait_flat(wave, vector_queue_);
}

void Arrivals::wait_scalar(Wave& wave) {
  while (!scalar_queue_.empty()) complete(wave, scalar_queue_, 0);
}

// Flat operations that may have gone to LDS are over on that side.
void Arrivals::wait_flat(Wave& wave, Queue& queue) {
  for (std::size_t i = 0; i < queue.size();) {
    Operation& operation = *queue[i];
    if (operation.flat) operation.local_done = true;
    if (operation.flat && operation.vector_done) {
      complete(wave, queue, i);
    } else {
      ++i;
    }
  }
}

// One counter of RDNA4's, oldest first: all but the newest `count` that it counts are over on its side. Flat accesses
// stand in the counters of their memory and of LDS, in order in both (LLVM, hasFlatLgkmVMemCountInOrder).
void Arrivals::wait_memory(Wave& wave, Queue& queue, unsigned count) {
  auto left = static_cast<std::size_t>(std::ranges::count(queue, false, [](const auto& o) { return o->vector_done; }));
  for (std::size_t i = 0; i < queue.size();) {
    Operation& operation = *queue[i];
    if (!operation.vector_done && left > count) {
      operation.vector_done = true;
      --left;
    }
    // A store that does not go to LDS is over when the counter of stores says so.
    const bool elsewhere = operation.effects->counts_store && operation.lds_access == no_access;
    if (operation.vector_done && (!operation.flat || operation.local_done || elsewhere)) {
      complete(wave, queue, i);
    } else {
      ++i;
    }
  }
}

void Arrivals::wait_lds(Wave& wave, unsigned count) {
  std::vector<Operation*> counted;
  for (Queue* queue : {&local_queue_, &vector_queue_, &store_queue_}) {
    for (const auto& operation : *queue) {
      const bool counts = queue == &local_queue_ || (operation->flat && !operation->local_done);
      if (counts) counted.push_back(operation.get());
    }
  }
  std::ranges::sort(counted, {}, &Operation::issued);
  for (std::size_t i = 0; i + count < counted.size(); ++i) counted[i]->local_done = true;
  for (Queue* queue : {&local_queue_, &vector_queue_, &store_queue_}) {
    for (std::size_t i = 0; i < queue->size();) {
      const Operation& operation = *(*queue)[i];
      const bool over = queue == &local_queue_ ? operation.local_done
                                               : operation.flat && operation.vector_done && operation.local_done;
      if (over) {
        complete(wave, *queue, i);
      } else {
        ++i;
      }
    }
  }
}

void Arrivals::wait_split(Wave& wave, Counts counts) {
  if (counts.vector < most_split) wait_memory(wave, vector_queue_, counts.vector);
  if (counts.store < most_split) wait_memory(wave, store_queue_, counts.store);
  if (counts.local < most_split) wait_lds(wave, counts.local);
  if (counts.scalar == 0) wait_scalar(wave);
}

void Arrivals::wait(Wave& wave, Counts counts) {
  if (arrival_ == Arrival::random) maybe_deliver(wave);
  if (counts.split) return wait_split(wave, counts);
  if (counts.vector < most_vector) wait_vector(wave, vector_queue_, counts.vector);
  if (counts.local < most_local) wait_local(wave, counts.local);
}

void Arrivals::finish(Wave& wave) {
  wait_vector(wave, vector_queue_, 0);
  wait_vector(wave, store_queue_, 0);
  wait_local(wave, 0);
  wait_flat(wave, store_queue_);
}

}  // namespace wavejit::simgpu::checks
