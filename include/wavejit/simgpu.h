// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* wavejit/simgpu.h: what libwavejit_simgpu.so offers beside the HIP functions it implements.
 *
 * The simulated GPU is a HIP library: programs use it through HIP's own functions. What HIP has no word for stands
 * here: which targets the simulated devices are, in which order waves run, what the registers hold at the start, which
 * workgroups of a launch run, how much was executed and what was found wrong.
 *
 * A program that does not know this header configures the same things by environment variables, read once at the first
 * call into the library: WAVEJIT_DEVICE=sim:<target>[xN[:<ordinal>]], WAVEJIT_SIM_SCHEDULE, WAVEJIT_SIM_SEED,
 * WAVEJIT_SIM_THREADS, WAVEJIT_SIM_CHECK=all|none|<list>, WAVEJIT_SIM_ARRIVAL=early|late|random|
 * unordered, WAVEJIT_SIM_RULES=compiler|strict, WAVEJIT_SIM_ENGINE=interpret|compile, WAVEJIT_SIM_TRANSLATE_AFTER,
 * WAVEJIT_SIM_INSTRUCTION_LIMIT, WAVEJIT_SIM_MATRIX=sequential|cdna3|seeded[:<number>],
 * WAVEJIT_SIM_TRANSCENDENTALS=nearest|seeded[:<number>]. A value that is not understood is said on stderr and ignored;
 * a value of CHECK, RULES, MATRIX or TRANSCENDENTALS that is not understood ends the program with exit code 2.
 *
 * Thread safety: every function may be called from any thread. Settings apply to launches that begin afterwards.
 */
#ifndef WAVEJIT_SIMGPU_H
#define WAVEJIT_SIMGPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WAVEJIT_SIMGPU_API __attribute__((visibility("default")))
#else
#define WAVEJIT_SIMGPU_API
#endif

/* Makes sure that at least `count` simulated devices of `target` exist ("gfx950", "gfx942", or a board of it by dies
 * and compute units of a die: "gfx942@6x38") and writes the HIP ordinals of the first `count` of them to `ordinals`.
 * Devices are never removed; devices of several targets live side by side. A process that calls this before any other
 * function gets only the devices asked for; otherwise those named by WAVEJIT_DEVICE come first. Returns 0, or a HIP
 * error number: 101 (invalid device) for an unknown target, 3 (not initialised) in a child that was forked from a
 * process whose simulated devices had work. */
WAVEJIT_SIMGPU_API int wavejit_simgpu_open_devices(const char* target, int count, int* ordinals);

/* The order in which waves of a workgroup run between two points where they meet. */
enum wavejit_simgpu_schedule {
  WAVEJIT_SIMGPU_IN_ORDER = 0, /* wave 0 runs until it must wait for others, then wave 1, … */
  WAVEJIT_SIMGPU_REVERSE = 1,  /* the last wave first */
  WAVEJIT_SIMGPU_RANDOM = 2,   /* random wave, random number of instructions, from `seed` */
  WAVEJIT_SIMGPU_TIMED = 3     /* as the clock's figures have them, results of memory as late; `arrival` follows it */
};

/* What is checked while kernels run, a bit each. A launch in which a check found something ends with
 * hipErrorLaunchFailure once it is over; what was found is in wavejit_simgpu_take_reports and _take_findings.
 * docs/simulated-gpu.md says what each one finds and what it cannot find. */
enum wavejit_simgpu_check {
  WAVEJIT_SIMGPU_CHECK_WAITS = 1,         /* results used before the s_waitcnt that covers them */
  WAVEJIT_SIMGPU_CHECK_RACES = 2,         /* LDS or device memory touched by two waves with no barrier in between */
  WAVEJIT_SIMGPU_CHECK_UNINITIALISED = 4, /* what was never written reaches an address, a branch or memory */
  WAVEJIT_SIMGPU_CHECK_BOUNDS = 8,        /* accesses that leave the allocation of their base address */
  WAVEJIT_SIMGPU_CHECK_HAZARDS = 16,      /* wait states that software owes the hardware */
  WAVEJIT_SIMGPU_CHECK_EXEC = 32,         /* EXEC not full where an instruction works on all lanes */
  WAVEJIT_SIMGPU_CHECK_BARRIERS = 64,     /* barriers that not all waves of a workgroup reach */
  WAVEJIT_SIMGPU_CHECK_UNIFORM = 128,     /* lanes that differ where one speaks for all */
  WAVEJIT_SIMGPU_CHECK_ALL = 255
};

