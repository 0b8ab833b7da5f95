#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the rules of the tree that a compiler does not: who may include whom, where the environment is read, where
architecture names may stand, which files know LLVM, which know a kernel family by name, words of another dialect than
the tree's, and how long a Python file of the package is. Prints one line a violation and exits 1 if there is any.

    rules.py <source root>            check the tree
    rules.py --self-test              show that each rule can fail
"""
import pathlib
import re
import sys

# room: a folder of the source -> folders whose headers it may include (a folder may always include its own)
ALLOWED = {
    "include": set(),
    # words that people type: the one folder of src/ that the program knows, too
    "src/vocabulary": set(),
    "src/targets": set(),
    "src/boards": {"src/targets", "src/vocabulary"},
    "src/isa": {"src/targets"},
    "src/timing": {"src/targets"},
    "src/analysis": {"src/simgpu", "src/timing", "src/boards", "src/isa", "src/targets"},
    "src/hip_abi": set(),
    "src/system": set(),
    "src/cache": {"src/system"},
    "src/remote": {"src/system"},
    "src/simgpu": {"src/targets", "src/boards", "src/isa", "src/timing", "src/hip_abi", "src/vocabulary", "include"},
    # what a family is to the rest: its kernels, its calls, its emission (the only one of the three that knows LLVM)
    "src/families/kernel": {"include"},
    "src/families/call": {"src/families/kernel", "src/boards", "src/targets", "src/vocabulary", "include"},
    "src/families/emit": {"src/families/kernel", "src/targets"},
    # a family's kernel/ and call/: what a kernel is, what a call is. No LLVM, no HIP
    "templates/kernel": {"src/families/kernel", "src/targets", "include"},
    "templates/call": {"templates/kernel", "src/families/kernel", "src/families/call", "src/boards", "src/targets", "src/timing", "include"},
    "templates/emit": {"templates/kernel", "src/families/kernel", "src/families/emit", "src/codegen", "src/targets"},
    # a family's api/: its C functions, on top of the engine
    "templates/api": {"src/boards", "templates/kernel", "templates/call", "src/families/kernel", "src/families/call", "src/runtime", "src/hip_abi", "include"},
    "src/codegen": {"src/system", "src/targets", "src/families/kernel", "src/families/emit"},
    "src/codegen/language": {"src/targets"},
    "src/runtime": {"src/cache", "src/system", "src/boards", "src/targets", "src/families/kernel", "src/families/call", "src/hip_abi", "src/vocabulary", "include"},
    "tools": {"src/vocabulary", "include"},
    # a family's half of the program, behind tools/family.h
    "templates/program": {"include", "tools", "templates/kernel", "templates/call", "src/families/kernel", "src/families/call", "src/targets"},
    "examples": {"include"},
    "python": {"include"},
}
# Folders within a room (a folder of ALLOWED), and the folders of that room whose headers each may include, or a folder of such folders; "":
# files beside the folders. A folder within one that is named belongs to it. A room that is not listed has no order within it.
INNER = {
    "src/runtime": {
        "settings": set(),
        "libraries": {"settings"},
        "kernels": {"settings", "libraries"},
        "call": {"settings", "libraries", "kernels"},
        "offline": {"settings", "libraries", "kernels"},
        "": {"settings", "libraries", "kernels", "call", "offline"},  # the C ABI
    },
    # The machine from the bottom up, its checkers beside one another, its front ends; "": the C interface, and what sits beside a launch.
    "src/simgpu": {
        "process": set(),
        "machine/instruction": set(),
        "machine/numerics": set(),
        "machine/wave": {"machine/instruction"},
        "machine/decode": {"machine/instruction", "machine/wave"},
        "machine/vector": {"process", "machine/instruction", "machine/numerics", "machine/wave", "machine/decode"},
        "machine/matrix": {"process", "machine/instruction", "machine/numerics", "machine/wave", "machine/decode"},
        "machine/allocations": {"process", "machine/numerics"},
        "machine/loader": {"process", "machine/decode", "machine/allocations"},
        "machine/launch": {"process", "machine/instruction", "machine/wave", "machine/decode", "machine/matrix", "machine/allocations", "machine/loader"},
        "machine/scalar": {"machine/instruction", "machine/numerics", "machine/wave", "machine/decode", "machine/launch"},
        "machine/memory": {"process", "machine/instruction", "machine/wave", "machine/decode", "machine/allocations", "machine/launch"},
        "machine/compile": {"process", "machine/instruction", "machine/numerics", "machine/wave", "machine/decode", "machine/vector"},
        "machine/run": {"process", "machine/numerics", "machine/wave", "machine/decode", "machine/launch", "machine/compile"},
        "machine/device": {"process", "machine"},
        "checkers/facts": {"machine"},
        "checkers/checks": {"process", "machine", "checkers/facts"},
        "checkers/clock": {"process", "machine", "checkers/facts"},
        "front_ends/queues": {"process", "machine"},
        "front_ends/hip": {"process", "machine"},
        "front_ends/thunk": {"process", "machine", "front_ends/queues"},
        "front_ends/model": {"process", "machine", "front_ends/queues", "front_ends/thunk"},
        "": {"process", "machine", "checkers"},
    },
    "tools": {
        "": set(),
        "invariance": {""},
        "sim": {""},
        "variants": {""},
        "tune": {""},
        "sweep": {""},
        "profile": {""},
        "doctor": {"", "sweep", "profile"},
        "commands": {"", "invariance", "sim", "variants", "tune", "sweep", "profile", "doctor"},
    },
}
# Python's modules of the package know each other one way, in annotations as in code, and none of them is long.
PYTHON_PACKAGE = "python/wavejit/"
PYTHON_LINES = 450  # of one file: one idea is not longer
PYTHON_IMPORT = re.compile(r"^\s*from (\.+)([\w.]*) import ([^\n#]+)|^\s*import wavejit\.([\w.]+)", re.M)
# single headers that may be included from outside their room's rule: plain C interfaces between two libraries
INTERFACES = {
    "src/codegen/codegen_api.h": {"src/runtime"},
    "src/codegen/generator_id.h": {"src/runtime"},
    "src/remote/remote_api.h": {"src/runtime"},
}
# schedules are data, without LLVM: a family's half of the program may print them
SCHEDULES = re.compile(r"^templates/[a-z_]+/emit/[a-z_]*schedule\.h$")
# files that may read the environment: one a library; and those that hand it on to another program
ENVIRONMENT_FILES = re.compile(r"^(src/(runtime/settings|simgpu/process)/config\.cpp|src/simgpu/front_ends/thunk/driver_files\.cpp|src/codegen/isolated\.cpp|tools/commands/sim\.cpp|tests/.*|bench/.*)$")
ENVIRONMENT = re.compile(r"\b(getenv|secure_getenv|environ)\b")
ARCHITECTURE_NAME = re.compile(r"\"gfx[0-9a-f]+\"")
ARCHITECTURE_COMPARE = re.compile(r"([!=]=\s*\"gfx[0-9a-f]+)|(\"gfx[0-9a-f]+[a-z:+-]*\"\s*[!=]=)|(starts_with\(\"gfx)")
# What is accepted comes from the tables, so that a message never lacks the newest row.
TARGET_LIST = re.compile(r"gfx[0-9a-f]+(?:,|/| and | or |, and |, or |, )(?:sim:)?gfx[0-9a-f]")
ADJACENT_STRINGS = re.compile(r'"\s*"')
LLVM_INCLUDE = re.compile(r'#include\s+["<](llvm|lld|llvm-c|clang)/')
LLVM_ROOMS = re.compile(r"^(src/codegen/|src/families/emit/|src/simgpu/machine/decode/|src/simgpu/machine/compile/host/|python/portable/|templates/[a-z_]+/emit/|tests/)")
# what an instruction is stands in its record (src/simgpu/machine/instruction/record.h): nobody else reads how it is spelled
SPELLING = re.compile(
    r"\bmnemonic\s*(\.(starts_with|ends_with|contains|find|substr|remove_prefix|remove_suffix)\b|[!=]=)"
    r"|\.(starts_with|ends_with|contains)\(\"(v|s|ds|buffer|global|flat|scratch)_"
    r"|[!=]=\s*\"(v|s|ds|buffer|global|flat|scratch)_[a-z0-9]")
SPELLING_ROOMS = re.compile(r"^src/(simgpu|analysis)/")
# splits the encoding's suffix off, and looks the rest up
SPELLING_READERS = re.compile(r"^src/simgpu/machine/decode/(dual|function|disassembler|rdna4_names)\.cpp$")
# Lanes, rows and registers of a wave come from the target (src/targets/wave_shape.h, the matrix row): emission names
# other numbers of their size by what they are. 5 and 6 count where they shift.
EMISSION = re.compile(r"^(templates/[a-z_]+/emit|src/codegen/language)/")
LANE_NUMBER = re.compile(
    r"(?<![\w.])(?:15|16|31|32|63|64)(?![\w.])|(?:\bconstant\(|<< |>> )[56]\b|\bCreate(?:LShr|AShr|Shl)\([^;]*,\s*[56]\)")
NO_LANE_NUMBER = re.compile(r"\bconstexpr [\w:]+ \w+_(?:bytes|bits|bit|slots|keys|threads|count) = \d+;|\bhead_dim\w*\)? (?:[=!<>]=|[<>]) 64\b")
HIP_INCLUDE = re.compile(r'#include\s+["<]hip_abi/')
# Rooms that know families only through src/families or tools/family.h: none of them has a family's name, nor a header of
# its folder.
ROOMS_WITHOUT_FAMILIES = ["src/runtime/", "src/codegen/", "src/families/", "templates/attention/", "tools/"]
# Folders of templates/ that families share (USES, templates/CMakeLists.txt). One family's folder is closed to another's.
SHARED_FOLDERS = {"attention"}
# the tree's one dialect; C interfaces (read by C compilers, or implementing what one declares) and device code keep theirs
DIALECT = {
    "an integer type without std::": re.compile(r"(?<![:\w.])(u?int(8|16|32|64|ptr)_t|size_t|ptrdiff_t)\b"),
    "[[nodiscard]]": re.compile(r"\[\[nodiscard"),
}
# Releases are compiled with NDEBUG and `./dev test` without: no code may know.
ONLY_WITHOUT_NDEBUG = re.compile(r"(?<!static_)\bassert\(|\bNDEBUG\b")
DOC_COMMENT = re.compile(r"^[^\n\"]*///", re.M)
C_FILES = re.compile(
    r"^(include/|src/hip_abi/|src/[a-z_]+/[a-z_]+_api\.(h|cpp)$|templates/[a-z_]+/api/c_api\.cpp$|tests/example_family/[a-z_]+/api/|tests/hip_kernels/kernels/|tests/hip_program/"
    r"|tests/runtime/fake_codegen\.cpp$|bench/empty_hip\.cpp$)")
STRINGS = re.compile(r'R"(?P<d>[^()\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"', re.S)
INCLUDE = re.compile(r'^\s*#include\s+"([^"]+)"', re.M)


def room_of(path: str) -> str | None:
    if path.startswith("include/"):
        return "include"
    if re.match(r"templates/[a-z_]+/program/", path):
        return "templates/program"
    if path.startswith("templates/"):
        for half, room in (("/kernel/", "templates/kernel"), ("/call/", "templates/call"), ("/emit/", "templates/emit"), ("/api/", "templates/api")):
            if half in path:
                return room
        return None
    if path.startswith("src/codegen/language/"):
        return "src/codegen/language"
    families = re.match(r"src/families/(kernel|call|emit)/", path)
    if families:
        return families.group(0)[:-1]
    match = re.match(r"(src/[a-z_]+|tools|examples|python)/", path)
    return match.group(1) if match else None


def inner_of(room: str, path: str) -> str:
    """The folder of a room's order that a file stands in; the file's own where none is named, "" beside all of them."""
    folders = path[len(room) + 1 :].split("/")[:-1]
    named = ("/".join(folders[:depth]) for depth in range(len(folders), 0, -1))
    return next((folder for folder in named if folder in INNER[room]), "/".join(folders))


def python_imports(path: str, text: str, modules: set[str]) -> set[str]:
    """The modules of the package that one of them imports, in whatever way."""
    package = path[len(PYTHON_PACKAGE) : -3].split("/")[:-1]
    imported = set()
    for dots, name, words, whole in PYTHON_IMPORT.findall(text):
        base = whole.split(".") if whole else package[: len(package) - len(dots) + 1] + [part for part in name.split(".") if part]
        for word in [""] if whole else [word.split(" as ")[0].strip(" ()") for word in words.split(",")]:
            for parts in ([*base, word] if word else base, base):
                if (module := "/".join(parts)) in modules:
                    imported.add(module)
                    break
    return imported


def python_loops(files: dict[str, str]) -> list[str]:
    """Modules of the package that reach themselves through their imports; a package's own face imports all of it."""
    paths = {path[len(PYTHON_PACKAGE) : -3]: path for path in files if path.startswith(PYTHON_PACKAGE) and path.endswith(".py") and not path.endswith("/__init__.py")}
    knows = {module: python_imports(path, files[path], set(paths)) - {module} for module, path in paths.items()}

    def reached(module: str) -> set[str]:
        seen, waiting = set(), [module]
        while waiting:
            for next_one in knows[waiting.pop()] - seen:
                seen.add(next_one)
                waiting.append(next_one)
        return seen

    return [f"{paths[module]}: imports itself again through {', '.join(sorted(other for other in reached(module) if module in reached(other)))}"
            for module in sorted(paths) if module in reached(module)]


