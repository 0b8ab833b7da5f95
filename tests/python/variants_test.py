# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/variants.md is what `wavejit variants` prints; its examples, and those that `wavejit choose` writes, run."""
import contextlib
import functools
import io
import os
import pathlib
import pty
import re
import shutil
import subprocess
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["WAVEJIT_PROGRAM"]
INCLUDED = "#include <wavejit/wavejit.hpp>"


def program(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


@functools.cache
def header() -> tuple[list[str], tempfile.TemporaryDirectory[str]]:
    """How to compile an example: the library's header, which takes the compiler longer than all of them, compiled once."""
    folder = tempfile.TemporaryDirectory()
    compiler = shutil.which("clang++-22") or shutil.which("c++") or "c++"
    command = [compiler, "-std=c++20", "-Wall", "-Werror", f"-I{TREE}/include"]
    path = pathlib.Path(folder.name) / "header.hpp"
    path.write_text(f"{INCLUDED}\n", encoding="utf-8")
    subprocess.run([*command, "-x", "c++-header", path, "-o", f"{path}.gch"], check=True)
    return [*command, "-fsyntax-only", "-include", str(path), "-x", "c++", "-"], folder


def said_of_cpp(source: str) -> str:
    """What is wrong with an example in C++; nothing: it compiles."""
    if INCLUDED not in source.splitlines():
        return f"no line is {INCLUDED}"
    made = subprocess.run(header()[0], input=source, capture_output=True, text=True)
    return made.stderr or ("" if made.returncode == 0 else f"status {made.returncode}")


def printed_by(source: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "example", "exec"), {})
    return out.getvalue()


class Page(unittest.TestCase):
    page = (TREE / "docs" / "variants.md").read_text(encoding="utf-8")

    def test_is_what_the_program_prints(self):
        made = program("variants", "--markdown")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(made.stdout.splitlines(), self.page.splitlines(), "make it anew: wavejit variants --markdown > docs/variants.md")

    def test_its_examples_run(self):
        blocks = re.findall(r"(PyTorch:\n\n)?```(cpp|python)\n(.*?)```", self.page, re.DOTALL)
        self.assertEqual([language for _, language, _ in blocks], ["cpp", "python", "python"] * 2)
        for pytorch, language, source in blocks:
            if language == "cpp":
                self.assertEqual(said_of_cpp(source), "")
            elif pytorch:
                compile(source, "example", "exec")
            else:
                self.assertRegex(printed_by(source), r"^\(\d+, \d+, 16, 128\)$")

    def test_nothing_that_has_a_descriptor_is_refused_everywhere(self):
        rows = [row for row in self.page.splitlines() if row.startswith("| ") and "2026" not in row]
        self.assertTrue(any("dualwave 256x64" in row for row in rows))
        self.assertFalse([row for row in rows if row.count("refused: ") > 2])


class Variants(unittest.TestCase):
    def test_one_by_its_name(self):
        told = program("variants", "paged")
        self.assertIn("layout=paged:64", told.stdout)
        self.assertNotIn("mqa", told.stdout)

    def test_an_unknown_name_is_one_line(self):
        told = program("variants", "flash")
        self.assertEqual(told.returncode, 2)
        self.assertEqual(told.stderr.count("\n"), 1)
        self.assertIn("'flash' is not known; `wavejit variants` lists all", told.stderr)

    def test_integers_have_a_kernel_on_both_targets(self):
        told = program("variants", "int8").stdout
        self.assertIn("qk=i8", told)
        self.assertNotIn("not there yet", told)


