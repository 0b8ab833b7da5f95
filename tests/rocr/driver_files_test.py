#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs find at the kernel driver's places under `wavejit sim`, by every way of looking; and where nobody wants it.

    driver_files_test.py <wavejit> <target> <number> <gfx_target_version>
"""
import os
import pathlib
import re
import subprocess
import sys

NODES = "/sys/class/kfd/kfd/topology/nodes"


def properties(text):
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


def look(number, version):
    """Inside: as JAX's plug-in counts GPUs, and as others may."""
    nodes = sorted(os.listdir(NODES), key=int)
    assert nodes == [str(i) for i in range(number + 1)], nodes
    assert sorted(entry.name for entry in os.scandir(NODES)) == sorted(nodes)
    assert sorted(path.name for path in pathlib.Path(NODES).iterdir()) == sorted(nodes)
    gpus = 0
    for node in nodes:
        file = os.path.join(NODES, node, "properties")
        assert os.path.exists(file) and os.path.isfile(file) and 0 < os.path.getsize(file) < 16384
        with open(file, encoding="ascii") as stream:
            values = properties(stream.read())
        with open(file, "rb", buffering=0) as stream:
            assert properties(stream.read().decode()) == values
        gpu_id = int(pathlib.Path(NODES, node, "gpu_id").read_text())
        assert (gpu_id != 0) == (values["simd_count"] != 0), (node, gpu_id)
        for kind in ("mem_banks", "caches", "io_links"):
            assert len(os.listdir(f"{NODES}/{node}/{kind}") if values[f"{kind}_count"] else []) == values[f"{kind}_count"], (node, kind)
        if values["simd_count"]:
            gpus += 1
            assert values["gfx_target_version"] == version and values["num_gws"] > 0, values
    assert gpus == number, gpus
    assert not os.path.exists("/sys/class/kfdx") and not os.path.exists("/sys/class/kfd/nothing")
    try:
        os.listdir("/sys/class/kfd/nothing")
    except FileNotFoundError:
        pass
    # Other programs, in C and in shells.
    assert subprocess.run(["ls", NODES], capture_output=True, text=True, check=True).stdout.split() == sorted(nodes)
    text = subprocess.run(["cat", f"{NODES}/1/properties"], capture_output=True, text=True, check=True).stdout
    assert re.search(rf"^gfx_target_version {version}$", text, re.MULTILINE), text
    found = subprocess.run(["sh", "-c", f"grep -l '^simd_count [1-9]' {NODES}/*/properties; test -d {NODES}; test -r /dev/kfd"],
                           capture_output=True, text=True, check=True)
    del found
    assert pathlib.Path("/sys/module/amdgpu/initstate").read_text() == "live\n"


def main():
    if sys.argv[1] == "look":
        return look(int(sys.argv[2]), int(sys.argv[3]))
    wavejit, target, number, version = sys.argv[1:]
    if os.path.exists("/sys/class/kfd"):
        print("this machine has AMD's kernel driver: its own files are shown")
        return None
    me = [sys.executable, __file__, "look", number, version]
    subprocess.run([wavejit, "sim", "--target", f"{target}x{number}", "--", *me], check=True)
    without = subprocess.run([wavejit, "sim", "--no-driver-files", "--", *me], capture_output=True, text=True, check=False)
    assert without.returncode != 0 and NODES in without.stderr, without
    return None


if __name__ == "__main__":
    main()
