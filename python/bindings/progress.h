// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A Python function that is told how far something is, from threads of the library.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <utility>

#include "interpreter.h"

namespace wavejit::python {

namespace nb = nanobind;

// What the function raises first is kept and raised once the work is over; from then on it is told nothing.
class Progress {
 public:
  explicit Progress(nb::object callback) : callback_(std::move(callback)), wanted_(!callback_.is_none()) {}

  // `fill` writes what is told into a dict. Any thread, one at a time.
  template <typename Fill>
  void tell(Fill fill) {
    if (!wanted_) return;
    const Held held;
    if (!held) return;
    try {
      nb::dict told;
      fill(told);
      callback_(told);
    } catch (...) {
      wanted_ = false;
      raised_ = std::current_exception();
    }
  }
  bool raised() const { return static_cast<bool>(raised_); }
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  nb::object callback_;
  bool wanted_;
  std::exception_ptr raised_;
};

}  // namespace wavejit::python