/* When the results of memory instructions become visible in registers, LDS and memory. */
enum wavejit_simgpu_arrival {
  WAVEJIT_SIMGPU_ARRIVES_EARLY = 0,     /* at once */
  WAVEJIT_SIMGPU_ARRIVES_LATE = 1,      /* at the s_waitcnt that covers them: what reads them before gets old data */
  WAVEJIT_SIMGPU_ARRIVES_AT_RANDOM = 2, /* somewhere in between, from `seed` */
  WAVEJIT_SIMGPU_ARRIVES_IN_TIME = 3,   /* of the schedule WAVEJIT_SIMGPU_TIMED alone */
  WAVEJIT_SIMGPU_ARRIVES_UNORDERED = 4  /* late, and loads straight into LDS land in any order: only vmcnt(0) waits for
                                           a certain one. The ISA promises the order; this finds who needs it */
};

/* What a kernel is held to where LLVM's backend counts on more than the ISA's words promise. docs/simulated-gpu.md says
 * where the two differ. */
enum wavejit_simgpu_rules {
  WAVEJIT_SIMGPU_RULES_COMPILER = 0, /* to what LLVM's backend counts on: its code must not be reported */
  WAVEJIT_SIMGPU_RULES_STRICT = 1    /* to every wait: what this project's own kernels are held to */
};

/* How launches that are neither checked nor timed execute their instructions (those that are, are always interpreted).
 * Results are the same, bit for bit. */
enum wavejit_simgpu_engine {
  WAVEJIT_SIMGPU_INTERPRET = 0, /* instruction by instruction */
  WAVEJIT_SIMGPU_COMPILE = 1    /* blocks that run often are translated to host code first */
};

/* In which order a matrix instruction adds its products, and where it rounds. */
enum wavejit_simgpu_matrix {
  WAVEJIT_SIMGPU_MATRIX_SEQUENTIAL = 0, /* k ascending, one fused multiply-add a product */
  WAVEJIT_SIMGPU_MATRIX_CDNA3 = 1,      /* the published model of CDNA3; launches on other targets are refused */
  WAVEJIT_SIMGPU_MATRIX_SEEDED = 2      /* one order for all elements, from `matrix_seed` */
};

/* What v_exp, v_log, v_rcp, v_rsq and v_sqrt give where the ISA leaves a choice. */
enum wavejit_simgpu_transcendentals {
  WAVEJIT_SIMGPU_TRANSCENDENTALS_NEAREST = 0, /* the nearest float */
  WAVEJIT_SIMGPU_TRANSCENDENTALS_SEEDED = 1   /* any that is permitted, from instruction, operand and seed */
};

/* Settings of the whole process. `size` is sizeof(struct wavejit_simgpu_settings) as the caller compiled it. */
struct wavejit_simgpu_settings {
  size_t size;
  int32_t schedule;         /* enum wavejit_simgpu_schedule */
  uint32_t threads;         /* host threads that run workgroups; 0 = all cores */
  uint64_t seed;            /* of the random schedule and of the noise that registers and LDS start with */
  uint64_t workgroup_first; /* only workgroups first, first + step, … of each launch run (linear index, x fastest); */
  uint64_t workgroup_step;  /*   0 and 1: all */
  uint64_t workgroup_count; /* at most this many; 0 = no limit */
  uint32_t checks;          /* enum wavejit_simgpu_check, or-ed */
  int32_t arrival;          /* enum wavejit_simgpu_arrival */
  /* Not 0: of a launch that is timed (wavejit_simgpu_set_clock) only the sampled workgroups run, so that a launch of
   * any size takes moments and leaves most of its output unwritten. */
  uint32_t sampled_only;
  int32_t engine;           /* enum wavejit_simgpu_engine */
  uint32_t translate_after; /* a block is translated when it has been entered more often than this */
  uint32_t time_matrix;     /* not 0: what matrix instructions take is counted (matrix_nanoseconds), at two looks at
                               the host's clock for each of them */
  int32_t matrix;           /* enum wavejit_simgpu_matrix */
  int32_t transcendentals;  /* enum wavejit_simgpu_transcendentals */
  uint64_t matrix_seed;     /* of seeded sums */
  uint64_t transcendentals_seed;
  int32_t rules; /* enum wavejit_simgpu_rules */
};
WAVEJIT_SIMGPU_API void wavejit_simgpu_get_settings(struct wavejit_simgpu_settings* settings);
/* Returns 0, or 1 (invalid value) and changes nothing. */
WAVEJIT_SIMGPU_API int wavejit_simgpu_set_settings(const struct wavejit_simgpu_settings* settings);

