// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The environment variables of this library, read once, at the first call into it. No other file reads the environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "simgpu/process/ignored.h"

namespace wavejit::simgpu {

// `timed`: waves abreast and results late as the clock's figures have it (checkers/checks/pace.h).
enum class Schedule : std::int32_t { in_order = 0, reverse = 1, random = 2, timed = 3 };

// When results of memory instructions become visible: at issue, at the wait that covers them, somewhere in between, or
// when their time has come (of the schedule `timed` alone). `unordered`: as `late`, and loads straight into LDS land in
// any order, so that a count says how many are on their way and not which.
enum class Arrival : std::int32_t { early = 0, late = 1, random = 2, timed = 3, unordered = 4 };

// What executes instructions where nothing is checked and nobody keeps time: handlers one after the other, or host code
// made from the blocks that run often.
enum class Engine : std::int32_t { interpret = 0, compile = 1 };

// In which order a matrix instruction adds its products, and where it rounds (matrix/README.md).
enum class MatrixSums : std::int32_t { sequential = 0, cdna3 = 1, seeded = 2 };

// What v_exp, v_log, v_rcp, v_rsq and v_sqrt give where the ISA leaves a choice: the nearest float, or whichever of the
// two around the exact value a seed picks.
enum class Transcendentals : std::int32_t { nearest = 0, seeded = 1 };

// What a kernel is held to where its compiler counts on more than the ISA's words promise: `compiler`, what LLVM's
// backend counts on; `strict`, every wait and every half (docs/simulated-gpu.md, "What compilers count on").
enum class Rules : std::int32_t { compiler = 0, strict = 1 };

// What is said on stderr when the process ends: nothing, one line if something was found, everything.
enum class Summary : std::int32_t { off = 0, findings = 1, on = 2 };

struct Settings {
  Schedule schedule = Schedule::in_order;
  std::uint32_t threads = 0;  // 0: all cores
  std::uint64_t seed = 1;
  std::uint64_t workgroup_first = 0;
  std::uint64_t workgroup_step = 1;
  std::uint64_t workgroup_count = 0;  // 0: no limit
  // A wave that has executed this many instructions is taken for an endless loop. The default is minutes of simulation.
  std::uint64_t instruction_limit = std::uint64_t{1} << 33;
  std::uint32_t checks = 0;  // of check.h
  Arrival arrival = Arrival::early;
  Rules rules = Rules::compiler;
  bool sampled_only = false;  // of timed launches, only what the clock samples runs
  Engine engine = Engine::interpret;
  // A block is translated when it has been entered more often. Translating takes as long as interpreting a block some
  // thousand times (bench/README.md).
  std::uint32_t translate_after = 1000;
  bool time_matrix = false;  // whether matrix instructions are timed
  MatrixSums matrix = MatrixSums::sequential;
  Transcendentals transcendentals = Transcendentals::nearest;
  std::uint64_t matrix_seed = 1;  // of `seeded`
  std::uint64_t transcendentals_seed = 1;
};

struct Config {
  Settings settings;
  // The environment says nothing of order: then kernels of others that fill LDS by DMA run as the clock has them
  // (machine/device/dispatch.cpp).
  bool order_is_open = true;
  std::string device_target;  // empty: no device named by the environment
  int device_count = 0;
  bool device_is_named = false;
  // This many workgroups of each launch are timed (WAVEJIT_SIM_CYCLES); 0: none.
  std::uint32_t clock_sample = 0;
  // A queue that has waited so long, or a workgroup that has run so long, says so once; 0: never.
  std::chrono::milliseconds patience = std::chrono::seconds(10);
  std::string report;  // the file of WAVEJIT_SIM_REPORT, from the root on; empty: none
  Summary summary = Summary::off;
  std::vector<Ignored> ignored;  // of what the checks find
};

// WAVEJIT_DEVICE=sim:<target>[xN], WAVEJIT_SIM_TARGET=<target>[xN], WAVEJIT_SIM_SCHEDULE=in_order|reverse|random|timed,
// WAVEJIT_SIM_SEED, WAVEJIT_SIM_THREADS, WAVEJIT_SIM_INSTRUCTION_LIMIT, WAVEJIT_SIM_CHECK, WAVEJIT_SIM_IGNORE,
// WAVEJIT_SIM_ARRIVAL, WAVEJIT_SIM_RULES=compiler|strict, WAVEJIT_SIM_ENGINE=interpret|compile,
// WAVEJIT_SIM_TRANSLATE_AFTER, WAVEJIT_SIM_MATRIX=sequential|cdna3|seeded[:<n>],
// WAVEJIT_SIM_TRANSCENDENTALS=nearest|seeded[:<n>], WAVEJIT_SIM_CYCLES=off|on,
// WAVEJIT_SIM_QUEUE_PATIENCE=<seconds>, WAVEJIT_SIM_REPORT=<file>,
// WAVEJIT_SIM_SUMMARY=off|findings|on. A value that is not understood: one warning on stderr, default kept. Where a
// good end would then mean nothing (checks, what they ignore, their rules, sums, transcendentals, report): one line,
// and the program ends (exit code 2).
Config read_config();

// HSA_MODEL_TOPOLOGY: the folder in which ROCr's interface for models looks for the machine. Empty: not set.
std::string read_model_topology();

}  // namespace wavejit::simgpu
