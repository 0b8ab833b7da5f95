// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention/value_beside.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "attention/value_garbage.h"

namespace wavejit::tests {
namespace {

constexpr float hidden = -std::numeric_limits<float>::infinity();

class Beside {
 public:
  Beside(RowEngines& engines, const ValueRow& row, const AttentionCase& which, const AttentionOutput& output)
      : engines_(engines), row_(row), which_(which), output_(output) {}

  // Each query head with keys and values of its own, whose kernel has one head a workgroup.
  void copies() const {
    AttentionCase other = which_;
    AttentionInputs& in = other.inputs;
    const auto copied = [&](const std::vector<float>& from, int dim) {
      std::vector<float> all;
      for (auto row = from.begin(); row != from.end(); row += dim)
        for (int head = 0; head < in.query_heads / in.kv_heads; ++head) all.insert(all.end(), row, row + dim);
      return all;
    };
    in.k = copied(in.k, in.head_dim);
    in.v = copied(in.v, in.value_dim());
    in.kv_heads = in.query_heads;
    other.splits = 1;
    expect_same(other, engine(), {"!heads=packed"});
  }

  void one_wave() const { expect_same(which_, engines_.pinned("generic,chunk_waves=1"), {"!chunk_waves="}); }
  void generic() const { expect_same(which_, engines_.pinned("generic"), {"pipeline=generic"}); }
  void single_tiles() const { expect_same(which_, engines_.pinned("dualwave,tiles=single"), {"!tiles=paired"}); }

  // As the last rows of a longer query. With a causal mask the diagonal is aligned there, so they see the same keys.
  void longer() const {
    constexpr int rows = 260;
    AttentionCase other = which_;
    AttentionInputs& in = other.inputs;
    const std::size_t row = std::size_t(in.query_heads) * in.head_dim;
    in.query_length = rows;
    in.q = normal_values(which_.storage, rows * row, 1, 4000);
    std::ranges::copy(which_.inputs.q, in.q.end() - std::ssize(which_.inputs.q));
    const AttentionOutput longer = run(other, engine(), {"tile=128x64"});
    EXPECT_TRUE(std::ranges::equal(output_.o, std::span(longer.o).last(output_.o.size()))) << "O differs";
    const auto own = static_cast<std::size_t>(which_.inputs.query_length);
    for (std::size_t h = 0; std::cmp_less(h, in.query_heads); ++h)
      EXPECT_TRUE(std::ranges::equal(std::span(output_.lse).subspan(h * own, own),
                                     std::span(longer.lse).subspan((h + 1) * rows - own, own)))
          << "LSE of head " << h << " differs";
  }

  void two_launches() const {
    AttentionCase other = which_;
    other.flags = WAVEJIT_TWO_LAUNCHES;
    expect_same(other, engine(), {"!merged"});
  }

  // One kernel for long and short rows.
  void one_kernel() const { expect_same(which_, engines_.pinned("generic"), {"!rows="}); }
  void unsplit() const {
    AttentionCase other = with_workspace(0);
    other.splits = 1;
    expect_same(other, engine(), {"rows=many"});
  }
  // Workspaces of the caller: as large as the call wants it, for fewer rows, too small.
  void workspaces() const {
    for (const std::size_t withheld : {std::size_t{0}, std::size_t{1}, std::size_t{1} << 40})
      expect_same(with_workspace(withheld), engine(), {"rows=many"});
  }

  // Sequences one after the other, because the caller's workspace has room for some; for none: without splitting.
  void rounds() const {
    const AttentionInputs& in = which_.inputs;
    const std::size_t chunks = (std::size_t(in.key_length) + 1023) / 1024;
    // docs/split-keys.md, "The workspace".
    const std::size_t of_sequence = std::size_t(in.query_length) * in.query_heads * chunks * (in.value_dim() + 4) * 4;
    const auto all = static_cast<std::size_t>(in.batch);
    for (const std::size_t fitting : {all, (all + 1) / 2, std::size_t{1}, std::size_t{0}}) {
      SCOPED_TRACE("room for " + std::to_string(fitting));
      expect_same(with_workspace((all - fitting) * of_sequence), engine(),
                  {fitting == 0 ? "!split=1024" : "split=1024"});
    }
  }

