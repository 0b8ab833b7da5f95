#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call costs from Python, into empty HIP functions, and what importing the package costs: the best of some rounds.

    PYTHONPATH=<build>/python LD_PRELOAD=<build>/bench/libamdhip64.so.7 python_calls.py     (./dev bench python)

C's share of a call is `./dev bench hot_call`.
"""
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import wavejit

IMPORT = "import time; began = time.perf_counter(), time.process_time(); import wavejit; print(time.perf_counter() - began[0], time.process_time() - began[1])"


def microseconds(function: Callable[[], object], calls: int, rounds: int = 9) -> float:
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, (time.perf_counter() - began) / calls)
    return best * 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as cache, wavejit.Engine("hip", cache_dir=cache, log_level="error") as engine:
        q, k = engine.empty((1, 128, 8, 128), "bf16"), engine.empty((1, 1024, 8, 128), "bf16")
        call = engine.attention_forward_call(q, k, k, causal=True)
        call.launch()
        launch = call._call.launch
        print(f"a Python function that does nothing   {microseconds(lambda: None, 20000):7.2f} us")
        print(f"the extension's launch, C call inside {microseconds(lambda: launch(0), 20000):7.2f} us")
        print(f"call.launch()                         {microseconds(call.launch, 20000):7.2f} us")
        print(f"engine.attention_forward(q, k, k)     {microseconds(lambda: engine.attention_forward(q, k, k, call.out, causal=True), 1000):7.2f} us")
    runs = [tuple(map(float, subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout.split())) for _ in range(9)]
    print(f"import wavejit                        {min(wall for wall, _ in runs) * 1e3:7.1f} ms ({min(processor for _, processor in runs) * 1e3:.1f} of processor time)")


if __name__ == "__main__":
    main()
