#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documents as a site: build/<preset>/docs/html/index.html.

    docs_site.py <folder to build in> <the program wavejit>

Every Markdown page of the tree is one of the site, at its own place, so that links between pages are what they are in
the tree. Links to other files of the tree become their paths, as code; links to what is not there fail the build, as
any warning of Sphinx does. The references are made here: C and C++ from the headers, which teach, section by section;
Python from docstrings (PYTHONPATH must find the package); the program from its own help.
"""
import inspect
import pathlib
import re
import shutil
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
SECTION = re.compile(r"^(?:/\*|//) ---- (.+?) -{3,}")

# The order of the menu. A page that is named nowhere must be a room's: those come last, by their folders.
MENU = {
    "Start here": ["docs/README", "docs/glossary", "docs/models", "docs/install", "docs/start/pytorch", "docs/start/serving-a-model", "docs/start/serving-engine", "docs/start/kernel-writers", "docs/start/simulated-gpu-only", "docs/variants", "docs/command-line"],
    "Calls": ["docs/promises", "docs/vllm", "docs/sglang", "docs/pytorch", "docs/jax", "docs/backward", "docs/latent-attention", "docs/low-precision", "docs/sparse", "docs/sparse-indexer", "docs/cache-append", "docs/merging-parts", "docs/python", "docs/serving", "docs/problem-descriptors", "docs/prebuild", "docs/environment", "docs/cache-format", "docs/remote-cache",
              "examples/first_call/README", "examples/serving_engine/README", "examples/latent_serving/README", "examples/training/README"],
    "Bits": ["docs/invariance", "docs/invariance-cost", "docs/canonical-arithmetic", "docs/split-keys", "docs/sweep", "docs/fault-injection", "docs/reliability"],
    "Speed": ["docs/timing-model", "docs/silicon-score", "docs/profile", "docs/tune", "bench/predicted_shapes", "bench/predicted_rdna4", "bench/predicted_backward", "bench/predicted_decode", "bench/predicted_latent", "bench/predicted_indexer", "bench/predicted_sparse", "bench/predicted_low_precision", "bench/predicted_pages", "bench/predicted_table", "bench/static_table", "bench/README"],
    "The simulated GPU": ["docs/simulated-gpu", "docs/rocm-on-any-machine", "examples/rocm_ci/README", "docs/first-day-on-silicon", "docs/isa"],
    "Working on it": ["CONTRIBUTING", "docs/adding-a-family", "docs/adding-a-target", "docs/public-face", "docs/libraries", "docs/releases", "SECURITY", "CHANGELOG", "THIRD-PARTY"],
    "References": ["reference/program", "reference/python", "reference/arguments", "reference/torch", "reference/jax", "reference/transformers", "reference/cache", "reference/c", "reference/cpp", "reference/simgpu"],
}
ROOMS = ("src/", "templates/", "tools/", "python/", "tests/")


def pages_of_the_tree() -> list[pathlib.Path]:
    listed = subprocess.run(["git", "-C", TREE, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], check=True, capture_output=True, text=True)
    return sorted(pathlib.Path(name) for name in listed.stdout.splitlines() if (TREE / name).exists())


def with_links_of_the_site(text: str, page: pathlib.Path, pages: set[pathlib.Path]) -> str:
    """Links to other pages stay; those to other files of the tree become their paths."""

    def replaced(match: re.Match[str]) -> str:
        title, target, _ = match.groups()
        if re.match(r"[a-z]+:", target):
            return match.group(0)
        reached = (TREE / page.parent / target).resolve()
        if not reached.is_relative_to(TREE) or not reached.exists():
            raise SystemExit(f"{page}: the link to {target} leads nowhere")
        inside = reached.relative_to(TREE)
        if inside in pages:
            return match.group(0)
        return f"{title} (`{inside}`)" if title.strip("`") != str(inside) else f"`{inside}`"

    # Code blocks stay as they are.
    parts = re.split(r"(^```.*?^```\n)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(replaced, part) for part in parts)


def header_as_page(title: str, header: str, language: str) -> str:
    """A heading and a block of code for each section of a header."""
    page = [f"# {title}", "", f"This is `{header}`, which is written to be read, by its sections.", ""]
    block: list[str] = []

    def close() -> None:
        if any(line.strip() for line in block):
            page.extend([f"```{language}", *block, "```", ""])
        block.clear()

    for line in (TREE / header).read_text(encoding="utf-8").splitlines():
        if section := SECTION.match(line):
            close()
            page.extend([f"## {section.group(1).strip()}", ""])
            if line.startswith("//") or line.rstrip().endswith("*/"):
                continue
        block.append(line)
    close()
    return "\n".join(page) + "\n"


PYTHON_PAGE = """# {title}