  // The same mask, of each head its own, by which tiles are walked.
  void walks() const {
    AttentionCase other = which_;
    AttentionInputs& in = other.inputs;
    const std::vector<std::uint8_t> one = std::exchange(in.shown, {});
    const std::size_t of_batch = one.size() / static_cast<std::size_t>(in.shown_batches);
    for (std::size_t b = 0; std::cmp_less(b, in.shown_batches); ++b)
      for (int h = 0; h < in.query_heads; ++h)
        in.shown.insert(in.shown.end(), one.begin() + static_cast<std::ptrdiff_t>(b * of_batch),
                        one.begin() + static_cast<std::ptrdiff_t>((b + 1) * of_batch));
    in.shown_heads = in.query_heads;
    expect_same(other, engine(), {"block_lists bool_mask"});
  }
  // A pinned kernel has waves with rows of their own.
  void own_rows() const { expect_same(which_, engines_.pinned("generic"), {"!chunk_waves="}); }
  // Where scores are modified either way, a bias of 0 adds nothing to them.
  void hiding_bias() const {
    AttentionCase other = which_;
    AttentionInputs& in = other.inputs;
    in.bias_batches = in.shown_batches;
    in.bias_heads = in.shown_heads;
    for (const std::uint8_t byte : std::exchange(in.shown, {})) in.bias.push_back(byte != 0 ? 0 : hidden);
    expect_same(other, engine(), {"!bool_mask"});
  }
  void whole_bias() const {
    AttentionCase other = which_;
    other.bias_by_tile = false;
    expect_same(other, engine(), {"!block_lists"});
  }
  void no_lists() const {
    AttentionCase other = which_;
    other.inputs.lists.reset();
    expect_same(other, engines_.pinned("generic"), {"!block_lists"});
  }
  void lists_alike() const {
    AttentionCase other = which_;
    other.list_form.alike = true;
    expect_same(other, engine(), {"block_lists"});
  }

  // Masks that show the same keys.
  void no_mask() const { beside_mask(which_.inputs.causal, 0); }
  void causal_mask() const { beside_mask(true, 0); }
  void chunked_mask() const { beside_mask(true, 90); }

  // Key lengths beyond the rows that there are. The diagonal stands where the length puts it, and keys beyond the rows
  // do not exist: as in the row, whose first row stands at that key.
  void told_lengths() const {
    AttentionCase other = which_;
    AttentionInputs& in = other.inputs;
    other.told_key_lengths.emplace(static_cast<std::size_t>(in.batch), *in.prefix + in.query_length);
    in.prefix.reset();
    expect_same(other, engine(), {});
  }

  // NaN and infinities in all keys that no row sees, on every pipeline, or where the row runs.
  void garbage() const {
    int unseen = 0;
    const AttentionCase dirty = with_garbage(which_, unseen);
    EXPECT_GT(unseen, 0) << "nothing to show";
    on_every_engine(dirty);
  }
  // Engines free pages wholly in front of a window, and give them to others.
  void freed_pages() const {
    constexpr std::uint16_t bf16_infinity = 0x7F80;
    AttentionCase freed = which_;
    freed.pages->freed = {seen_keys(which_.inputs, 0).begin / which_.pages->size};
    on_every_engine(freed);
    freed.pages->garbage = bf16_infinity;
    on_every_engine(freed);
  }

 private:
  const Engine& engine() const { return engines_.of(row_); }
  void beside_mask(bool causal, int local_chunk) const {
    AttentionCase other = which_;
    other.inputs.shown.clear();
    other.inputs.window = false;
    other.inputs.causal = causal;
    other.inputs.local_chunk = local_chunk;
    const AttentionOutput output = run(other, engine(), {});
    EXPECT_NE(output.kernel_spec, output_.kernel_spec);
    expect_bits(output);
  }
  AttentionCase with_workspace(std::size_t withheld) const {
    AttentionCase other = which_;
    other.own_workspace = true;
    other.withheld_workspace = withheld;
    return other;
  }

