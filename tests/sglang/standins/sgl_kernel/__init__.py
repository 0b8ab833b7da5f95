# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In the place of SGLang's kernels, which PyPI has for CUDA alone: names that can be imported, of which none can be called.

SGLang for CPUs computes in PyTorch where these are not for the host's CPU.
"""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_, **__):
        raise NotImplementedError(f"sgl_kernel.{name}")

    return missing
