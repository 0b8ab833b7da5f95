#!/usr/bin/env python3
"""Checks the rules of the tree that a compiler does not: who may include whom, where the environment is read, where
architecture names may stand, which files know LLVM, and words of another dialect than the tree's. Prints one line a violation and exits 1 if there is any.

    rules.py <source root>            check the tree
    rules.py --self-test              show that each rule can fail
"""
import pathlib
import re
import sys

# room -> rooms whose headers it may include (a room may always include itself)
ALLOWED = {
    "include": set(),
    "src/targets": set(),
    "src/timing": {"src/targets"},
    "src/analysis": {"src/simgpu", "src/timing", "src/targets"},
    "src/hip_abi": set(),
    "src/system": set(),
    "src/cache": {"src/system"},
    "src/remote": {"src/system"},
    "src/simgpu": {"src/targets", "src/timing", "src/hip_abi", "include"},
    "templates/parameters": {"src/targets"},
    "templates/emit": {"templates/parameters", "src/codegen", "src/targets"},
    "src/codegen": {"src/system", "src/targets", "templates/parameters", "templates/emit"},
    "src/codegen/language": {"src/targets"},
    "src/runtime": {"src/cache", "src/targets", "templates/parameters", "src/hip_abi", "include"},
    "tools": {"include", "tools/tune"},
    # it searches the templates' parameters and writes their defaults: it must know which there are
    "tools/tune": {"include", "tools", "templates/parameters", "src/targets"},
    "examples": {"include"},
}
# single headers that may be included from outside their room's rule: plain C interfaces between two libraries
INTERFACES = {
    "src/codegen/codegen_api.h": {"src/runtime"},
    "src/codegen/generator_id.h": {"src/runtime"},
    "src/remote/remote_api.h": {"src/runtime"},
}
# files that may read the environment: one a library; and the one that hands it on to a child process
ENVIRONMENT_FILES = re.compile(r"^(src/(runtime|simgpu)/config\.cpp|src/codegen/isolated\.cpp|tests/.*|bench/.*)$")
ENVIRONMENT = re.compile(r"\b(getenv|secure_getenv|environ)\b")
ARCHITECTURE_NAME = re.compile(r"\"gfx[0-9a-f]+\"")
ARCHITECTURE_COMPARE = re.compile(r"([!=]=\s*\"gfx[0-9a-f]+)|(\"gfx[0-9a-f]+[a-z:+-]*\"\s*[!=]=)|(starts_with\(\"gfx)")
LLVM_INCLUDE = re.compile(r'#include\s+["<](llvm|lld|llvm-c|clang)/')
LLVM_ROOMS = re.compile(r"^(src/codegen/|src/simgpu/decode/|src/simgpu/code_object/|src/simgpu/compile/host/|templates/[a-z_]+/(emit/|emit\.)|tests/)")
# the tree's one dialect; C interfaces (read by C compilers, or implementing what one declares) and device code keep theirs
DIALECT = {
    "an integer type without std::": re.compile(r"(?<![:\w.])(u?int(8|16|32|64|ptr)_t|size_t|ptrdiff_t)\b"),
    "[[nodiscard]]": re.compile(r"\[\[nodiscard"),
}
DOC_COMMENT = re.compile(r"^[^\n\"]*///", re.M)
C_FILES = re.compile(
    r"^(include/|src/hip_abi/|src/[a-z_]+/[a-z_]+_api\.(h|cpp)$|tests/hip_kernels/kernels/|tests/hip_program/"
    r"|tests/runtime/fake_codegen\.cpp$|bench/empty_hip\.cpp$)")
STRINGS = re.compile(r'R"(?P<d>[^()\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"', re.S)
INCLUDE = re.compile(r'^\s*#include\s+"([^"]+)"', re.M)


def room_of(path: str) -> str | None:
    if path.startswith("include/"):
        return "include"
    if path.startswith("templates/"):
        return "templates/parameters" if "/call/" in path or "families/spec." in path else "templates/emit"
    if path.startswith("src/codegen/language/"):
        return "src/codegen/language"
    match = re.match(r"(src/[a-z_]+|tools/tune|tools|examples)/", path)
    return match.group(1) if match else None


def resolve(include: str, sources: set[str], path: str) -> str | None:
    beside = str(pathlib.PurePosixPath(path).parent / include)
    for candidate in (f"src/{include}", include, f"include/{include}", beside):
        if candidate in sources:
            return candidate
    return None