class Choose(unittest.TestCase):
    def answer(self, *words: str) -> str:
        told = program("choose", "--usual", *words)
        self.assertEqual(told.returncode, 0, told.stderr)
        return told.stdout

    def test_its_python_runs(self):
        small = ("--heads", "4/2", "--query-length", "40", "--key-length", "70")
        for words in (("--lengths", "packed", *small, "--lse", "yes"), ("--lengths", "padded", *small, "--dtype", "fp16"),
                      ("--cache", "paged", "--page-size", "64", *small), ("--mask", "window", "--window", "9", *small),
                      ("--lists", "keys", "--top-k", "9", "--lengths", "packed", *small), ("--lists", "keys", "--top-k", "30", "--lengths", "padded", "--mask", "all", *small),
                      ("--use", "decode", "--heads", "8/2", "--key-length", "70", "--head-dim", "192/128")):
            with self.subTest(words=words):
                text = self.answer(*words)
                source = text.split("\nPython\n\n")[1].split("\nPyTorch\n")[0]
                self.assertRegex(printed_by(source), r"^\(\d+, \d+, \d, 128\)$")

    def test_lists_of_keys(self):
        small = ("--lists", "keys", "--top-k", "40", "--key-length", "70", "--lse", "yes")
        for words, descriptor in ((("--use", "decode", "--cache", "paged", "--heads", "12/4"), "attention_forward bf16 b2 q1 k70 h12/4 d128 lse layout=paged:16 top_k=40"),
                                  (("--query-length", "3", "--heads", "4", "--dtype", "fp16"), "attention_forward fp16 b2 q3 k70 h4 d128 causal lse top_k=40"),
                                  (("--keys", "latent", "--use", "decode", "--cache", "paged"), "attention_latent bf16 b2 q1 k70 h16 d576/512 lse layout=paged:16 top_k=40")):
            with self.subTest(words=words):
                text = self.answer(*small, *words)
                self.assertIn(f"descriptor  {descriptor}\n", text)
                self.assertNotRegex(text, r"\ngfx9\d\d +refused")
                cpp, rest = text.split("\nC++\n\n")[1].split("\nPython\n\n")
                source, pytorch = rest.split("\nPyTorch\n\n")
                self.assertRegex(printed_by(source), r"^\(2, \d, \d+, (512|128)\)$")
                compile(pytorch, "example", "exec")
                self.assertEqual(said_of_cpp(cpp), "")
        for words, named in ((("--lists", "keys", "--mask", "window"), "lists of keys have no windows"), (("--lists", "keys", "--top-k", "0"), "'0' is not accepted"),
                             (("--top-k", "9"), "the answers before it leave no such question")):
            told = program("choose", "--usual", *words)
            self.assertEqual(told.returncode, 2)
            self.assertIn(named, told.stderr)

    def test_lists_of_blocks(self):
        small = ("--lists", "blocks", "--heads", "4/2", "--key-length", "170", "--query-length", "150")
        for words, descriptor, function in (
            (("--lse", "yes"), "attention_forward bf16 b2 q150 k170 h4/2 d128 causal lse lists=128x128", "block_mask_attention(q, k, v, block_mask, causal=True, return_lse=True)"),
            (("--block", "64x128", "--mask", "window", "--window", "9"), "attention_forward bf16 b2 q150 k170 h4/2 d128 causal window=9,0 lists=64x128", "window_size=(9, 0))"),
            (("--block", "128x64", "--lengths", "packed"), "attention_forward bf16 b2 q150 k170 h4/2 d128 causal layout=packed lists=128x64", "attention_forward(q, k, v, lists=lists, causal"),
            (("--block", "64x64", "--cache", "paged", "--kv-dtype", "e4m3"), "attention_forward bf16 b2 q150 k170 h4/2 d128 causal layout=paged:16 cache=e4m3 cache_scales=1 lists=64x64", "lists=lists"),
        ):
            with self.subTest(words=words):
                text = self.answer(*small, *words)
                self.assertIn(f"descriptor  {descriptor}\n", text)
                cpp, rest = text.split("\nC++\n\n")[1].split("\nPython\n\n")
                source, pytorch = rest.split("\nPyTorch\n\n")
                self.assertRegex(printed_by(source), r"^\(\d, \d+, 4, 128\)$")
                self.assertIn(function, pytorch)
                compile(pytorch, "example", "exec")
                self.assertEqual(said_of_cpp(cpp), "")
        self.assertIn("variant     block-sparse\n", self.answer(*small))
        told = program("choose", "--usual", "--keys", "latent", "--lists", "blocks")
        self.assertEqual(told.returncode, 2)
        self.assertIn("latent attention has no lists of blocks; none, keys are accepted", told.stderr)

    def test_keys_and_values_of_8_bits(self):
        small = ("--heads", "4/2", "--key-length", "70", "--query-length", "3")
        for words, descriptor, refusing in (
            (("--kv-dtype", "e4m3"), "attention_forward bf16 b2 q3 k70 h4/2 d128 causal cache=e4m3 cache_scales=1", "gfx942"),
            (("--kv-dtype", "e5m2_fnuz", "--kv-scales", "bh", "--dtype", "fp16", "--lengths", "packed"),
             "attention_forward fp16 b2 q3 k70 h4/2 d128 causal layout=packed cache=e5m2_fnuz cache_scales=bh", "gfx950"),
            (("--kv-dtype", "e4m3", "--kv-scales", "h", "--cache", "paged", "--lists", "keys", "--top-k", "40"),
             "attention_forward bf16 b2 q3 k70 h4/2 d128 causal layout=paged:16 cache=e4m3 cache_scales=h top_k=40", "gfx942"),
            (("--kv-dtype", "e5m2", "--kv-scales", "none"), "attention_forward bf16 b2 q3 k70 h4/2 d128 causal cache=e5m2", "gfx942"),
        ):
            with self.subTest(words=words):
                text = self.answer(*small, *words)
                self.assertIn(f"variant     fp8\ndescriptor  {descriptor}\n", text)
                self.assertRegex(text, rf"\n{refusing} +refused: cache=")
                self.assertNotRegex(text, rf"prebuild .*--target .*{refusing}")
                cpp, rest = text.split("\nC++\n\n")[1].split("\nPython\n\n")
                source, pytorch = rest.split("\nPyTorch\n\n")
                self.assertRegex(printed_by(source), r"^\(\d, \d, 4, 128\)$")
                compile(pytorch, "example", "exec")
                self.assertEqual(said_of_cpp(cpp), "")
        told = program("choose", "--usual", "--kv-scales", "h")
        self.assertEqual(told.returncode, 2)

    def test_queries_of_8_bits_and_scales_of_tokens(self):
        small = ("--heads", "4/2", "--key-length", "70", "--query-length", "3")
        call = "attention_forward bf16 b2 q3 k70 h4/2 d128 causal"
        for words, variant, descriptor in (
            (("--q-dtype", "e4m3", "--kv-scales", "h"), "fp8-queries", f"{call} queries=e4m3 cache_scales=h"),
            (("--q-dtype", "e4m3", "--dtype", "fp16", "--lengths", "packed", "--kv-scales", "none"), "fp8-queries",
             f"{call.replace('bf16', 'fp16')} queries=e4m3 layout=packed"),
            (("--q-dtype", "i8", "--kv-scales", "bh"), "int8", f"{call} qk=i8"),
            (("--q-dtype", "i8", "--kv-scales", "token", "--lengths", "packed"), "int8", f"{call} qk=i8 layout=packed cache_scales=token"),
            (("--kv-dtype", "i8", "--kv-scales", "token", "--cache", "paged"), "fp8", f"{call} layout=paged:16 cache=i8 cache_scales=token"),
            (("--kv-dtype", "e4m3", "--kv-scales", "token", "--lengths", "padded"), "fp8", f"{call} k_lengths=70,70 cache=e4m3 cache_scales=token"),
        ):
            with self.subTest(words=words):
                text = self.answer(*small, *words)
                self.assertIn(f"variant     {variant}\ndescriptor  {descriptor}\n", text)
                cpp, rest = text.split("\nC++\n\n")[1].split("\nPython\n\n")
                source, pytorch = rest.split("\nPyTorch\n\n")
                self.assertRegex(printed_by(source), r"^\(\d, \d, 4, 128\)$")
                self.assertEqual("token_scales = 1" in cpp, "token" in words)
                compile(pytorch, "example", "exec")
                self.assertEqual(said_of_cpp(cpp), "")
        for words, named in ((("--q-dtype", "e4m3", "--kv-scales", "token"), "queries in e4m3 have no scales of tokens"),
                             (("--q-dtype", "i8", "--kv-dtype", "i8"), "the answers before it leave no such question"),
                             (("--kv-dtype", "i8", "--kv-scales", "token", "--lists", "keys"), "lists have no scales of tokens")):
            told = program("choose", "--usual", *words)
            self.assertEqual(told.returncode, 2)
            self.assertIn(named, told.stderr)

    def test_local_chunks_and_flags_of_sequences(self):
        small = ("--heads", "4/2", "--key-length", "70", "--query-length", "40")
        call = "attention_forward bf16 b2 q40 k70 h4/2 d128 causal"
        for words, variant, descriptor, operator in (
            (("--mask", "chunked", "--local-chunk", "24"), "chunked", f"{call} chunked=24", "attention_forward(q, k, v, causal=True, local_chunk=24)"),
            (("--mask", "chunked", "--cache", "paged", "--lse", "yes"), "paged", f"{call} chunked=8192 lse layout=paged:16",
             "attention_forward_lse(q, k, v, causal=True, block_table=block_table, key_lengths=lengths, max_key_length=70, local_chunk=8192)"),
            (("--mask", "flags", "--lengths", "packed"), "packed", f"{call} causal_flags layout=packed",
             "query_starts=cu_seqlens_q, key_starts=cu_seqlens_k, max_query_length=40, max_key_length=70, causal_flags=causal_flags)"),
            (("--mask", "flags", "--kv-dtype", "e4m3", "--kv-scales", "h"), "fp8", f"{call} causal_flags cache=e4m3 cache_scales=h",
             "attention_forward(q, k, v, causal=True, k_scale=k_scale, v_scale=v_scale, causal_flags=causal_flags)"),
        ):
            with self.subTest(words=words):
                text = self.answer(*small, *words)
                self.assertIn(f"variant     {variant}\ndescriptor  {descriptor}\n", text)
                cpp, rest = text.split("\nC++\n\n")[1].split("\nPython\n\n")
                source, pytorch = rest.split("\nPyTorch\n\n")
                self.assertRegex(printed_by(source), r"^\(\d, \d+, 4, 128\)$")
                self.assertIn(operator, pytorch)
                compile(pytorch, "example", "exec")
                self.assertEqual(said_of_cpp(cpp), "")
        for words, named in ((("--mask", "chunked", "--lists", "keys"), "--mask chunked: with lists there are no local chunks; all, causal are accepted"),
                             (("--mask", "flags", "--lists", "blocks"), "--mask flags: with lists there are no flags of sequences; all, causal, window are accepted"),
                             (("--mask", "flags", "--keys", "latent"), "with latent attention there are no flags of sequences"),
                             (("--mask", "chunked", "--use", "indexer"), "with the indexer there are no local chunks; all, causal, window are accepted"),
                             (("--local-chunk", "64"), "the answers before it leave no such question")):
            told = program("choose", "--usual", *words)
            self.assertEqual(told.returncode, 2)
            self.assertIn(named, told.stderr)

    def test_latent_attention(self):
        small = ("--keys", "latent", "--latent-heads", "12", "--key-length", "70")
        for words, descriptor in ((("--use", "decode", "--cache", "paged", "--page-size", "64", "--lse", "yes"), "bf16 b2 q1 k70 h12 d576/512 lse layout=paged:64"),
                                  (("--query-length", "3", "--latent-dims", "320/256", "--dtype", "fp16"), "fp16 b2 q3 k70 h12 d320/256 causal")):
            with self.subTest(words=words):
                text = self.answer(*small, *words)
                self.assertIn(f"descriptor  attention_latent {descriptor}\n", text)
                self.assertEqual(text.count("tiles of "), 2)  # a target each
                cpp, rest = text.split("\nC++\n\n")[1].split("\nPython\n\n")
                source, pytorch = rest.split("\nPyTorch\n\n")
                self.assertRegex(printed_by(source), r"^\(2, \d, 12, (512|256)\)$")
                compile(pytorch, "example", "exec")
                self.assertEqual(said_of_cpp(cpp), "")
        for words, named in ((("--mask", "window"), "latent attention has no windows"), (("--latent-heads", "129"), "'129' is not accepted; 1 to 128 are"),
                             (("--heads", "16/4"), "the answers before it leave no such question")):
            told = program("choose", "--usual", "--keys", "latent", *words)
            self.assertEqual(told.returncode, 2)
            self.assertIn(named, told.stderr)

    def test_the_indexer_of_sparse_attention(self):
        small = ("--use", "indexer", "--key-length", "170", "--index-heads", "33", "--top-k", "40")
        for words, descriptor, rows in (
            (("--query-length", "1", "--mask", "all", "--cache", "paged", "--page-size", "64"), "bf16 b2 q1 k170 h33 page=64 top=40", 1),
            (("--query-length", "3", "--dtype", "fp16", "--key-scales", "yes", "--batch", "4"), "fp16 b4 q3 k170 h33 key_scales top=40 causal", 3),
            (("--query-length", "2", "--mask", "window", "--window", "9", "--cache", "paged", "--key-scales", "yes"),
             "bf16 b2 q2 k170 h33 page=16 key_scales top=40 causal window=9,0", 2),
        ):
            with self.subTest(words=words):
                text = self.answer(*small, *words)
                self.assertIn(f"variant     indexer\ndescriptor  sparse_indexer {descriptor}\n", text)
                self.assertEqual(text.count(" and a run of keys\n"), 2)  # a target each
                cpp, rest = text.split("\nC++\n\n")[1].split("\nPython\n\n")
                source, pytorch = rest.split("\nPyTorch\n\n")
                self.assertRegex(printed_by(source), rf"^\([24], {rows}, 40\)$")
                compile(pytorch, "example", "exec")
                self.assertEqual(said_of_cpp(cpp), "")
        for words, named in ((("--index-heads", "129"), "'129' is not accepted; 1 to 128 are"), (("--heads", "16/4"), "the answers before it leave no such question"),
                             (("--lse", "yes"), "the answers before it leave no such question")):
            told = program("choose", "--usual", "--use", "indexer", *words)
            self.assertEqual(told.returncode, 2)
            self.assertIn(named, told.stderr)

    def test_every_answer_has_a_route_or_a_reason(self):
        for use in ("prefill", "decode"):
            for cache in ("dense", "paged"):
                for dim in ("64", "96", "128", "192/128", "256"):
                    text = self.answer("--use", use, "--cache", cache, "--head-dim", dim)
                    for target in ("gfx942", "gfx950", "gfx1201", "gfx1200"):
                        self.assertRegex(text, rf"\n{target} +((generic|dualwave|interleaved) \d+x64|refused: .*head dim)")

    def test_questions_that_do_not_arise_and_answers_that_are_none(self):
        for words, named in ((("--page-size", "16"), "--page-size 16: the answers before it leave no such question"),
                             (("--heads", "3/2"), "'3/2' is not accepted"), (("--head-dim", "100"), "multiples of 8 up to 256 and 192/128 are"), (("--cache", "tree"), "'tree' is not accepted; dense, paged are")):
            told = program("choose", "--usual", *words)
            self.assertEqual(told.returncode, 2)
            self.assertIn(named, told.stderr)

    def test_asks_on_a_terminal(self):
        mine, its = pty.openpty()
        with subprocess.Popen([PROGRAM, "choose", "--cache", "dense", "--lengths", "equal"], stdin=its, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as asked:
            os.close(its)
            # The use, wrong and then right; the rest as usual.
            os.write(mine, b"training\nprefill\n" + b"\n" * 13)
            out, err = asked.communicate(timeout=30)
        os.close(mine)
        self.assertEqual(asked.returncode, 0)
        self.assertIn("'training' is not accepted; prefill, decode, indexer are", err)
        self.assertIn("descriptor  attention_forward bf16 b2 q512 k512 h16/4 d128 causal", out)


if __name__ == "__main__":
    unittest.main()
