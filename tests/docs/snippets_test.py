#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pages give a reader to type runs as it is written, or stands in STAND_INS with what is done instead, and why.

A block of code is fenced, or indented by four spaces. Python's of a page are one program, in order. C++ is compiled, linked and run. Of an
indented block each line is a command of the shell, in a new folder with the program `wavejit` on the path.

    snippets_test.py <the program wavejit> <the tree> <compiler of C++> [page…]
    snippets_test.py --self-test <compiler of C++>

A block that fails, one that nothing can run, and a stand-in that no block or line begins as are errors.
"""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from typing import NamedTuple

PAGES = ("README.md", "docs/start/*.md", "docs/python.md", "docs/pytorch.md", "docs/vllm.md", "docs/jax.md", "docs/latent-attention.md", "docs/sparse.md",
         "docs/low-precision.md", "docs/split-keys.md", "docs/environment.md")  # fmt: skip


class Block(NamedTuple):
    page: str
    line: int
    language: str  # "" of an indented one
    text: str


class By(NamedTuple):
    """Not run here: the file runs it, and has these words."""

    file: str
    words: str


class With(NamedTuple):
    """Run with other words in the place of some; behind it stands more."""

    words: tuple[tuple[str, str], ...]
    more: str = ""


class C(NamedTuple):
    """An indented block of C, compiled where `call`, or another name, is such a struct, and pointers have names."""

    struct: str
    name: str = "call"
    language: str = "c"


class Text(NamedTuple):
    """An indented block that is no code."""


class Line(NamedTuple):
    """An indented block whose lines describe calls: those have kernels."""

    target: str


How = By | With | C | Text | Line


class StandIn(NamedTuple):
    page: str
    begins: str  # as the block begins, its fence included, or as a line of it does
    how: How
    why: str


MODEL = '{"model_type": "qwen3", "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 36, "torch_dtype": "bfloat16", "max_position_embeddings": 40960}'
WHEEL = By("scripts/wheel/check_install.sh", "pip install -q --no-index --find-links /wheels wavejit")
PACKAGE_TEST = By("tests/python/package_test.py", 'python("-m", "wavejit", "demo")')
LOCAL_MODEL = ("~/models/Qwen3-8B", "models/Qwen3-8B")
ATTENTION = "struct wavejit_attention_forward_arguments"
LATENT = "struct wavejit_attention_latent_arguments"

DECODE_MAIN = """
int main() {
  wavejit::Engine engine("sim:gfx942");
  wavejit::DeviceBuffer q(engine, 64 * 32 * 128 * 2), o(engine, 64 * 32 * 128 * 2), k(engine, 16 * 8 * 128 * 2), v(engine, 16 * 8 * 128 * 2);
  wavejit::DeviceBuffer table(engine, std::vector<std::int32_t>(64 * 512)), lengths(engine, std::vector<std::int32_t>(64, 5));
  decode(engine, q.data(), k.data(), v.data(), o.data(), 1, static_cast<std::int32_t*>(table.data()), static_cast<std::int32_t*>(lengths.data()), nullptr);
  engine.synchronize();
}
"""

STAND_INS = (
    StandIn("README.md", "./dev demo", By("scripts/commands.txt", "demo = run demo"), "builds for minutes"),
    StandIn("README.md", "./dev test", By("scripts/commands.txt", "test = by soak"), "this test is a part of it"),
    StandIn("README.md", "python -m pip install .", By("tests/package/check_wheel.sh", "pip install . without a compiler"), "builds for minutes; the wheel is made of the same package"),
    StandIn("README.md", "python -m wavejit demo", PACKAGE_TEST, "runs there"),
    StandIn("README.md", "```python", By("tests/python/package_test.py", '"README.md").read_text()'), "runs there"),
    StandIn("docs/start/kernel-writers.md", "./dev build", By("scripts/commands.txt", "build = by test"), "builds for minutes; what it builds runs this test"),
    StandIn("docs/start/kernel-writers.md", "./dev run wavejit explain", With((("./dev run ", ""), ("| less", ">listing.txt"))), "this is inside of ./dev, and nobody reads"),
    StandIn("docs/start/kernel-writers.md", "./dev run wavejit profile", With((("./dev run ", ""),)), "this is inside of ./dev"),
    StandIn("docs/start/pytorch.md", "```python", By("tests/torch/package_test.py", '"docs/start/pytorch.md"'), "needs PyTorch"),
    StandIn("docs/start/serving-a-model.md", "python -m pip install wavejit-", WHEEL, "needs a wheel"),
    StandIn("docs/start/serving-a-model.md", "wavejit doctor --device hip --risk 2", With((("--device hip", "--device sim:gfx950"),)), "no GPU"),
    StandIn("docs/start/serving-a-model.md", "wavejit prebuild --model", With((LOCAL_MODEL, ("gfx942,gfx950", "gfx950"))), "nothing is fetched: the model's config.json alone; one target of two"),
    StandIn("docs/start/serving-a-model.md", "WAVEJIT_CACHE_LAYERS=", By("tests/vllm/plugin_test.py", "AttentionBackendEnum.CUSTOM"), "needs vLLM; tests/vllm starts its engine in the process"),
    StandIn("docs/start/serving-a-model.md", "wavejit doctor --device hip --json", With((("--device hip", "--device sim:gfx950 --list"),)), "no GPU, and all of it takes a minute; doctor_program_tests run all parts"),
    StandIn("docs/start/serving-engine.md", "```cmake", By("tests/package/consumer/CMakeLists.txt", "find_package(wavejit"), "needs an installed wavejit"),
    StandIn("docs/start/serving-engine.md", "```cpp\n#include <wavejit/wavejit.hpp>\n\n// One for each device", With((('"hip"', '"sim:gfx942"'),), "int main() { prepare(engine); }\n"), "no GPU; a server has its own main"),
    StandIn("docs/start/serving-engine.md", "```cpp\n#include <wavejit/wavejit.hpp>\n\n// All memory", With((), DECODE_MAIN), "it is a function"),
    StandIn("docs/start/simulated-gpu-only.md", "```", By("tests/docs/CMakeLists.txt", "docs/start/simulated-gpu-only.md"), "docs.simulated_gpu runs them"),
    StandIn("docs/python.md", "python -m pip install wavejit-", WHEEL, "needs a wheel"),
    StandIn("docs/python.md", "python -m pip install .", By("tests/package/check_wheel.sh", "pip install . without a compiler"), "builds for minutes; the wheel is made of the same package"),
    StandIn("docs/python.md", "python -m wavejit demo", PACKAGE_TEST, "runs there"),
    StandIn("docs/python.md", "```python", By("tests/python/package_test.py", '"docs" / "python.md"'), "runs there"),
    StandIn("docs/python.md", "    out = engine.attention_forward(q, k, v, stream=cupy", By("tests/rocr/python/cupy_attention_test.py", "cupy.from_dlpack(out)"), "needs CuPy"),
    StandIn("docs/python.md", "cmake -S . -B build", By("tests/package/check_wheel.sh", "of_package --cmake-dir"), "needs an installed package"),
    StandIn("docs/python.md", "PKG_CONFIG_PATH=", By("tests/package/check_wheel.sh", "of_package --pkg-config-dir"), "needs an installed package"),
    StandIn("docs/pytorch.md", "```python", By("tests/torch/package_test.py", '"docs/pytorch.md"'), "needs PyTorch"),
    StandIn("docs/pytorch.md", "python -m pip install torch", By("scripts/python_environment.py", "pip"), "fetches; the tests' own environment has these packages"),
    StandIn("docs/vllm.md", "python -m pip install wavejit-", WHEEL, "needs a wheel"),
    StandIn("docs/vllm.md", "vllm serve Qwen", By("tests/vllm/plugin_test.py", "AttentionBackendEnum.CUSTOM"), "needs vLLM on ROCm, and weights"),
    StandIn("docs/vllm.md", "vllm serve deepseek-ai/DeepSeek-V3 --attention", By("tests/vllm/plugin_test.py", '["--attention-backend", "WAVEJIT_MLA"]'), "needs vLLM on ROCm, and weights"),
    StandIn("docs/vllm.md", "vllm serve deepseek-ai/DeepSeek-V3.2", By("tests/vllm/sparse_test.py", 'AttentionBackendEnum["WAVEJIT_MLA_SPARSE"]'), "needs vLLM on ROCm, and weights"),
    StandIn("docs/vllm.md", "VLLM_BATCH_INVARIANT=1", By("tests/vllm/plugin_test.py", '"use_batch_invariant": True'), "needs vLLM on ROCm, and weights"),
    StandIn("docs/vllm.md", "WAVEJIT_DEVICE=sim:gfx950 vllm serve", By("tests/vllm/CMakeLists.txt", "engine_device WAVEJIT_DEVICE=sim:gfx950"), "needs weights"),
    StandIn("docs/vllm.md", "vllm serve meta-llama", By("tests/vllm/ranks_test.py", "decode_context_parallel"), "needs sixteen GPUs; ranks run one after the other"),
    StandIn("docs/vllm.md", "vllm serve moonshotai", By("tests/vllm/plugin_test.py", '["--attention-backend", "WAVEJIT_MLA"]'), "needs eight GPUs"),
    StandIn("docs/vllm.md", "vllm serve deepseek-ai/DeepSeek-V3 --tensor", By("tests/vllm/head_ranks_test.py", "rank"), "needs eight GPUs; ranks run one after the other"),
    StandIn("docs/vllm.md", "```python", By("tests/vllm/plugin_test.py", '"docs" / "vllm.md"'), "needs vLLM"),
    StandIn("docs/vllm.md", "    attention_forward bf16", Line("gfx950"), "describes calls"),
    StandIn("docs/vllm.md", "./dev check vllm", By("scripts/commands.txt", "check = run check"), "these are tests"),
    StandIn("docs/vllm.md", "./dev soak vllm", By("scripts/commands.txt", "soak = by soak"), "these are tests"),
    StandIn("docs/jax.md", "```python", By("tests/jax/package_test.py", '"docs/jax.md"'), "needs JAX"),
    StandIn("docs/jax.md", "python -m pip install jax", By("scripts/python_environment.py", "pip"), "fetches; the tests' own environment has these packages"),
    StandIn("docs/jax.md", "scripts/python_environment.py jax-rocm", By("tests/rocr/python/CMakeLists.txt", "scripts/python_environment.py jax-rocm"), "fetches"),
    StandIn("docs/jax.md", "JAX_PLATFORMS=rocm", By("tests/rocr/python/CMakeLists.txt", "XLA_FLAGS=--xla_gpu_autotune_level=0"), "needs JAX on ROCm"),
    StandIn("docs/latent-attention.md", "wavejit run attention_latent", By("tests/tools/run_latent_test.cpp", '"attention_latent"'), "needs arrays in files"),
    StandIn("docs/latent-attention.md", "wavejit prebuild", With((("--preset mla", "--preset mla --print-list"),)), "compiles for 40 seconds"),
    StandIn("docs/low-precision.md", "    call.q = wavejit_dense_tensor(q, WAVEJIT_BF16", C(ATTENTION), "a part of a program"),
    StandIn("docs/low-precision.md", "wavejit explain", With((), "[[ $? == 4 ]]\n"), "a refusal, which the page says it is"),
    StandIn("docs/low-precision.md", "    call.o = wavejit_dense_tensor(o, WAVEJIT_E4M3", C(ATTENTION), "a part of a program"),
    StandIn("docs/low-precision.md", "    call.scales.token_scales = 1", C(ATTENTION), "a part of a program"),
    StandIn("docs/low-precision.md", "    call.scales.k_scale = wavejit_dense_tensor((char*)", C(ATTENTION), "a part of a program"),
    StandIn("docs/low-precision.md", "    call.k = wavejit_dense_tensor(cache", C(LATENT), "a part of a program"),
    StandIn("docs/low-precision.md", "    call.q = wavejit_dense_tensor(q, WAVEJIT_E4M3", C(ATTENTION), "a part of a program"),
    StandIn("docs/low-precision.md", "    call.q = wavejit_dense_tensor(q, WAVEJIT_INT8", C(ATTENTION), "a part of a program"),
    StandIn("docs/low-precision.md", "    attention_latent bf16", Line("gfx950"), "describes a call"),
    StandIn("docs/low-precision.md", "wavejit sweep", By("tests/attention/CMakeLists.txt", "integers_list.txt --check"), "takes minutes"),
    StandIn("docs/split-keys.md", "    run s holds chunks", Text(), "a formula"),
    StandIn("docs/split-keys.md", "    bytes = ", Text(), "a formula"),
    StandIn("docs/split-keys.md", "    options.pipeline", C("wavejit::EngineOptions", "options", "c++"), "a part of a program"),
)  # fmt: skip
POINTERS = ("q", "k", "v", "o", "cache", "q_scale", "k_scale", "v_scale", "o_scale")
SIZES = ("pages", "page_bytes", "stride_of_a_page_in_bytes")


def indented(lines: list[str]) -> str:
    """With four spaces in front, also in an item of a list."""
    return textwrap.indent(textwrap.dedent("\n".join(lines)).rstrip(), "    ") + "\n"


def blocks_of(page: str, text: str) -> list[Block]:
    found: list[Block] = []
    language, first, lines, before = None, 0, [], ""
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if language == "" and line and not line.startswith("    "):
            found.append(Block(page, first, "", indented(lines)))
            language = None
        if language is None and line.startswith("```"):
            language, first, lines = line[3:].strip() or "text", number, []
        elif language is None and line.startswith("    ") and before == "":
            language, first, lines = "", number, [line]
        elif language and line.startswith("```"):
            found.append(Block(page, first, language, "\n".join(lines) + "\n"))
            language = None
        elif language is not None:
            lines.append(line)
        before = line
    if language is not None:
        found.append(Block(page, first, language, indented(lines)))
    return found


class Runner:
    def __init__(self, program: pathlib.Path, tree: pathlib.Path, compiler: str, stand_ins: tuple[StandIn, ...] = STAND_INS):
        self.program, self.tree, self.compiler, self.stand_ins = program, tree, compiler, stand_ins
        self.used: set[StandIn] = set()
        self.wrong: list[str] = []
        self.ran = 0

    def said(self, block: Block, what: str) -> None:
        self.wrong.append(f"{block.page}:{block.line}: {what}")

    def run(self, command: list[str], folder: pathlib.Path, given: str | None = None, seconds: int = 200) -> subprocess.CompletedProcess[str]:
        self.ran += 1
        libraries = self.program.parent.parent / "lib"
        environment = os.environ | {"PATH": f"{self.program.parent}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(libraries)}
        return subprocess.run(command, cwd=folder, env=environment, input=given or "", capture_output=True, text=True, timeout=seconds, check=False)

    def stand_in(self, block: Block, begins: str) -> StandIn | None:
        """The longest one: `wavejit prebuild --list` comes before `wavejit prebuild`."""
        fitting = [each for each in self.stand_ins if each.page == block.page and begins.startswith(each.begins)]
        found = max(fitting, key=lambda each: len(each.begins), default=None)
        if found is not None:
            self.used.add(found)
            if isinstance(found.how, By) and found.how.words not in (self.tree / found.how.file).read_text(encoding="utf-8"):
                self.said(block, f"is run by {found.how.file}, which does not have the words {found.how.words!r}")
        return found

    def page(self, page: str) -> None:
        python = []
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            (folder / "models" / "Qwen3-8B").mkdir(parents=True)
            (folder / "models" / "Qwen3-8B" / "config.json").write_text(MODEL, encoding="utf-8")
            for block in blocks_of(page, (self.tree / page).read_text(encoding="utf-8")):
                if block.language == "":
                    self.indented(block, folder)
                    continue
                found = self.stand_in(block, f"```{block.language}\n{block.text}")
                if found is not None and not isinstance(found.how, With):
                    continue
                text = changed(block.text, found)
                if block.language == "python":
                    python.append(block._replace(text=text))
                elif block.language == "cpp":
                    self.cpp(block, text, folder)
                else:
                    self.said(block, f"nothing runs a block of {block.language}; give it a stand-in in tests/docs/snippets_test.py")
            if python:
                self.python(python, folder)

    def python(self, blocks: list[Block], folder: pathlib.Path) -> None:
        """As a reader types them; lines of a failure are the page's."""
        source = ""
        for block in blocks:
            source += "\n" * (block.line - source.count("\n")) + block.text
        (folder / "page.py").write_text(source, encoding="utf-8")
        outcome = self.run([sys.executable, "page.py"], folder)
        if outcome.returncode != 0:
            self.said(blocks[0], f"Python: {outcome.stderr.strip()}")

    def cpp(self, block: Block, text: str, folder: pathlib.Path) -> None:
        libraries = self.program.parent.parent / "lib"
        (folder / "snippet.cpp").write_text(text, encoding="utf-8")
        made = self.run([self.compiler, "-std=c++20", "-Wall", "-Wno-unused-variable", "-Werror", f"-I{self.tree}/include", "snippet.cpp", "-o", "snippet", f"-L{libraries}", "-lwavejit"], folder)
        outcome = made if made.returncode != 0 else self.run(["./snippet"], folder)
        if outcome.returncode != 0:
            self.said(block, f"C++: {outcome.stderr.strip() or outcome.returncode}")

    def indented(self, block: Block, folder: pathlib.Path) -> None:
        found = self.stand_in(block, block.text)
        lines = [line[4:] for line in block.text.splitlines() if line.strip()]
        if found is not None:
            return self.listed(block, found.how, lines, folder)
        printed = None
        for line in lines:
            found = self.stand_in(block, line)
            if found is not None and isinstance(found.how, By):
                printed = None
            elif found is None and printed is not None and not is_command(line, self.program.parent):
                if not shown(line, printed):
                    self.said(block, f"the command before it does not print `{line}`, but:\n{printed[:2000]}")
            else:
                command = changed(line, found)
                outcome = self.run(["bash", "-c", f"set -o pipefail\n{command}"], folder)
                printed = outcome.stdout + outcome.stderr
                if outcome.returncode != 0:
                    self.said(block, f"`{line}` ends with {outcome.returncode}: {outcome.stderr.strip()[-1000:]}")
        return None

    def listed(self, block: Block, how: How, lines: list[str], folder: pathlib.Path) -> None:
        if isinstance(how, C):
            names = ", ".join(f"*{name} = 0" for name in POINTERS)
            sizes = ", ".join(f"{name} = 1" for name in SIZES)
            header, suffix = ("wavejit.hpp", ["-std=c++20"]) if how.language == "c++" else ("wavejit.h", ["-std=c11"])
            body = "\n  ".join(lines)
            source = f"#include <wavejit/{header}>\nvoid part(void) {{\n  {how.struct} {how.name} = {{}};\n  void {names};\n  long {sizes};\n  {body}\n}}\n"
            made = self.run([self.compiler, "-x", how.language, *suffix, "-fsyntax-only", "-Werror", f"-I{self.tree}/include", "-"], folder, source)
            if made.returncode != 0:
                self.said(block, f"C: {made.stderr.strip()}")
        elif isinstance(how, Line):
            for line in lines:
                outcome = self.run([str(self.program), "prebuild", "--print-list", "--target", how.target, line.partition("#")[0].strip()], folder)
                if outcome.returncode != 0:
                    self.said(block, f"`{line}` has no kernel: {outcome.stderr.strip()}")

    def ended(self) -> list[str]:
        stale = [each for each in self.stand_ins if each not in self.used]
        return self.wrong + [f"{each.page}: no block or line begins with {each.begins!r}; take its stand-in out of tests/docs/snippets_test.py" for each in stale]


