// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lines of the program, run on an engine: against float64, and one against another.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "support/attention_run.h"
#include "templates/attention_forward/program/attention_case.h"
#include "templates/attention_forward/program/described_experiment.h"

namespace wavejit::tests {

inline std::string taken_reports() {
  std::string text(wavejit_simgpu_take_reports(nullptr, 0) + 1, '\0');
  text.resize(wavejit_simgpu_take_reports(text.data(), text.size()));
  return text;
}

// A line of the program, run.
struct RanLine {
  std::unique_ptr<attention_forward::program::ParsedProblem> problem;
  std::unique_ptr<tools::Case> one;
  std::unique_ptr<tools::Written> written;

  bool same_as(const RanLine& other) const { return written->same_as(*other.written); }
};

class LineRuns : public ::testing::TestWithParam<const char*> {
 protected:
  RanLine run(const std::string& words) {
    SCOPED_TRACE(words);
    RanLine ran;
    auto problem = attention_forward::program::parse_experiment("attention_forward " + words);
    EXPECT_TRUE(problem) << problem.error().what;
    ran.problem = std::make_unique<attention_forward::program::ParsedProblem>(*std::move(problem));
    ran.one = ran.problem->make_case();
    good(ran.one->prepare(engine_.get()));
    taken_reports();
    again(ran);
    return ran;
  }
  void again(RanLine& ran) {
    good(ran.one->erase());
    good(ran.one->run(engine_.get(), nullptr));
    EXPECT_EQ(taken_reports(), "");
    auto written = ran.one->written();
    ASSERT_TRUE(written) << written.error().what;
    ran.written = *std::move(written);
    const auto whole = ran.one->plan("", std::numeric_limits<double>::infinity());
    EXPECT_EQ(ran.one->missing(*ran.written, *whole, 0), "");
    EXPECT_EQ(*ran.one->broken_fence(), "");
  }

  Engine engine_{GetParam()};

 private:
  template <typename Done>
  static void good(const Done& done) {
    EXPECT_TRUE(done) << done.error().what;
  }
};

}  // namespace wavejit::tests
