#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plants faults into what emits kernels: draws them, and writes a copy of the emitters that has all of them, each asleep.

    plant.py draw <tree> <seed> > faults.txt       two faults a file, by the seed
    plant.py write <tree> faults.txt               changes <tree>, which is a copy: WAVEJIT_PLANTED=<number> wakes one fault

A fault is a call of LLVM's IRBuilder with another operation or with two operands exchanged, or a number that is one too many.
A row of faults.txt is `<number> <file>:<place> <before> -> <after>`, where the place counts the file's candidates. All faults are
compiled at once: each becomes `(planted(17) ? <after> : <before>)`.
"""
import dataclasses
import pathlib
import random
import re
import sys

# What is done instead. Operands stay where the two functions have the same parameters.
OTHER = {
    "CreateAdd": "CreateSub", "CreateSub": "CreateAdd", "CreateMul": "CreateAdd", "CreateAnd": "CreateOr", "CreateOr": "CreateAnd",
    "CreateXor": "CreateOr", "CreateShl": "CreateLShr", "CreateLShr": "CreateShl", "CreateUDiv": "CreateURem", "CreateFMul": "CreateFAdd",
    "CreateFAdd": "CreateFSub", "CreateFSub": "CreateFAdd", "CreateICmpSLT": "CreateICmpSLE", "CreateICmpSLE": "CreateICmpSLT",
    "CreateICmpULT": "CreateICmpULE", "CreateICmpSGT": "CreateICmpSGE", "CreateICmpSGE": "CreateICmpSGT", "CreateICmpUGE": "CreateICmpUGT",
    "CreateICmpEQ": "CreateICmpNE", "CreateICmpNE": "CreateICmpEQ", "CreateMaxNum": "CreateMinNum", "CreateSelect": None,
}
CALL = re.compile(r"(?<![\w.>])((?:\w+(?:\.|->))+)(" + "|".join(OTHER) + r")\(")
NUMBER = re.compile(r"(?<=[=+\-*/<(,] )(\d+)(?=[;,) ])|(?<=[\[(])(\d+)(?=[\]),])")
NOT_RUN = re.compile(r"^\s*(//|#|static_assert|constexpr|case|template|using|inline constexpr|enum)|\bconstexpr\b|std::array<|static_assert|<\d+>")
FAULTS_OF_A_FILE = 2
# Awake or asleep, a fault that is asked for adds the time to a file of its number in the folder that WAVEJIT_PLANTED_REACHED names, ten times
# a second at most: run.py finds the tests that were running then.
HEAD = (
    "#include <cstdio>\n"
    "#include <cstdlib>\n"
    "#include <string>\n"
    "#include <time.h>\n"
    "[[maybe_unused]] static bool planted(int number) {\n"
    '  static const char* const said = std::getenv("WAVEJIT_PLANTED");\n'
    "  static const int awake = said == nullptr ? 0 : std::atoi(said);\n"
    '  static const char* const folder = std::getenv("WAVEJIT_PLANTED_REACHED");\n'
    "  static double told[4096];\n"
    "  if (folder != nullptr) {\n"
    "    timespec now{};\n"
    "    clock_gettime(CLOCK_REALTIME, &now);\n"
    "    const double seconds = double(now.tv_sec) + (double(now.tv_nsec) / 1e9);\n"
    "    if (seconds - told[number] >= 0.1) {\n"
    "      told[number] = seconds;\n"
    '      if (std::FILE* const file = std::fopen((std::string(folder) + "/" + std::to_string(number)).c_str(), "a")) {\n'
    '        std::fprintf(file, "%.3f\\n", seconds);\n'
    "        std::fclose(file);\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "  return awake == number;\n"
    "}\n"
)


@dataclasses.dataclass(frozen=True)
class Place:
    begin: int
    end: int
    before: str
    after: str


def arguments_of(text: str, begin: int) -> tuple[list[str], int]:
    """The arguments behind an open parenthesis, and where the closing one is."""
    depth, start, found = 0, begin, []
    for at in range(begin, len(text)):
        letter = text[at]
        if letter in "([{":
            depth += 1
        elif letter in ")]}" and depth > 0:
            depth -= 1
        elif letter == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
        elif letter == ")":
            return [*found, text[start:at].strip()], at
    return [], begin


def places_of(text: str) -> list[Place]:
    found: list[Place] = []
    for match in CALL.finditer(text):
        arguments, end = arguments_of(text, match.end())
        before = text[match.start() : end + 1]
        receiver, name = match.groups()
        if not arguments or "//" in before:
            continue
        if OTHER[name] is not None:
            after = f"{receiver}{OTHER[name]}({', '.join(arguments[:2])})"
        elif len(arguments) == 3:
            after = f"{receiver}CreateSelect({arguments[0]}, {arguments[2]}, {arguments[1]})"
        else:
            continue
        found.append(Place(match.start(), end + 1, before, after))
    if found:
        return found
    depth = 0
    for line in re.finditer(r".*\n", text):
        inside = depth > 1  # in a function of the namespace
        depth += line.group().count("{") - line.group().count("}")
        if inside and not NOT_RUN.search(line.group()):
            found += [Place(line.start() + m.start(), line.start() + m.end(), m.group(), str(int(m.group()) + 1)) for m in NUMBER.finditer(line.group())]
    return found


def emitters(tree: pathlib.Path) -> list[pathlib.Path]:
    """All but the tables of schedules, whose faults do not compile: static_assert holds each table to its model."""
    return sorted(path for path in tree.glob("templates/*/emit/**/*.cpp") if not path.stem.endswith("schedule"))


def in_one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def draw(tree: pathlib.Path, seed: str) -> None:
    number = 0
    for path in emitters(tree):
        name = path.relative_to(tree)
        places = places_of(path.read_text(encoding="utf-8"))
        chance = random.Random(f"{seed} {name}")
        chosen: list[int] = []
        for place in chance.sample(range(len(places)), len(places)):
            apart = all(places[place].end <= places[other].begin or places[other].end <= places[place].begin for other in chosen)
            if apart and len(chosen) < FAULTS_OF_A_FILE:
                chosen.append(place)
        for place in sorted(chosen):
            number += 1
            print(f"{number} {name}:{place} {in_one_line(places[place].before)} -> {in_one_line(places[place].after)}")


def write(tree: pathlib.Path, rows: str) -> None:
    faults: dict[str, list[tuple[int, int]]] = {}
    for row in pathlib.Path(rows).read_text(encoding="utf-8").splitlines():
        if row and not row.startswith("#"):
            number, place = row.split()[:2]
            name, index = place.split(":")
            faults.setdefault(name, []).append((int(index), int(number)))
    for name, chosen in faults.items():
        path = tree / name
        text = path.read_text(encoding="utf-8")
        places = places_of(text)
        for index, number in sorted(chosen, reverse=True):  # from the end: places keep their offsets
            place = places[index]
            text = f"{text[:place.begin]}(planted({number}) ? {place.after} : {place.before}){text[place.end:]}"
        function = "planted_of_" + re.sub(r"\W", "_", name)
        text = text.replace("planted(", function + "(")
        path.write_text(HEAD.replace("planted(", function + "(") + text, encoding="utf-8")


if __name__ == "__main__":
    {"draw": draw, "write": write}[sys.argv[1]](pathlib.Path(sys.argv[2]), sys.argv[3])
