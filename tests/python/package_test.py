# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package as a whole: what importing it loads, its program, its demo, every example of its documentation."""
import doctest
import importlib
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import unittest

import wavejit

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXTENSION = pathlib.Path(wavejit._wavejit.__file__)

IMPORT = """
import time
began = time.perf_counter()
import wavejit
took = time.perf_counter() - began
import sys
mapped = {line.split()[-1].rsplit("/", 1)[-1] for line in open("/proc/self/maps") if "/" in line}
print(took * 1e3, int("numpy" in sys.modules), *sorted(mapped))
"""


def python(*arguments, **variables):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, env={**os.environ, **variables})


class Import(unittest.TestCase):
    def test_it_maps_neither_llvm_nor_a_device_nor_numpy(self):
        run = python("-c", IMPORT)
        self.assertEqual(run.stderr, "")
        took, numpy, *mapped = run.stdout.split()
        print(f"import wavejit: {float(took):.0f} ms")
        self.assertEqual(numpy, "0")
        self.assertIn(EXTENSION.name, mapped)
        self.assertTrue(any(name.startswith("libwavejit.so") for name in mapped))
        unwanted = re.compile(r"LLVM|libwavejit_(codegen|simgpu|remote)|amdhip|comgr")
        self.assertEqual([name for name in mapped if unwanted.search(name)], [])

    def test_one_extension_for_all_pythons(self):
        self.assertEqual(EXTENSION.name, "_wavejit.abi3.so")
        told = subprocess.run(["readelf", "--wide", "--dyn-syms", "--dynamic", EXTENSION], capture_output=True, text=True, check=True).stdout
        self.assertEqual(re.findall(r"NEEDED.*\[libwavejit(.*)\]", told), [".so.0"])
        stable = {"_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "_Py_NotImplementedStruct", "_Py_EllipsisObject", "_Py_IncRef", "_Py_DecRef",
                  "_Py_Dealloc", "_PyObject_New", "_PyObject_GC_New", "_PyWeakref_RefType"}  # fmt: skip
        self.assertEqual(set(re.findall(r"UND (_Py\w+)", told)) - stable, set())

    def test_version(self):
        self.assertEqual(wavejit.__version__, re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.M)[1])
        self.assertIn(f"VERSION {wavejit.__version__} ", (ROOT / "CMakeLists.txt").read_text())


class Program(unittest.TestCase):
    def test_the_program(self):
        run = python("-m", "wavejit", "supported")
        self.assertEqual((run.returncode, run.stdout.splitlines()[0]), (0, wavejit.supported()[0].split(":")[0]))
        self.assertEqual(python("-m", "wavejit", "no-such-command").returncode, 2)

    def test_the_demo(self):
        run = python("-m", "wavejit", "demo")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertRegex(run.stdout, r"check .*float64: ok")
        self.assertIn("simulated gfx942", python("-m", "wavejit", "demo", WAVEJIT_DEVICE="sim:gfx942").stdout)
        run = python("-m", "wavejit", "demo", "--device", "sim:gfx1")
        self.assertEqual(run.returncode, 1)
        self.assertIn("names no device", run.stdout)


class Examples(unittest.TestCase):
    def test_of_docstrings(self):
        count = 0
        for info in pkgutil.iter_modules(wavejit.__path__):
            if info.name in ("__main__", "_wavejit", "jax", "torch", "transformers"):  # tests/jax and tests/torch have those
                continue
            result = doctest.testmod(importlib.import_module(f"wavejit.{info.name}"))
            self.assertEqual(result.failed, 0)
            count += result.attempted
        self.assertGreater(count, 20)

    def test_of_the_page(self):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.S)
        self.assertGreater(len(blocks), 2)
        scope = {}
        for block in blocks:  # in order, as a reader types them
            exec(compile(block, "docs/python.md", "exec"), scope)

    def test_of_the_readme(self):
        (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
        exec(compile(block, "README.md", "exec"), {})


if __name__ == "__main__":
    unittest.main()
