# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit.jax as a package: what importing it loads and says, without a device in the environment; every example of its documentation."""
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

from typing_test import told_and_not_there

import wavejit
import wavejit.jax

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALL = "from jax import numpy as jnp; q = jnp.ones((1, 4, 2, 64), jnp.float16); print(wavejit.jax.attention(q, q, q).sum())"


def python(program, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "WAVEJIT_DEVICE"} | variables
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env=environment)


class Import(unittest.TestCase):
    def test_without_a_device(self):
        """`import wavejit` loads no JAX, and importing wavejit.jax opens no device: arrays on CPUs need one, and the call says which would do."""
        run = python(f"import sys, wavejit; print('jax' in sys.modules); import wavejit.jax; print('simgpu' in open('/proc/self/maps').read()); {CALL}")
        self.assertEqual(run.stdout.split(), ["False", "False"])
        self.assertRegex(run.stderr, r'INVALID_ARGUMENT: device: an array on cpu:0, and the device is hip; accepted: an array on ROCm, or wavejit\.jax\.use\("sim:gfx950"\)')

    def test_missing_and_unknown(self):
        run = python("import sys; sys.modules['jax'] = None; import wavejit.jax")
        self.assertRegex(run.stderr, "ModuleNotFoundError: wavejit.jax: the package jax is not installed; accepted: `python -m pip install jax`")
        run = python("import jax; jax.__version__ = '0.99.0'; import wavejit.jax")
        self.assertEqual(run.returncode, 0)
        self.assertIn("UserWarning: wavejit.jax: JAX 0.99.0 has not been tried with this version of wavejit; tried: 0.9.1, 0.12.0", run.stderr)
        run = python("import jax; jax.__version_info__ = (0, 4, 30); jax.__version__ = '0.4.30'; import wavejit.jax")
        self.assertIn("ImportError: wavejit.jax: JAX 0.4.30; accepted: 0.5 or later", run.stderr)


class Public(unittest.TestCase):
    def test_annotated_and_explained(self):
        for name in wavejit.jax.__all__:
            function = getattr(wavejit.jax, name)
            if not callable(function):
                continue
            signature = inspect.signature(function)
            self.assertTrue(function.__doc__, name)
            self.assertEqual(told_and_not_there(function), set(), name)
            self.assertIsNot(signature.return_annotation, inspect.Signature.empty)
            for parameter in signature.parameters.values():
                self.assertIsNot(parameter.annotation, inspect.Parameter.empty, f"{name}: {parameter.name}")


class Examples(unittest.TestCase):
    def test_of_docstrings(self):
        count = 0
        for info in pkgutil.iter_modules(wavejit.jax.__path__):
            result = doctest.testmod(importlib.import_module(f"wavejit.jax.{info.name}"))
            self.assertEqual(result.failed, 0)
            count += result.attempted
        self.assertGreater(count, 10)

    def test_of_the_page(self):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "jax.md").read_text(), re.S)
        self.assertGreater(len(blocks), 4)
        scope = {}
        for block in blocks:  # in order, as a reader types them
            exec(compile(block, "docs/jax.md", "exec"), scope)


if __name__ == "__main__":
    unittest.main()
