// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Python's lock, with Python's end in mind. From then on Python (before 3.14) ends a thread that asks for the lock, in
// the middle of whatever C++ function asked, and that ends the process. So:
//
//   const Held held;           // a thread of the library's, about to call back
//   if (!held) return;         // Python ends, and this is another thread than the one that ends it
//
//   const Released released;   // a thread of Python's, while the library works. It may wake up too late: see below
//
// Python's end waits until nobody holds what Held took; it waits for its own threads likewise.
#pragma once

#include <nanobind/nanobind.h>

namespace wavejit::python {

namespace nb = nanobind;

class Held {
 public:
  Held();
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  explicit operator bool() const { return held_; }

 private:
  bool held_;
  PyGILState_STATE state_{};
};

class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  // A daemon thread that comes back after Python's end stays here until the process ends, as from Python 3.14 on.
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

// Has Python's end wait: once, when the module is imported.
void watch_for_pythons_end();

}  // namespace wavejit::python
