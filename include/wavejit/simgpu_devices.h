// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* wavejit/simgpu_devices.h: how simulated devices are written. libwavejit_simgpu.so has it, and libdtif.so and
 * libwavejit_model.so, which stand beneath AMD's runtime.
 */
#ifndef WAVEJIT_SIMGPU_DEVICES_H
#define WAVEJIT_SIMGPU_DEVICES_H

#include "simgpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether `devices` names simulated devices as WAVEJIT_SIM_TARGET takes them: "gfx950", "gfx950x2", "gfx942@6x38x2".
 * Returns 0 when it does. Otherwise the length of a text that says what is accepted, which is copied to `text` with a
 * final 0, cut to `capacity`. Opens nothing. */
WAVEJIT_SIMGPU_API size_t wavejit_simgpu_devices_problem(const char* devices, char* text, size_t capacity);

/* libwavejit_model.so alone: writes the folder that HSA_MODEL_TOPOLOGY names, for one GPU ("gfx950", "gfx942@6x38").
 * The folder is made, empty or an earlier one; null: only looks at `device`. Returns 0, or the length of a text that
 * says what is wrong, copied as above. */
WAVEJIT_SIMGPU_API size_t wavejit_simgpu_write_topology(const char* device, const char* folder, char* text,
                                                        size_t capacity);

/* libdtif.so alone: writes what programs find at /sys/class/kfd when they look for `devices`, below `folder`, which
 * exists. Returns 0, or the length of a text that says what is wrong, copied as above. */
WAVEJIT_SIMGPU_API size_t wavejit_simgpu_write_driver_files(const char* devices, const char* folder, char* text,
                                                            size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