def violations(files: dict[str, str]) -> list[str]:
    found = []
    sources = set(files)
    for path, text in sorted(files.items()):
        room = room_of(path)
        if room is not None:
            for include in INCLUDE.findall(text):
                target = resolve(include, sources, path)
                if target is None:
                    continue
                other = room_of(target)
                if other == room or other is None:
                    continue
                if room in INTERFACES.get(target, set()):
                    continue
                # the kernel language is the lower half of src/codegen
                if other == "src/codegen/language" and room in ("src/codegen", "templates/emit"):
                    continue
                if other == "src/codegen" and room == "templates/emit":
                    found.append(f"{path}: emission may include src/codegen/language only, not {target}")
                    continue
                if other not in ALLOWED[room]:
                    found.append(f"{path}: {room} may not include {target} ({other})")
        if not path.startswith("tests/") and not path.startswith("bench/"):
            if ENVIRONMENT.search(strip_comments(text)) and not ENVIRONMENT_FILES.match(path):
                found.append(f"{path}: reads the environment; only a library's config.cpp may")
            if ARCHITECTURE_COMPARE.search(strip_comments(text)) and not path.startswith("src/targets/"):
                found.append(f"{path}: compares an architecture's name; ask the target table for a capability")
            if LLVM_INCLUDE.search(text) and not LLVM_ROOMS.match(path):
                found.append(f"{path}: includes LLVM outside the rooms that may")
            if room == "templates/parameters" and LLVM_INCLUDE.search(text):
                found.append(f"{path}: parameters may not know LLVM")
        if not C_FILES.match(path) and not path.endswith(".c"):
            code = STRINGS.sub('""', strip_comments(text))
            found += [f"{path}: {what}; the tree's style has it otherwise" for what, word in DIALECT.items() if word.search(code)]
            if DOC_COMMENT.search(text):
                found.append(f"{path}: a comment with three slashes; the tree's have two")
    return found


def strip_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)


def tree(root: pathlib.Path) -> dict[str, str]:
    files = {}
    for top in ("include", "src", "templates", "tools", "examples", "tests", "bench"):
        for path in (root / top).rglob("*"):
            if path.suffix in (".h", ".hpp", ".cpp", ".c"):
                files[str(path.relative_to(root))] = path.read_text(encoding="utf-8")
    return files


def self_test() -> int:
    bad = {
        "src/cache/a.cpp": '#include "runtime/engine.h"\n',
        "src/runtime/engine.h": '#include "codegen/service.h"\n',
        "src/codegen/service.h": '#include "simgpu/wave/wave.h"\n',
        "src/simgpu/wave/wave.h": 'auto x = getenv("A");\n',
        "src/runtime/route.cpp": 'if (target.id == "gfx950") {}\n',
        "src/runtime/llvm.cpp": '#include <llvm/IR/Module.h>\n',
        "tools/run.cpp": '#include "runtime/engine.h"\n',
        "tools/tune/trial.cpp": '#include "runtime/engine.h"\n',
        "tools/sweep/case.cpp": '#include "templates/x/call/parameters.h"\n',
        "examples/engine/main.cpp": '#include "runtime/engine.h"\n',
        "templates/x/call/parameters.h": '#include "llvm/IR/Module.h"\n',
        "templates/x/emit/emit.cpp": '#include "codegen/service.h"\n',
        "src/simgpu/dialect_a.h": "uint32_t bits = 0;\n",
        "src/simgpu/dialect_b.h": "[[nodiscard]] int bits();\n",
        "src/simgpu/dialect_c.h": "int bits;  ///< how many\n",
    }
    found = violations(bad)
    for path in bad:
        if not any(line.startswith(path + ":") for line in found):
            print(f"self-test: no rule fires on {path}")
            return 1
    if violations({"src/runtime/a.cpp": '#include "cache/entry.h"\n// getenv is read in config\n', "src/cache/entry.h": "",
                   "src/simgpu/a.cpp": 'std::uint32_t bits;  // not uint32_t\nauto text = R"(size_t)";\n',
                   "src/codegen/codegen_api.h": "uint32_t abi;\n"}):
        print("self-test: a rule fires on a tree that keeps them all")
        return 1
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    files = tree(pathlib.Path(sys.argv[1]))
    if len(files) < 20:
        print(f"only {len(files)} source files below {sys.argv[1]}: wrong folder?")
        return 1
    found = violations(files)
    print("\n".join(found) if found else f"{len(files)} files keep the rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