```{{eval-rst}}
.. automodule:: {module}
   :members:
   :imported-members:
   :inherited-members: BaseException, tuple, Fields, Call
   :special-members: __enter__, __exit__
```
"""
PYTHON_PAGES = {
    "python": ("Python: wavejit", "wavejit"),
    "torch": ("Python: wavejit.torch", "wavejit.torch"),
    "jax": ("Python: wavejit.jax", "wavejit.jax"),
    "transformers": ("Python: wavejit.transformers", "wavejit.transformers"),
    "cache": ("Python: wavejit.cache", "wavejit.cache"),
}


def program_as_page(program: pathlib.Path) -> str:
    """What the program says of itself: its help, and that of each of its subcommands."""
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "100", "LC_ALL": "C.UTF-8"}

    def help_of(*words: str) -> str:
        return subprocess.run([program, *words, "--help"], check=True, capture_output=True, text=True, env=environment).stdout.rstrip()

    def subcommands(text: str) -> list[str]:
        listed = re.search(r"^(?:SUBCOMMANDS|Subcommands):\n(.*?)(?:\n\n|\n\S|\Z)", text, re.DOTALL | re.MULTILINE)
        return re.findall(r"^  (\S+)", listed.group(1), re.MULTILINE) if listed else []

    page = ["# The program wavejit", "", "What `wavejit <subcommand> --help` prints.", ""]

    def add(*words: str) -> None:
        text = help_of(*words)
        page.extend(["#" * (1 + len(words)) + " " + " ".join(["wavejit", *words]), ""] if words else [])
        page.extend(["```text", text, "```", ""])
        for word in subcommands(text):
            add(*words, word)

    add()
    return "\n".join(page) + "\n"


def arguments_as_page() -> str:
    """Which call of Python takes which argument, what sets it in C, and what is said of it: the extension's own tables."""
    from wavejit import _documented, _family_calls, _wavejit

    signatures = {family: list(inspect.signature(kind).parameters)[1:] for family, kind in _family_calls.FAMILIES.items()}
    page = ["# Python: arguments of calls", "", "Each argument, the calls that take it, and the fields of `wavejit.h` that have its name there.", "",
            "| argument | calls | in C |", "|---|---|---|"]
    in_c: dict[str, list[str]] = {}
    for _, field, told, _, _ in _wavejit.call_fields():
        in_c.setdefault(re.split(r"[.\[]", told)[0], []).append(field)
    for name in dict.fromkeys(name for names in signatures.values() for name in names):
        fields = ", ".join(f"`{field}`" for field in dict.fromkeys(in_c.get(name, [])))
        page.append(f"| `{name}` | {', '.join(f'`{family}`' for family, names in signatures.items() if name in names)} | {fields} |")
    for family in signatures:
        page += ["", f"## {family}", ""]
        for heading, text in _documented.rows_of(family):
            page += [f"- `{heading}`: " + text.replace("\n", " ")]
    return "\n".join(page) + "\n"


