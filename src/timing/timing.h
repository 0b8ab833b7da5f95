// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What instructions cost, how LDS accesses meet its banks and how far memory is: facts per target, and nothing but
// facts. Every constant that the clock of the simulated GPU (src/simgpu/checkers/clock) counts with stands here, with
// its source and with how far it can be trusted; docs/timing-model.md prints them all.
//
// The model that the figures belong to: every SIMD has one issue port for vector instructions and one matrix pipe. A
// matrix instruction holds the port while it reads its operands and the pipe for passes × 4; everything else that a
// vector instruction does happens on the port, in the shadow of the pipe. So a loop takes max(pipe, port) cycles when
// its waves overlap perfectly, and pipe ÷ port says how much room there is.
//
// Where a target has figures of OrderedRules there is one queue in place of both: vector and matrix instructions of a
// SIMD pass it in order, and a loop takes pipe + port.
//
// Nothing here was measured for this project.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "targets/targets.h"

namespace wavejit::timing {

enum class Grade : std::uint8_t {
  measured,    // on hardware, by others
  documented,  // by AMD or in LLVM
  derived,     // from shipped kernels, or by arithmetic from the other two
  carried,     // measured by others on another GPU, and taken as it is
  guessed,
};
std::string_view to_text(Grade grade);

struct Figure {
  double value = 0;
  Grade grade = Grade::guessed;
  std::string_view source;
  // Rounded down: for costs that are whole cycles.
  constexpr int cycles() const { return static_cast<int>(value); }
};

// Cycles of a SIMD's vector issue port that one instruction of a wave takes.
struct IssueCosts {
  Figure plain;
  Figure three_source;    // v_fma_f32, v_max3_f32: three operands read
  Figure packed;          // v_pk_mul_f32 and its kind: two results, and no overlap with the matrix pipe
  Figure transcendental;  // v_exp_f32, v_rcp_f32, …
  Figure lane_swap;       // v_permlane32_swap_b32 and v_permlane16_swap_b32
  Figure double_precision;
  Figure wide;                 // shifts and comparisons of 64 bits, where they take longer than others
  Figure multiply;             // 32-bit integer products likewise
  Figure matrix_issue;         // a matrix instruction whose A and B have up to two registers
  Figure matrix_issue_wide;    // with more: they take longer to read
  Figure packed_after_matrix;  // cycles after the end of a matrix instruction before a packed one may issue
};

// How a SIMD chooses what to issue, and what holds a wave up by itself.
struct WaveRules {
  Figure look;               // cycles from one look at a SIMD to the next
  Figure lds_issue;          // cycles until a wave that issued an LDS instruction issues again
  Figure memory_issue;       // of a vector memory instruction
  Figure vector_to_memory;   // from a vector instruction (no matrix one) to the wave's next LDS or memory instruction
  Figure pass;               // cycles of one pass of the matrix pipe
  Figure result_states;      // a matrix result is readable after its passes and this many more passes, 4 cycles each
  Figure vector_to_scalar;   // from a vector instruction that writes scalars to the wave's next scalar instruction
  Figure taken_branch;       // cycles until a wave that jumped issues again
  Figure passed_scc_branch;  // until a wave that passed a branch on SCC issues again; other branches take one look
  Figure barrier_release;    // cycles from the last arrival at a barrier to the next instruction
  Figure nop;                // cycles of one wait state
  Figure sleep;              // cycles of s_sleep 1
  Figure instruction_cache;  // bytes
  Figure instruction_miss;   // cycles
  Figure wave_start;         // cycles between two waves that a die starts
  Figure cold_code;          // cycles before the first instruction of a launch
};

// One queue of vector and matrix instructions for each SIMD, which begins them in order: nothing runs beside a matrix
// instruction. No figures: the target has a port and a pipe side by side.
//
// A wave hands an instruction to the queue and goes on; what the instruction waits for, all behind it wait for. Only
// s_delay_alu and s_wait_alu hold the wave itself.
struct OrderedRules {
  Figure queue;                // vector instructions of a SIMD that wait in it; a wave stands before a full one
  Figure matrix_stays;         // cycles after its own that a matrix instruction keeps its place
  Figure result;               // from a vector instruction's last cycle to the next one's first that reads its result
  Figure matrix_result;        // the same of a matrix instruction
  Figure accumulated;          // the same where the reader adds to the result
  Figure transcendental_unit;  // cycles that v_exp_f32 and its kind keep others of theirs, and matrix ones, waiting
  Figure leaves;          // from a vector instruction's last cycle until LDS, memory and scalar instructions follow
  Figure scalar_result;   // from a scalar instruction's first cycle until others than scalar ones use its result
  Figure scalar_chain;    // the same of scalar ones
  Figure scalar_backlog;  // cycles that a scalar instruction may wait in its queue
  Figure internal;        // from another instruction to a wait, a no-op and their kind
  Figure data_backlog;    // cycles that data of stores on its way out of a SIMD may lag behind
  Figure scalar_reads;    // from the begin of a vector instruction that reads scalars until its wave may write others
  Figure banks;           // of vector registers, by number: a pair takes one of each in a cycle
  constexpr bool known() const { return queue.value > 0; }
};

struct LdsRules {
  Figure latency;  // from the end of an access to its data in registers, unloaded
  Figure ports;    // this many ports serve the SIMDs, in equal groups
  Figure queue;    // requests that wait at a port; while it is full no wave of its SIMDs issues an LDS instruction
  Figure sets;     // sets of banks that work side by side, each turn in one of them; 0: one set
};

// Vector and scalar memory, seen from one compute unit.
struct MemoryRules {
  Figure lanes_narrow;    // lanes that the address unit takes at a time when each wants up to 4 bytes …
  Figure lanes_wide;      // … and more; a group takes a cycle for each line that it touches
  Figure queue;           // requests that wait for the address unit of a compute unit; while it is full none issues
  Figure in_flight;       // bytes of lines on their way to a compute unit, at most
  Figure l1_bytes;        // of a compute unit
  Figure l1_sets;         // of an L1, which has l1_bytes / line / l1_sets ways
  Figure line;            // bytes
  Figure l1_rate;         // bytes a clock
  Figure l1_latency;      // cycles, hit
  Figure l2_bytes;        // of a die
  Figure l2_rate;         // bytes a clock of a die
  Figure l2_latency;      // cycles, hit
  Figure mall_bytes;      // of the last level cache
  Figure mall_rate;       // bytes a clock of a die, both ways: its link to the last level cache and to memory
  Figure mall_latency;    // cycles, hit
  Figure memory_rate;     // bytes a clock, whole GPU
  Figure memory_latency;  // cycles
  Figure scalar_bytes;    // of the cache of scalar loads; none: every load takes scalar_latency
  Figure scalar_latency;  // cycles of a scalar load, hit
  Figure cold_arguments;  // the same, of the first that reads a launch's arguments
  Figure write_back;      // cycles of a die's L2 for one buffer_wbl2; those of several workgroups go one by one
  Figure invalidate;      // cycles of one buffer_inv
};

// Launches of one stream.
struct LaunchRules {
  Figure dependent;  // cycles between the end of a launch and the beginning of one that waits for it
  Figure workgroup;  // cycles between the beginnings of two workgroups of a die, at the least
};

// The engine clock of a GPU at its power limit while it runs attention: MHz = idle − slope × percent of matrix-busy
// cycles. No figures: not known for the target.
// The share is that of a kernel's loop, as the source read it from thread traces, not that of a whole launch.
// Throughput is `delivered` of what cycles at that clock would give.
struct PowerRules {
  Figure idle;
  Figure slope;
  Figure delivered;
  constexpr bool known() const { return idle.value > 0; }
  constexpr double ghz(double matrix_busy) const { return (idle.value - (slope.value * 100 * matrix_busy)) / 1000; }
};

// One kind of LDS access: which lanes are served together, and over how many banks of 4 bytes. Lanes of one phase that
// want different rows of one bank wait for each other; lanes that want the same 4 bytes share them.
struct LdsAccess {
  std::string_view name;  // of the instruction; LDS DMA as "lds_dma_b32" and "lds_dma_b128", by its bits per lane
  int bytes = 4;          // per lane
  int banks = 32;
  std::span<const std::uint64_t> phases;  // lane masks
  Figure cycles;                          // that the banks are busy when no lanes conflict; a lost turn adds one
  Figure port;                            // cycles of the port between banks and SIMD; 0: data goes elsewhere
  std::string_view phase_source;
};

struct Timing {
  std::string_view target;
  IssueCosts issue;
  WaveRules wave;
  OrderedRules ordered;
  LdsRules lds_unit;
  MemoryRules memory;
  LaunchRules launch;
  PowerRules power;
  std::span<const LdsAccess> lds;
};

// Null when the table has no row for the target.
const Timing* find_timing(const targets::Target& target);

// Null when the table says nothing about this access.
const LdsAccess* find_lds_access(const Timing& timing, std::string_view name);

// Every figure of a row: its name, as "issue.plain", its unit and itself, in the order of the structs above.
void for_each_figure(const Timing& timing,
                     const std::function<void(std::string_view name, std::string_view unit, const Figure&)>& visit);

}  // namespace wavejit::timing
