#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the dev preset compiles is what ships: the presets release, package and wheel, and what pip builds, give the compiler
the same units. A unity build joins files, so two helpers of one name meet in one preset and not in another; `./dev test` builds dev alone.

    check_shipped_units.py <source root> <dev build> <folder to configure in>
    check_shipped_units.py --self-test

Compares which files each unit joins and the flags that each unit is compiled with, but for the optimiser's and those of symbols.
No code depends on NDEBUG (tests/architecture/rules.py), so the compiler accepts in a release what it accepts in dev.
Not compared: what the wheels have beside it (python/portable, the extension for Python 3.11), which `./dev wheel` alone compiles.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tomllib

# What decides how files are joined. A preset that ships has the words of dev.
JOINS = ["CMAKE_UNITY_BUILD", "CMAKE_UNITY_BUILD_BATCH_SIZE", "WAVEJIT_PRECOMPILED_HEADERS"]
SHIPPED = ["release", "package", "wheel"]
# What differs on purpose: the optimiser's flags, and what nanobind adds for speed and size to modules that are optimised.
ONLY_SPEED = re.compile(r"-O[0-3s]|-g[0-9]?|-DNDEBUG|-DNB_COMPACT_ASSERTIONS|-ffunction-sections|-fdata-sections|-fno-stack-protector")
# Compiled headers are held once for each level of optimisation (cmake/precompiled_headers.cmake): their headers are one list.
COMPILED_HEADER = "wavejit_precompiled_"


def variables(presets: dict[str, dict], name: str) -> dict[str, str]:
    preset = presets[name]
    inherited = variables(presets, preset["inherits"]) if "inherits" in preset else {}
    return inherited | preset.get("cacheVariables", {})


def other_joins(presets: dict[str, dict], pip: dict[str, str]) -> list[str]:
    dev = variables(presets, "dev")
    ships = {f"preset {name}": variables(presets, name) for name in SHIPPED} | {"pyproject.toml": pip}
    return [f"{who}: {word} is {words.get(word)}, in dev {dev.get(word)}"
            for who, words in ships.items() for word in JOINS if words.get(word) != dev.get(word)]


def flags(command: str, build: str) -> list[str]:
    words = shlex.split(command.replace(build, "<build>"))
    end = words.index("-o") if "-o" in words else len(words)
    return [word for word in words[:end] if not ONLY_SPEED.fullmatch(word) and not word.endswith("ccache") and COMPILED_HEADER not in word]


def units(build: pathlib.Path) -> dict[str, tuple[list[str], list[str]]]:
    """Object file -> (the files it joins, its flags)."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        source = pathlib.Path(entry["file"])
        joined = [str(source).replace(str(build), "<build>")]
        if "Unity" in source.parts:
            joined = re.findall(r'#include "([^"]+)"', source.read_text(encoding="utf-8").replace(str(build), "<build>"))
        output = entry["output"].replace(str(build), "<build>")
        if COMPILED_HEADER in output:
            continue
        found[output] = (joined, flags(entry["command"], str(build)))
    return found


def other_units(dev: dict, ships: dict) -> list[str]:
    found = []
    for output, (joined, words) in sorted(ships.items()):
        if output not in dev:
            found.append(f"{output}: dev has no such unit; it joins {', '.join(joined)}")
        elif dev[output][0] != joined:
            found.append(f"{output}: joins {', '.join(joined)}; in dev {', '.join(dev[output][0])}")
        elif dev[output][1] != words:
            other = [word for word in words if word not in dev[output][1]] + [word for word in dev[output][1] if word not in words]
            found.append(f"{output}: compiled with other flags than in dev: {' '.join(other)}")
    return found


def self_test() -> int:
    alike = {"a.o": (["x.cpp", "y.cpp"], ["clang++", "-DA"])}
    bad = [{"a.o": (["x.cpp"], ["clang++", "-DA"])}, {"b.o": (["x.cpp"], [])}, {"a.o": (["x.cpp", "y.cpp"], ["clang++", "-DB"])}]
    words = {"CMAKE_UNITY_BUILD": "ON", "CMAKE_UNITY_BUILD_BATCH_SIZE": "8", "WAVEJIT_PRECOMPILED_HEADERS": "ON"}
    presets = {name: {"cacheVariables": dict(words)} for name in ["dev", *SHIPPED]}
    presets["package"] = {"inherits": "release", "cacheVariables": {"CMAKE_UNITY_BUILD_BATCH_SIZE": "16"}}
    silent = [case for case in bad if not other_units(alike, case)]
    if silent or other_units(alike, alike) or len(other_joins(presets, {})) != 4 or flags("ccache clang++ -O2 -DNDEBUG -DA -o a.o", "/b") != ["clang++", "-DA"]:
        print("self-test: a difference is not seen, or one that is none")
        return 1
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    source, dev, build = (pathlib.Path(argument) for argument in sys.argv[1:])
    presets = {preset["name"]: preset for preset in json.loads((source / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]}
    pip = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["scikit-build"]["cmake"]["define"]
    found = other_joins(presets, pip)
    # What all of them compile; tests and benchmarks do not ship.
    subprocess.run(["cmake", "--preset", "release", "-S", source, "-B", build, "-DWAVEJIT_BUILD_TESTS=OFF", "-DWAVEJIT_BUILD_BENCHMARKS=OFF"],
                   check=True, stdout=subprocess.DEVNULL)
    shipped = units(build)
    found += other_units(units(dev), shipped)
    print("\n".join(found[:20]) if found else f"{len(shipped)} units are those of dev")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