def is_command(line: str, programs: pathlib.Path) -> bool:
    """Whether a line begins with a program that is there, or sets a variable for one. Others are what the command before them prints."""
    word = line.split()[0]
    return "=" in word or shutil.which(word, path=f"{programs}:{os.environ['PATH']}") is not None


def changed(text: str, found: StandIn | None) -> str:
    if found is None or not isinstance(found.how, With):
        return text
    for old, new in found.how.words:
        text = text.replace(old, new)
    return text.rstrip("\n") + "\n" + found.how.more


def shown(line: str, printed: str) -> bool:
    """Whether the words of a line stand in the output in this order, wherever lines are broken."""
    pattern = ".*".join(re.escape(" ".join(piece.split())) for piece in line.split("…"))
    return re.search(pattern, " ".join(printed.split())) is not None


def self_test(compiler: str) -> int:
    good = ("a\n\n```python\nx = 1\n```\n\nb\n\n    true\n    echo one two; echo three\n    two three\n\n    echo given\n\n"
            "c\n\n    x = y + z\n\n```python\nassert x == 1\n```\n")  # fmt: skip
    stand_ins = (StandIn("p.md", "echo given", With((("given", "other"),), "test 1 = 1"), ""), StandIn("p.md", "    x = y", Text(), ""))
    broken: dict[str, Callable[[str], str]] = {
        "assert x == 2": lambda page: page.replace("x == 1", "x == 2"),
        "`false` ends with 1": lambda page: page.replace("    true", "    false"),
        "does not print `two four`": lambda page: page.replace("    two three", "    two four"),
        "nothing runs a block of rust": lambda page: page + "\n```rust\n```\n",
        "begins with 'echo given'": lambda page: page.replace("    echo given\n\n", ""),
    }
    with tempfile.TemporaryDirectory() as scratch:
        tree = pathlib.Path(scratch)
        for name in ("bin", "lib", "include"):
            (tree / name).mkdir()
        subprocess.run([compiler, "-shared", "-x", "c", "/dev/null", "-o", tree / "lib" / "libwavejit.so"], check=True)

        def wrong(page: str, these: tuple[StandIn, ...] = stand_ins) -> list[str]:
            (tree / "p.md").write_text(page, encoding="utf-8")
            runner = Runner(tree / "bin" / "wavejit", tree, compiler, these)
            runner.page("p.md")
            return runner.ended()

        assert not wrong(good), wrong(good)
        for words, change in broken.items():
            found = wrong(change(good))
            assert len(found) == 1 and words in found[0], (words, found)
        found = wrong("```cpp\nint main() { return missing; }\n```\n", ())
        assert len(found) == 1 and "missing" in found[0], found
        assert not wrong("```cpp\nint main() {}\n```\n", ())
        found = wrong("```cpp\nint main() { return 3; }\n```\n", ())
        assert found == ["p.md:1: C++: 3"], found
        found = wrong("\n\n    call.no_such_field = 1;\n", (StandIn("p.md", "    call.", C("int"), ""),))
        assert len(found) == 1, found
        found = wrong("\n\n    run me\n", (StandIn("p.md", "run me", By("p.md", "no such " + "words"), ""),))
        assert len(found) == 1 and "does not have the words" in found[0], found
    print("a block that does not run is found")
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test(sys.argv[2])
    program, tree = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    pages = sys.argv[4:] or [str(path.relative_to(tree)) for pattern in PAGES for path in sorted(tree.glob(pattern))]
    runner = Runner(program, tree, sys.argv[3], tuple(each for each in STAND_INS if each.page in pages or not sys.argv[4:]))
    for page in pages:
        began, ran, blocks = time.monotonic(), runner.ran, len(blocks_of(page, (tree / page).read_text(encoding="utf-8")))
        runner.page(page)
        print(f"{page}: {blocks} blocks, {runner.ran - ran} programs, {time.monotonic() - began:.1f} s", flush=True)
    wrong = runner.ended()
    print("\n".join(wrong) if wrong else "what pages give to type runs, or has a stand-in")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
