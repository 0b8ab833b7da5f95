# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PyTorch code that `wavejit choose` prints runs as it stands, on its simulated GPU."""
import contextlib
import io
import os
import subprocess
import unittest

import wavejit.torch

SMALL = ("--heads", "4/2", "--query-length", "40", "--key-length", "70")
LATENT = ("--keys", "latent", "--use", "decode", "--key-length", "70", "--latent-heads", "16")
INDEXER = ("--use", "indexer", "--key-length", "70", "--query-length", "3", "--top-k", "5")


def printed_by(*words: str) -> str:
    told = subprocess.run([os.environ["WAVEJIT_PROGRAM"], "choose", "--usual", *words], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    source = told.stdout.split("\nPyTorch\n\n")[1]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "example", "exec"), {})
    return out.getvalue()


class Choice(unittest.TestCase):
    def tearDown(self):
        wavejit.torch.use(os.environ.get("WAVEJIT_DEVICE", "sim:gfx950"))

    def test_flash_attn(self):
        for words in ((), ("--lengths", "packed"), ("--lengths", "padded", "--dtype", "fp16"), ("--cache", "paged", "--page-size", "16"),
                      ("--mask", "window", "--window", "9"), ("--use", "decode")):
            with self.subTest(words=words):
                small = SMALL if "decode" not in words else ("--heads", "4/2", "--key-length", "70")
                self.assertRegex(printed_by(*small, *words), r"^torch.Size\(\[(2, 40|80|2, 1), 4, 128\]\)$")

    def test_eight_bits(self):
        for words in (("--kv-dtype", "e4m3"), ("--kv-dtype", "e5m2_fnuz", "--kv-scales", "h"), ("--kv-dtype", "e5m2", "--kv-scales", "none", "--cache", "paged"),
                      ("--q-dtype", "e4m3", "--kv-scales", "h"), ("--q-dtype", "i8", "--kv-scales", "bh"), ("--q-dtype", "i8", "--kv-scales", "token", "--lengths", "packed")):
            with self.subTest(words=words):
                self.assertRegex(printed_by(*SMALL, *words), r"^torch.Size\(\[(2, 40|80), 4, 128\]\)$")

    def test_lists_chunks_and_flags(self):
        for words in (("--lists", "keys", "--top-k", "9"), ("--lists", "keys", "--top-k", "9", "--lengths", "packed"), ("--lists", "keys", "--top-k", "9", "--cache", "paged", "--lse", "yes"),
                      ("--lists", "blocks"), ("--lists", "blocks", "--block", "64x128", "--lengths", "packed"), ("--mask", "chunked", "--local-chunk", "24"),
                      ("--mask", "flags", "--lengths", "packed")):
            with self.subTest(words=words):
                self.assertRegex(printed_by(*SMALL, *words), r"^(torch.Size\(\[)?\(?(2, 40, 4|1, 80, 4|80, 4|2, 4, 40), 128\]?\)$")

    def test_latent_attention_and_the_indexer(self):
        for words in (LATENT, (*LATENT, "--cache", "paged"), (*LATENT, "--cache", "paged", "--lists", "keys", "--top-k", "9"), (*LATENT, "--latent-dims", "512", "--lse", "yes")):
            with self.subTest(words=words):
                self.assertEqual(printed_by(*words), "torch.Size([2, 1, 16, 512])\n")
        for words in (INDEXER, (*INDEXER, "--cache", "paged", "--key-scales", "yes")):
            with self.subTest(words=words):
                self.assertEqual(printed_by(*words), "torch.Size([2, 3, 5])\n")


if __name__ == "__main__":
    unittest.main()
