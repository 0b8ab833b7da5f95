# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulated GPU from Python: kernels of others, launched by name, timed by its clock. Only sampled workgroups run."""
import ctypes
import json
import sys

SAMPLE = 16  # four and three neighbours each, as tools/simulated_gpu.h


class Settings(ctypes.Structure):
    """struct wavejit_simgpu_settings of include/wavejit/simgpu.h."""
    _fields_ = [("size", ctypes.c_size_t), ("schedule", ctypes.c_int32), ("threads", ctypes.c_uint32), ("seed", ctypes.c_uint64),
                ("workgroup_first", ctypes.c_uint64), ("workgroup_step", ctypes.c_uint64), ("workgroup_count", ctypes.c_uint64),
                ("checks", ctypes.c_uint32), ("arrival", ctypes.c_int32), ("sampled_only", ctypes.c_uint32),
                ("engine", ctypes.c_int32), ("translate_after", ctypes.c_uint32),
                ("time_matrix", ctypes.c_uint32), ("matrix", ctypes.c_int32),
                ("transcendentals", ctypes.c_int32), ("matrix_seed", ctypes.c_uint64), ("transcendentals_seed", ctypes.c_uint64),
                ("rules", ctypes.c_int32)]


def must(status, what):
    if status != 0:
        sys.exit(f"{what}: HIP error {status}")


class SimulatedGpu:
    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        settings = Settings(size=ctypes.sizeof(Settings))
        self.library.wavejit_simgpu_get_settings(ctypes.byref(settings))
        settings.sampled_only = 1
        must(self.library.wavejit_simgpu_set_settings(ctypes.byref(settings)), "settings")
        self.library.wavejit_simgpu_set_clock(SAMPLE)

    def select(self, target):
        ordinal = (ctypes.c_int * 1)()
        must(self.library.wavejit_simgpu_open_devices(target.encode(), 1, ordinal), target)
        must(self.library.hipSetDevice(ordinal[0]), "hipSetDevice")

    def allocate(self, size, content=None):
        pointer = ctypes.c_void_p()
        must(self.library.hipMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)), "hipMalloc")
        if content is not None:
            must(self.library.hipMemcpy(pointer, content, ctypes.c_size_t(len(content)), 1), "hipMemcpy")
        return pointer

    def free(self, pointer):
        must(self.library.hipFree(pointer), "hipFree")

    def function(self, code_object, name):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        must(self.library.hipModuleLoadData(ctypes.byref(module), code_object), "hipModuleLoadData")
        must(self.library.hipModuleGetFunction(ctypes.byref(function), module, name.encode()), name)
        return function

    def set_warm(self, warm):
        self.library.wavejit_simgpu_set_warm(int(warm))

    def launch(self, function, grid, threads, shared=0, arguments=None, buffer=None):
        """`arguments`: ctypes values; or `buffer`: the bytes of all arguments, as they lie. What the clock says."""
        pointers, extra = None, None
        if buffer is not None:
            size = ctypes.c_size_t(len(buffer))
            extra = (ctypes.c_void_p * 5)(1, ctypes.cast(ctypes.c_char_p(buffer), ctypes.c_void_p), 2,
                                          ctypes.cast(ctypes.byref(size), ctypes.c_void_p), 3)
        else:
            pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in arguments])
        must(self.library.hipModuleLaunchKernel(function, *grid, threads, 1, 1, shared, None, pointers, extra),
             "hipModuleLaunchKernel")
        must(self.library.hipDeviceSynchronize(), "hipDeviceSynchronize")
        text = ctypes.create_string_buffer(1 << 22)
        self.library.wavejit_simgpu_take_cycles(text, ctypes.c_size_t(len(text)))
        cycles = json.loads(text.value)
        if "refused" in cycles:
            sys.exit(cycles["refused"])
        return cycles
