#include "templates/attention_forward/dualwave_schedule.h"

namespace wavejit::attention_forward::dualwave {
namespace {

using language::Rung;

// Operations behind each matrix instruction. A matrix instruction takes 8 issue slots of 4 cycles, its own included; a
// plain operation takes one, exp2 two. `finish` is 16 exp2 and 49 plain ones, `begin` 24 plain ones up to the new
// maximum and then 32 plain ones with 16 exp2.
constexpr std::array<Rung, 1> finish_64 = {{{.matrix = 8, .vector = 8}}};
constexpr std::array<Rung, 1> finish_128 = {{{.matrix = 16, .vector = 4}}};
constexpr std::array<Rung, 2> begin_64 = {{{.matrix = 3, .vector = 8}, {.matrix = 5, .vector = 10}}};
constexpr std::array<Rung, 2> begin_128 = {{{.matrix = 4, .vector = 6}, {.matrix = 12, .vector = 4}}};

constexpr std::array<Cluster, 1> start_table = {{
    // Keys first: tile 0's are awaited while its values and tile 1's keys stay on their way.
    {.name = "fill",
     .fetch = {{{Stream::keys, 0}, {Stream::values, 0}, {Stream::keys, 1, true}}},
     .batches_in_flight = 2},
}};

// t = −1.
constexpr std::array<Cluster, 4> prologue_table = {{
    {.name = "keys", .read = {Stream::keys, 1}},
    {.name = "scores", .product = Product::scores},
    {.name = "values", .fetch = {{{Stream::keys, 3, true}}}, .mask = true, .batches_in_flight = 1},
    {.name = "output", .softmax = Softmax::begin, .raised_priority = true},
}};

constexpr std::array<Cluster, 4> steady_table = {{
    {.name = "keys", .fetch = {{{Stream::values, 1}}}, .read = {Stream::keys, 1}, .batches_in_flight = 2},
    {.name = "scores",
     .product = Product::scores,
     .softmax = Softmax::finish,
     .ladder_64 = finish_64,
     .ladder_128 = finish_128},
    {.name = "values",
     .fetch = {{{Stream::keys, 3, true}}},
     .read = {Stream::values, 0},
     .mask = true,
     .batches_in_flight = 2},
    {.name = "output",
     .product = Product::output,
     .softmax = Softmax::begin,
     .ladder_64 = begin_64,
     .ladder_128 = begin_128,
     .raised_priority = true},
}};

constexpr std::array<Cluster, 4> drain_table = {{
    {.name = "arrival", .batches_in_flight = 1},
    {.name = "weights", .softmax = Softmax::finish},
    {.name = "values", .read = {Stream::values, 0}, .batches_in_flight = 0},
    {.name = "output", .product = Product::output, .raised_priority = true},
}};

}  // namespace

std::span<const Cluster> start() { return start_table; }
std::span<const Cluster> prologue() { return prologue_table; }
std::span<const Cluster> steady() { return steady_table; }
std::span<const Cluster> drain() { return drain_table; }

}  // namespace wavejit::attention_forward::dualwave