  void expect_words(const AttentionOutput& output, const std::vector<std::string>& words) const {
    for (const std::string& word : words)
      EXPECT_EQ(output.kernel_spec.contains(' ' + word.substr(word.starts_with('!') ? 1 : 0)), !word.starts_with('!'))
          << output.kernel_spec;
  }
  AttentionOutput run(const AttentionCase& other, const Engine& engine, const std::vector<std::string>& words) const {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    AttentionOutput output = run_attention(engine.get(), other);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O, LSE or the workspace was written";
    expect_words(output, words);
    return output;
  }
  void expect_bits(const AttentionOutput& other) const {
    EXPECT_TRUE(other.o == output_.o) << "O differs in " << other.kernel_spec;
    EXPECT_TRUE(bits_of(other.lse) == bits_of(output_.lse)) << "LSE differs in " << other.kernel_spec;
  }
  void expect_same(const AttentionCase& other, const Engine& engine, const std::vector<std::string>& words) const {
    expect_bits(run(other, engine, words));
  }
  void on_every_engine(const AttentionCase& other) const {
    if (row_.says("pinned")) return expect_same(other, engine(), {});
    for (const auto& each : engines_.pipelines().engines()) {
      set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
      const AttentionOutput output = run_attention(each->get(), other);
      if (output.status == WAVEJIT_UNSUPPORTED) continue;
      EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
      EXPECT_EQ(output.reports, "");
      EXPECT_TRUE(output.fence_intact);
      expect_bits(output);
    }
  }

  RowEngines& engines_;
  const ValueRow& row_;
  const AttentionCase& which_;
  const AttentionOutput& output_;
};

constexpr std::pair<const char*, void (Beside::*)() const> calls[] = {
    {"copies", &Beside::copies},
    {"one_wave", &Beside::one_wave},
    {"generic", &Beside::generic},
    {"single_tiles", &Beside::single_tiles},
    {"longer", &Beside::longer},
    {"two_launches", &Beside::two_launches},
    {"one_kernel", &Beside::one_kernel},
    {"unsplit", &Beside::unsplit},
    {"workspaces", &Beside::workspaces},
    {"rounds", &Beside::rounds},
    {"walks", &Beside::walks},
    {"own_rows", &Beside::own_rows},
    {"hiding_bias", &Beside::hiding_bias},
    {"whole_bias", &Beside::whole_bias},
    {"no_lists", &Beside::no_lists},
    {"lists_alike", &Beside::lists_alike},
    {"no_mask", &Beside::no_mask},
    {"causal_mask", &Beside::causal_mask},
    {"chunked_mask", &Beside::chunked_mask},
    {"told_lengths", &Beside::told_lengths},
    {"garbage", &Beside::garbage},
    {"freed_pages", &Beside::freed_pages},
};

}  // namespace

const Engine& RowEngines::pinned(const std::string& words) {
  std::unique_ptr<Engine>& known = pinned_[words];
  if (!known) {
    std::string pipeline = words;
    std::ranges::replace(pipeline, ',', ' ');
    known = std::make_unique<Engine>(target_, nullptr, pipeline.empty() ? nullptr : pipeline.c_str());
  }
  return *known;
}

void expect_bits_beside(const std::string& name, RowEngines& engines, const ValueRow& row, const AttentionCase& which,
                        const AttentionOutput& output) {
  SCOPED_TRACE("beside " + name);
  const auto* const call = std::ranges::find(calls, name, [](const auto& each) { return std::string(each.first); });
  if (call == std::end(calls)) throw std::runtime_error("no call is called '" + name + "'");
  (Beside(engines, row, which, output).*call->second)();
}

}  // namespace wavejit::tests