def resolve(include: str, sources: set[str], path: str) -> str | None:
    beside = str(pathlib.PurePosixPath(path).parent / include)
    for candidate in (f"src/{include}", include, f"include/{include}", beside):
        if candidate in sources:
            return candidate
    return None


def folder_of(path: str) -> str | None:
    """The folder of templates/ that a file stands in: a family's, or one that they share."""
    match = re.match(r"templates/([a-z_0-9]+)/", path)
    return match.group(1) if match else None


def family_names(files: dict[str, str]) -> set[str]:
    """The folders of templates/, and the kernels that they have beside the one of their own name."""
    names = set()
    for path, text in files.items():
        match = re.match(r"templates/([a-z_0-9]+)/(kernel|call|emit|api|program)/", path)
        if not match or match.group(1) in SHARED_FOLDERS:
            continue
        names.add(match.group(1))
        names.update(re.findall(r'string_view kernel = "([a-z_0-9]+)"', text))
    return names


def violations(files: dict[str, str]) -> list[str]:
    found = python_loops(files)
    found += [f"{path}: {lines} lines; accepted: up to {PYTHON_LINES}, so give each idea a file" for path, text in sorted(files.items())
              if path.startswith(PYTHON_PACKAGE) and (lines := text.count("\n")) > PYTHON_LINES]
    files = {path: text for path, text in files.items() if not path.endswith(".py")}
    sources = set(files)
    families = family_names(files)
    family_word = re.compile(r"\b\w*(" + "|".join(sorted(families)) + r")\w*") if families else None
    for path, text in sorted(files.items()):
        room = room_of(path)
        if room is not None:
            for include in INCLUDE.findall(text):
                target = resolve(include, sources, path)
                if target is None:
                    continue
                folder, of_family = folder_of(path), folder_of(target)
                if of_family is not None and of_family not in SHARED_FOLDERS and folder is not None and folder != of_family:
                    found.append(f"{path}: may not include {target}: what two families need alike stands in templates/attention")
                    continue
                other = room_of(target)
                if other == room and room in INNER:
                    inside, inner = inner_of(room, path), inner_of(room, target)
                    if inside not in INNER[room]:
                        found.append(f"{path}: {room}/{inside} has no place in the order of {room} (INNER)")
                    elif inner != inside and not INNER[room][inside] & {inner, inner.partition("/")[0]}:
                        found.append(f"{path}: {room}/{inside} may not include {target}")
                if other == room or other is None:
                    continue
                if room in INTERFACES.get(target, set()):
                    continue
                if room == "templates/program" and SCHEDULES.match(target):
                    continue
                # the kernel language is the lower half of src/codegen
                if other == "src/codegen/language" and room in ("src/codegen", "templates/emit"):
                    continue
                if other == "src/codegen" and room == "templates/emit":
                    found.append(f"{path}: emission may include src/codegen/language only, not {target}")
                    continue
                if other not in ALLOWED[room]:
                    found.append(f"{path}: {room} may not include {target} ({other})")
        if family_word is not None and any(path.startswith(without) for without in ROOMS_WITHOUT_FAMILIES):
            for word in sorted({match.group(0) for match in family_word.finditer(strip_comments(text))}):
                found.append(f"{path}: knows a family by name ({word}); what it needs stands behind src/families or tools/family.h")
        if room in ("templates/kernel", "templates/call") and HIP_INCLUDE.search(text):
            found.append(f"{path}: what a call is may not know HIP")
        if not path.startswith("tests/") and not path.startswith("bench/"):
            if ENVIRONMENT.search(strip_comments(text)) and not ENVIRONMENT_FILES.match(path):
                found.append(f"{path}: reads the environment; only a library's config.cpp may")
            if ARCHITECTURE_COMPARE.search(strip_comments(text)) and not path.startswith("src/targets/"):
                found.append(f"{path}: compares an architecture's name; ask the target table for a capability")
            if any(TARGET_LIST.search(literal.group(0)) for literal in STRINGS.finditer(ADJACENT_STRINGS.sub("", strip_comments(text)))):
                found.append(f"{path}: a text with a fixed list of targets; src/boards/known_products.h and tools/targets.h have them from the table")
            if LLVM_INCLUDE.search(text) and not LLVM_ROOMS.match(path):
                found.append(f"{path}: includes LLVM outside the folders that may")
            if room in ("templates/kernel", "templates/call") and LLVM_INCLUDE.search(text):
                found.append(f"{path}: what a kernel or a call is may not know LLVM")
        if EMISSION.match(path):
            code = NO_LANE_NUMBER.sub("", STRINGS.sub('""', strip_comments(text)))
            found += [f"{path}: {number.group(0)} stands in emission; a target's lanes, rows and registers come from its WaveShape, and a constant of bytes or bits says so in its name"
                      for number in LANE_NUMBER.finditer(code)]
        if ONLY_WITHOUT_NDEBUG.search(STRINGS.sub('""', strip_comments(text))):
            found.append(f"{path}: code that NDEBUG changes; what ships would not be what tests compile")
        if SPELLING_ROOMS.match(path) and not SPELLING_READERS.match(path) and SPELLING.search(strip_comments(text)):
            found.append(f"{path}: reads how a mnemonic is spelled; its record says what it is (src/simgpu/machine/instruction/record.h)")
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
    for top in ("include", "src", "templates", "tools", "examples", "python", "tests", "bench"):
        for path in (root / top).rglob("*"):
            if path.suffix in (".h", ".hpp", ".cpp", ".c"):
                files[str(path.relative_to(root))] = path.read_text(encoding="utf-8")
    for path in (root / PYTHON_PACKAGE).rglob("*.py"):
        files[str(path.relative_to(root))] = path.read_text(encoding="utf-8")
    return files


