# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit.torch as a package: what importing it loads, without a device in the environment; every example of its documentation."""
import doctest
import importlib
import inspect
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import unittest

import torch
from typing_test import told_and_not_there

import wavejit
import wavejit.torch
import wavejit.transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]


def python(program, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "WAVEJIT_DEVICE"} | variables
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env=environment)


class Import(unittest.TestCase):
    def test_wavejit_alone_loads_no_torch(self):
        run = python("import sys, wavejit; print(*(name for name in ('torch', 'transformers', 'numpy') if name in sys.modules))")
        self.assertEqual((run.returncode, run.stdout.strip(), run.stderr), (0, "", ""))

    def test_without_a_device_it_opens_none_and_cpu_tensors_need_one(self):
        call = "q = torch.ones(1, 2, 4, 64).half(); wavejit.torch.scaled_dot_product_attention(q, q, q)"
        run = python(f"import sys, torch, wavejit.torch; print('transformers' in sys.modules, 'simgpu' in open('/proc/self/maps').read()); {call}")
        self.assertEqual(run.stdout.strip(), "False False")
        self.assertRegex(run.stderr, r'InvalidArgument: query: a tensor on cpu, and the device is hip; accepted: a ROCm tensor, or wavejit\.torch\.use\("sim:gfx950"\)')
        self.assertEqual(python(f"import torch, wavejit.torch; {call}", WAVEJIT_DEVICE="sim:gfx942").stderr, "")


class Public(unittest.TestCase):
    def test_annotated_and_explained(self):
        for module in (wavejit.torch, wavejit.transformers):
            for name in module.__all__:
                function = getattr(module, name)
                signature = inspect.signature(function)
                self.assertTrue(function.__doc__, name)
                self.assertEqual(told_and_not_there(function), set(), name)
                self.assertIsNot(signature.return_annotation, inspect.Signature.empty)
                for parameter in signature.parameters.values():
                    self.assertIsNot(parameter.annotation, inspect.Parameter.empty, f"{name}: {parameter.name}")


class Examples(unittest.TestCase):
    def test_of_docstrings(self):
        modules = [f"wavejit.torch.{info.name}" for info in pkgutil.iter_modules(wavejit.torch.__path__)] + ["wavejit.transformers"]
        count = 0
        for name in modules:
            result = doctest.testmod(importlib.import_module(name))
            self.assertEqual(result.failed, 0)
            count += result.attempted
        self.assertGreater(count, 25)

    def test_of_the_first_page(self):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/start/pytorch.md").read_text(), re.S)
        self.assertEqual(len(blocks), 1)
        exec(compile(blocks[0], "docs/start/pytorch.md", "exec"), {})

    def test_of_the_page(self):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "pytorch.md").read_text(), re.S)
        self.assertGreater(len(blocks), 4)
        scope = {}
        for block in blocks:  # in order, as a reader types them
            exec(compile(block, "docs/pytorch.md", "exec"), scope)


if __name__ == "__main__":
    unittest.main()
