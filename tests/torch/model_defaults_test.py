# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `wavejit prebuild --model` takes where a config.json says nothing is what the classes of transformers have."""
import pathlib
import sys
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "scripts"))
import model_defaults  # noqa: E402


class Table(unittest.TestCase):
    def test_is_what_the_classes_have(self):
        """Another version of transformers: scripts/model_defaults.py writes the table anew."""
        self.maxDiff = None
        source = TREE / "tools" / "model_config.cpp"
        self.assertIn("gemma3_text", model_defaults.types(source))
        self.assertEqual(model_defaults.table(source).splitlines(), (TREE / "tools" / "model_defaults.inc").read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    unittest.main()