/* Running totals of the process. */
struct wavejit_simgpu_counters {
  size_t size;
  uint64_t launches;
  uint64_t workgroups;
  uint64_t wave_instructions; /* one instruction executed by one wave counts 1, whatever its lanes */
  uint64_t matrix_instructions;
  uint64_t reports;                 /* faults found: see wavejit_simgpu_take_reports */
  uint64_t translated_instructions; /* by the compiled engine, and the processor time that it took */
  uint64_t translation_nanoseconds;
  uint64_t matrix_nanoseconds; /* within matrix instructions while settings.time_matrix is set, of all threads */
};
WAVEJIT_SIMGPU_API void wavejit_simgpu_get_counters(struct wavejit_simgpu_counters* counters);

/* Everything reported since the last call (one fault a line: kernel, instruction and its offset, wave, lane, address),
 * copied to `text` with a final 0 and then forgotten. Returns the length of the whole text; when it is ≥ `capacity`
 * nothing is forgotten and the text is cut. With text null and capacity 0: the length needed. */
WAVEJIT_SIMGPU_API size_t wavejit_simgpu_take_reports(char* text, size_t capacity);

/* The same for programs, kept and forgotten separately: one JSON object a line, with `check` (a name as
 * WAVEJIT_SIM_CHECK takes it, or "fault"), `kernel`, `function`, `instruction`, `offset`, `workgroup`, `wave`, `lane`
 * (absent: the whole wave), `text`, and `source` {`instruction`, `offset`, `wave`, `workgroup` if it is another one}:
 * the other side of a race, or where the value comes from. */
WAVEJIT_SIMGPU_API size_t wavejit_simgpu_take_findings(char* text, size_t capacity);

/* Keeps time: of each launch from now on at most `workgroups` workgroups are taken down while they run and replayed on
 * a model of the target's compute units; what the whole launch takes is worked out from them. The launch's first and
 * last are counted beside them, and many more where workgroups differ and only the sampled ones run. 0 (the default):
 * nobody keeps time, and nobody pays for it. Results are predictions, never measurements: docs/timing-model.md says
 * what they are worth. Launches that are checked (see above) are not timed, and say so. */
WAVEJIT_SIMGPU_API void wavejit_simgpu_set_clock(uint32_t workgroups);

/* Not 0: launches that are timed from now on find all that they read in the last level cache, as the second of two that
 * read the same does; whether it has room for all of that is not asked. 0 (the default): they find there what launches
 * of their queue wrote before, and what they have read themselves. */
WAVEJIT_SIMGPU_API void wavejit_simgpu_set_warm(uint32_t warm);

/* What the clock found out since the last call, one JSON object for each launch and line: `kernel`, `target`, `cycles`
 * of the whole launch, `matrix_busy` and `steady_matrix_busy` (0 to 1), `occupancy`, what waves waited for in total, by
 * instruction and by cluster, how busy each unit was, registers and kinds of instructions, and where the launch stands
 * under the roofs of matrix pipes and memory, and `doubt` if the sample may say nothing of the launch; or `refused`
 * with the reason. Of more than 1,000 launches since the last call the first 1,000 are kept. Copied and forgotten as
 * wavejit_simgpu_take_reports does. */
WAVEJIT_SIMGPU_API size_t wavejit_simgpu_take_cycles(char* text, size_t capacity);

/* How many cycles of each timed launch are kept as a timeline, from the middle of the first sampled compute unit's
 * time; 0 (the default): none. */
WAVEJIT_SIMGPU_API void wavejit_simgpu_set_timeline(uint64_t cycles);

/* The timeline of the longest launch that was timed since the last call, as Chrome's trace format (JSON), which
 * Perfetto reads too: a process for each SIMD, a track for each wave and one for the matrix pipe; one cycle stands as
 * one microsecond. Copied and forgotten as wavejit_simgpu_take_reports does. */
WAVEJIT_SIMGPU_API size_t wavejit_simgpu_take_timeline(char* text, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