def self_test() -> int:
    bad = {
        "src/cache/a.cpp": '#include "runtime/call/engine.h"\n',
        "src/runtime/call/engine.h": '#include "codegen/service.h"\n',
        "src/codegen/service.h": '#include "simgpu/machine/wave/wave.h"\n',
        "src/simgpu/machine/wave/wave.h": 'auto x = getenv("A");\n',
        "src/runtime/route.cpp": 'if (target.id == "gfx950") {}\n',
        "src/runtime/list.cpp": 'auto text = "accepted: gfx942, "\n            "gfx950";\n',
        "src/runtime/llvm.cpp": '#include <llvm/IR/Module.h>\n',
        "tools/run.cpp": '#include "runtime/call/engine.h"\n',
        "tools/tune/trial.cpp": '#include "templates/tested_family/program/case.h"\n',
        "tools/sweep/case.cpp": '#include "templates/tested_family/kernel/parameters.h"\n',
        "tools/sweep/name.cpp": 'auto name = "second_name";\n',
        "templates/tested_family/program/case.h": '#include "runtime/call/engine.h"\n',
        "templates/tested_family/program/emit.cpp": '#include "templates/tested_family/emit/emit.h"\n',
        "templates/tested_family/program/llvm.cpp": '#include <llvm/IR/Module.h>\n',
        "templates/tested_family/emit/emit.h": '#include "codegen/service.h"\n',
        "examples/engine/main.cpp": '#include "runtime/call/engine.h"\n',
        "python/bindings/engine.cpp": '#include "runtime/call/engine.h"\n',
        "python/bindings/options.cpp": 'auto device = getenv("WAVEJIT_DEVICE");\n',
        "templates/tested_family/kernel/parameters.h": '#include "llvm/IR/Module.h"\n',
        "templates/tested_family/emit/emit.cpp": '#include "codegen/service.h"\n',
        "templates/tested_family/call/plan.cpp": '#include "hip_abi/hip_functions.h"\n',
        "templates/tested_family/call/run.cpp": '#include "runtime/call/engine.h"\n',
        "templates/tested_family/kernel/limits.h": '#include "templates/tested_family/call/run.h"\n',
        "templates/tested_family/call/run.h": '#include "templates/long_name/call/spec.h"\n',
        "templates/attention/emit/tiles.h": '#include "templates/tested_family/kernel/limits.h"\n',
        "templates/tested_family/emit/lanes_a.cpp": "Value* row = ir.CreateAnd(lane, constant(31));\n",
        "templates/tested_family/emit/lanes_b.cpp": "Value* group = ir.CreateLShr(lane, constant(5));\n",
        "templates/tested_family/emit/lanes_c.cpp": "Value* wave = ir.CreateLShr(thread, 6);\n",
        "templates/tested_family/emit/lanes_d.cpp": "constexpr int block_dwords = 16;\n",
        "templates/attention/emit/lanes_e.h": "const int waves = threads / 64;\n",
        "src/codegen/language/lanes_f.cpp": "if (kernel.target().wave_size == 32) {}\n",
        "templates/attention/kernel/words.h": 'auto word = "second_name";\n',
        "src/families/kernel/spec.h": '#include "families/call/family.h"\n',
        "src/families/call/family.h": '#include "templates/attention/kernel/words.h"\n',
        "templates/long_name/call/spec.h": 'static constexpr std::string_view kernel = "second_name";\n#include "runtime/call/engine.h"\n',
        "src/runtime/call.cpp": "wavejit_long_name(engine);\n",
        "src/codegen/emit.cpp": 'if (word == "second_name") {}\n',
        "src/families/call/list.cpp": '#include "templates/long_name/call/spec.h"\n',
        "src/simgpu/spelling_a.cpp": 'if (instruction.mnemonic.starts_with(head)) {}\n',
        "src/simgpu/spelling_b.cpp": 'if (name.starts_with("v_cvt_pk_")) {}\n',
        "src/analysis/spelling_c.cpp": 'if (name == "s_waitcnt") {}\n',
        "src/simgpu/dialect_a.h": "uint32_t bits = 0;\n",
        "src/simgpu/dialect_b.h": "[[nodiscard]] int bits();\n",
        "src/simgpu/dialect_c.h": "int bits;  ///< how many\n",
        "src/cache/promise_a.cpp": "assert(fresh);\n",
        "src/cache/promise_b.cpp": "#ifdef NDEBUG\n#endif\n",
        "src/runtime/settings/config.h": '#include "runtime/call/call.h"\n',
        "src/runtime/offline/list.h": '#include "runtime/call/call.h"\n',
        "src/runtime/call/call.h": '#include "runtime/elsewhere/a.h"\n',
        "src/runtime/elsewhere/a.h": '#include "runtime/settings/config.h"\n',
        "src/simgpu/process/process.cpp": '#include "simgpu/machine/wave/wave.h"\n',
        "src/simgpu/machine/decode/function.cpp": '#include "simgpu/checkers/checks/pace.h"\n',
        "src/simgpu/machine/decode/inner/function.cpp": '#include "simgpu/checkers/checks/pace.h"\n',
        "src/simgpu/checkers/checks/pace.h": '#include "simgpu/checkers/clock/grid.h"\n',
        "src/simgpu/checkers/clock/grid.h": '#include "simgpu/front_ends/hip/stream.h"\n',
        "src/simgpu/front_ends/hip/stream.h": '#include "simgpu/checkers/checks/pace.h"\n',
        "src/simgpu/machine/elsewhere.cpp": '#include "simgpu/machine/wave/wave.h"\n',
        "tools/commands/report.h": '#include "runtime/call/engine.h"\n',
        "tools/report.cpp": '#include "tools/sweep/list.h"\n',
        "tools/sweep/list.h": '#include "tools/profile/page.h"\n',
        "tools/profile/page.h": '#include "tools/commands/report.h"\n',
        "python/wavejit/_first.py": "from ._second import Second\n",
        "python/wavejit/_second.py": "if TYPE_CHECKING:\n    from . import _third, cache\n",
        "python/wavejit/_third.py": "def f():\n    from ._first import First\n",
        "python/wavejit/torch/_inner.py": "from .._outer import Outer\n",
        "python/wavejit/_outer.py": "from .torch import _inner\n",
        "python/wavejit/_long.py": "first = 1\n" * (PYTHON_LINES + 1),
    }
    found = violations(bad)
    for path in bad:
        if not any(line.startswith(path + ":") for line in found):
            print(f"self-test: no rule fires on {path}")
            return 1
    good = {
        "src/runtime/a.cpp": '#include "cache/entry.h"\n// getenv is read in config; long_name is a family\n',
        "src/cache/entry.h": "",
        "templates/long_name/call/spec.h": "",
        "templates/long_name/api/c_api.cpp": '#include "runtime/call/engine.h"\n#include "templates/long_name/call/spec.h"\n',
        "src/runtime/call/engine.h": "",
        "src/simgpu/machine/compile/host/lanes.cpp": '#include "simgpu/machine/wave/wave.h"\n',
        "src/simgpu/machine/wave/wave.h": "",
        "templates/tested_family/emit/numbers.cpp": 'constexpr int unit_bytes = 16;\nbool small = spec.head_dim_v <= 64;\nauto asm_line = "s_nop 15";  // 32 rows\nValue* half = ir.CreateShl(bits, bf16_bits);\n',
        "src/simgpu/seats.cpp": '#include "simgpu/checkers/clock/grid.h"\n',
        "src/simgpu/checkers/clock/grid.h": '#include "simgpu/machine/wave/wave.h"\n',
        "src/simgpu/a.cpp": 'std::uint32_t bits;  // not uint32_t\nauto text = R"(size_t)";\n',
        "src/simgpu/machine/scalar/b.cpp": 'add("s_waitcnt", nothing, acts(Action::wait));  // mnemonic == "s_nop"\n',
        "src/codegen/codegen_api.h": "uint32_t abi;\n",
        "src/cache/promise.cpp": 'static_assert(sizeof(int) == 4);\nexpected_assert(1);\n',
        "src/runtime/c_api.cpp": '#include "runtime/call/engine.h"\n',
        "src/runtime/call/engine.h": '#include "runtime/settings/config.h"\n',
        "src/runtime/settings/config.h": "",
        "tools/commands/sweep.cpp": '#include "tools/sweep/list.h"\n',
        "tools/sweep/list.h": '#include "tools/exit_code.h"\n',
        "tools/exit_code.h": "",
        "python/wavejit/__init__.py": "from ._first import First\n",
        "python/wavejit/_first.py": "from . import _second\n",
        "python/wavejit/_second.py": "import wavejit\n" * PYTHON_LINES,
    }
    if violations(good):
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
