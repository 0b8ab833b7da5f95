#include "templates/attention_forward/emit/interleaved_schedule.h"

namespace wavejit::attention_forward::interleaved {
namespace {

constexpr std::array<Step, 1> start_table = {{
    {.name = "fill", .fetch = {Stream::keys, 0}, .write = {Stream::keys, 0}},
}};

// t = −1.
constexpr std::array<Step, 2> prologue_table = {{
    {.name = "scores", .fetch = {Stream::keys, 2, true}, .product = Product::scores},
    {.name = "output", .fetch = {Stream::values, 1}, .softmax = Softmax::begin, .write = {Stream::keys, 2}},
}};

constexpr std::array<Step, 2> steady_table = {{
    {.name = "scores",
     .fetch = {Stream::keys, 2, true},
     .product = Product::scores,
     .softmax = Softmax::finish,
     .write = {Stream::values, 0}},
    {.name = "output",
     .fetch = {Stream::values, 1},
     .product = Product::output,
     .softmax = Softmax::begin,
     .write = {Stream::keys, 2}},
}};

constexpr std::array<Step, 2> drain_table = {{
    {.name = "weights", .softmax = Softmax::finish, .write = {Stream::values, 0}},
    {.name = "output", .product = Product::output},
}};

}  // namespace

std::span<const Step> start() { return start_table; }
std::span<const Step> prologue() { return prologue_table; }
std::span<const Step> steady() { return steady_table; }
std::span<const Step> drain() { return drain_table; }

}  // namespace wavejit::attention_forward::interleaved
