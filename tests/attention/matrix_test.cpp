// The attention kernel against float64, over the whole matrix that is promised:
//   {gfx942, gfx950} × {fp16, bf16} × head dim {64, 128} × {full, causal} × lengths × heads × layouts,
// each case under three wave schedules with other noise in registers and LDS; the bits must be the same under all
// three.
#include <gtest/gtest.h>

#include <array>
#include <format>
#include <string>
#include <tuple>

#include "attention/schedules.h"
#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

struct Lengths {
  int query;
  int key;
};

// Every length of the list as a query length and as a key length, equal, shorter and longer than its partner.
constexpr std::array lengths = {
    Lengths{1, 0},     Lengths{33, 0},   Lengths{1, 1},     Lengths{31, 31},   Lengths{33, 33},   Lengths{63, 63},
    Lengths{64, 64},   Lengths{65, 65},  Lengths{127, 127}, Lengths{129, 129}, Lengths{255, 255}, Lengths{257, 257},
    Lengths{513, 513}, Lengths{1, 1024}, Lengths{1024, 1},  Lengths{31, 65},   Lengths{65, 31},   Lengths{33, 127},
    Lengths{63, 257},  Lengths{64, 129}, Lengths{129, 64},  Lengths{127, 513}, Lengths{255, 63},  Lengths{257, 33},
    Lengths{513, 255}, Lengths{1, 33},   Lengths{64, 1024}, Lengths{1, 63},    Lengths{65, 1},
};

struct Heads {
  int query;
  int kv;
};
constexpr std::array heads = {Heads{2, 2}, Heads{4, 1}, Heads{8, 1}, Heads{8, 2}};  // groups of 1, 4, 8 and again 4
constexpr std::array layouts = {Layout::bshd, Layout::bhsd, Layout::padded};

using Combination = std::tuple<std::string, Storage, int, bool>;

class AttentionMatrix : public ::testing::TestWithParam<Combination> {};

TEST_P(AttentionMatrix, MatchesFloat64) {
  const auto [target, storage, head_dim, causal] = GetParam();
  Engine engine(target);
  int index = 0;
  for (const Lengths& length : lengths) {
    const Heads head = heads[index % heads.size()];
    const int batch = index % 3 == 1 ? 2 : 1;
    AttentionCase which =
        make_case(storage, batch, length.query, length.key, head.query, head.kv, head_dim, causal, 1000 + index);
    which.layout = layouts[index % layouts.size()];
    which.lse = index % 4 != 3;
    SCOPED_TRACE(std::format("b{} q{} k{} h{}/{} layout {} lse {}", batch, length.query, length.key, head.query,
                             head.kv, static_cast<int>(which.layout), which.lse));
    check_under_all_schedules(engine, which);
    if (HasFatalFailure()) return;
    ++index;
  }
}

// The longest square case apart: one head pair is enough, and it keeps the matrix above quick.
TEST_P(AttentionMatrix, MatchesFloat64At1024) {
  const auto [target, storage, head_dim, causal] = GetParam();
  Engine engine(target);
  check_under_all_schedules(engine, make_case(storage, 1, 1024, 1024, 2, 1, head_dim, causal, 77));
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage, head_dim, causal] = info.param;
  return std::format("{}_{}_d{}_{}", target, storage == Storage::fp16 ? "fp16" : "bf16", head_dim,
                     causal ? "causal" : "full");
}

INSTANTIATE_TEST_SUITE_P(All, AttentionMatrix,
                         ::testing::Combine(::testing::Values(std::string("gfx942"), std::string("gfx950")),
                                            ::testing::Values(Storage::fp16, Storage::bf16), ::testing::Values(64, 128),
                                            ::testing::Bool()),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