def sentences() -> dict[str, str]:
    """What docs/README.md says of each page in its tables."""
    said = {}
    for line in (TREE / "docs" / "README.md").read_text(encoding="utf-8").splitlines():
        if row := re.fullmatch(r"\| (\[.*\)) \| (.*) \|", line):
            for target in re.findall(r"\]\(([^)#]+)\.md\)", row.group(1)):
                said[str((TREE / "docs" / target).resolve().relative_to(TREE))] = row.group(2)
    return said


def index_of(pages: list[pathlib.Path]) -> str:
    named = {name for names in MENU.values() for name in names}
    there = {str(page.with_suffix("")) for page in pages}
    text = ["# wavejit", "", "Attention kernels for AMD GPUs, emitted at the first call that needs them.",
            "They have run on the simulated GPU only, which is part of this project; never on silicon.", "",
            "[What it is, and the first two commands](README.md)", ""]
    others = sorted(name for name in there if name not in named and name != "README")
    if homeless := [name for name in others if not name.startswith(ROOMS)]:
        raise SystemExit(f"{', '.join(homeless)}: no caption of the menu has it; MENU in scripts/docs_site.py names the pages for readers")
    said = sentences()
    menu = {**MENU, "Rooms of the source": others}
    for caption, names in menu.items():
        present = [name for name in names if name in there or name.startswith("reference/")]
        text += ["```{toctree}", f":caption: {caption}", ":hidden:", "", *present, "```", "", f"## {caption}", ""]
        text += [f"- [](/{name}.md)" + (f": {said[name]}" if name in said else "") for name in present] + [""]
    text += ["```{toctree}", ":hidden:", "", "README", "```", ""]
    return "\n".join(text)


def prepare(source: pathlib.Path, program: pathlib.Path) -> None:
    shutil.rmtree(source, ignore_errors=True)
    pages = pages_of_the_tree()
    known = set(pages)
    for page in pages:
        to = source / page
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(with_links_of_the_site((TREE / page).read_text(encoding="utf-8"), page, known), encoding="utf-8")
    for picture in (TREE / "docs" / "pictures").iterdir():
        to = source / "docs" / "pictures" / picture.name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, to)
    reference = source / "reference"
    reference.mkdir()
    (reference / "c.md").write_text(header_as_page("C reference", "include/wavejit/wavejit.h", "c"), encoding="utf-8")
    (reference / "cpp.md").write_text(header_as_page("C++ reference", "include/wavejit/wavejit.hpp", "cpp"), encoding="utf-8")
    (reference / "simgpu.md").write_text(header_as_page("The simulated GPU's C reference", "include/wavejit/simgpu.h", "c"), encoding="utf-8")
    for name, (title, module) in PYTHON_PAGES.items():
        (reference / f"{name}.md").write_text(PYTHON_PAGE.format(title=title, module=module), encoding="utf-8")
    (reference / "arguments.md").write_text(arguments_as_page(), encoding="utf-8")
    (reference / "program.md").write_text(program_as_page(program), encoding="utf-8")
    (source / "index.md").write_text(index_of(pages), encoding="utf-8")


def remove_old_pages(html: pathlib.Path, source: pathlib.Path) -> None:
    """A page that left the tree leaves the site. Sphinx keeps it; what it makes of itself lies at the top."""
    for page in html.rglob("*/*.html"):
        if not (source / page.relative_to(html)).with_suffix(".md").exists():
            page.unlink()


def main() -> None:
    folder = pathlib.Path(sys.argv[1]).resolve()
    prepare(folder / "source", pathlib.Path(sys.argv[2]).resolve())
    remove_old_pages(folder / "html", folder / "source")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--jobs", "2", "-c", TREE / "docs" / "site",
               "-d", folder / "doctrees", folder / "source", folder / "html"]
    if subprocess.run([str(word) for word in command], check=False).returncode != 0:
        raise SystemExit("docs: the site has warnings, or was not made")
    print(folder / "html" / "index.html")


if __name__ == "__main__":
    main()
