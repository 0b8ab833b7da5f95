#include "templates/attention_forward/emit/dualwave_schedule.h"

namespace wavejit::attention_forward::dualwave {
namespace {

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
    {.name = "scores", .product = Product::scores, .softmax = Softmax::finish},
    {.name = "values",
     .fetch = {{{Stream::keys, 3, true}}},
     .read = {Stream::values, 0},
     .mask = true,
     .batches_in_flight = 2},
    {.name = "output", .product = Product::output, .softmax = Softmax::begin, .raised_priority = true},
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
