#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of the tree that stay below a bound: exported functions, rules that refuse a spec of attention_forward, lines of a family's api files.

    counts.py <root>         prints them, and how large the tree is; fails where a bound is passed
    counts.py --self-test    shows that each can fail

The bits of a shape's code have a bound, too: the compiler counts them, in templates/attention_forward/call/shape.h. What is looked for and is not there,
because a file or its form has changed, is a failure and not a count of 0.
"""
from __future__ import annotations

import contextlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile

SYMBOLS = "cmake/libwavejit.symbols"
COMBINATIONS = "templates/attention_forward/kernel/combinations.cpp"
RULES = "templates/attention_forward/kernel/rules.cpp"
MOST_FUNCTIONS = 33  # beside the call of each family: 40 with seven of them
MOST_RULES = 40  # what only lacks registers is measured, and a cell of room.inc
MOST_API_LINES = 40  # what an entry of C does is the engine's work
LONG = 450  # lines of a file

COMMENTS_AND_STRINGS = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)'""", re.S)
ROWS = re.compile(r"\bCombination combinations\[\] = \{")
RULE_LIST = re.compile(r"\bRule rules\[\] = \{([^}]*)\}")
RULE = re.compile(r"^std::string (\w+)\(const Asked& asked\) \{", re.M)
REFUSALS = re.compile(r"^std::string first_refusal\(.*?^}", re.M | re.S)  # the function that asks them


class Unreadable(Exception):
    """A file that is not in the form that its counter knows."""


def exported(symbols: str) -> int:
    lines = [line for line in symbols.splitlines() if line.strip() and not line.startswith("#")]
    for line in lines:
        if not re.fullmatch(r"wavejit_\w+ \d+\.\d+\.\d+", line):
            raise Unreadable(f"{SYMBOLS}: '{line}' is no function and its version")
    if not lines:
        raise Unreadable(f"{SYMBOLS}: no function")
    return len(lines)


def bare(text: str) -> str:
    return COMMENTS_AND_STRINGS.sub("", text)


def rows_of_combinations(text: str) -> int:
    code = bare(text)
    begin = ROWS.search(code)
    if begin is None:
        raise Unreadable(f"{COMBINATIONS}: no table 'Combination combinations[]'")
    depth, rows, beside = 1, 0, ""
    for letter in code[begin.end():]:
        if letter == "{":
            rows += depth == 1
            depth += 1
        elif letter == "}":
            depth -= 1
            if depth == 0:
                break
        elif depth == 1:
            beside += letter
    if beside.strip(", \n"):
        raise Unreadable(f"{COMBINATIONS}: '{beside.strip(', ' + chr(10))}' stands in the table and is no row in braces")
    if depth != 0 or rows == 0:
        raise Unreadable(f"{COMBINATIONS}: the table has {rows} rows and " + ("no end" if depth else "an end"))
    return rows


def functions_of_rules(text: str) -> int:
    """Functions that give a refusal's sentence, but for the one that reads the rows of combinations.cpp."""
    code = bare(text)
    functions = set(RULE.findall(code))
    listed, asks = RULE_LIST.search(code), REFUSALS.search(code)
    if listed is None or asks is None:
        raise Unreadable(f"{RULES}: no list 'Rule rules[]', or no function first_refusal that asks its rules")
    called = set(re.findall(r"\w+", listed.group(1))) | set(re.findall(r"(\w+)\(asked\)", asks.group()))
    unknown = called - functions - {"refused_combination", "rule"}
    if unknown or not functions:
        raise Unreadable(f"{RULES}: no function of the form 'std::string rule(const Asked& asked) {{' is called {', '.join(sorted(unknown)) or 'anything'}")
    return len(functions)


def read(root: pathlib.Path, path: str) -> str:
    if not (root / path).is_file():
        raise Unreadable(f"{path}: not there")
    return (root / path).read_text(encoding="utf-8")


def lines_of(path: pathlib.Path) -> int:
    return path.read_bytes().count(b"\n")


def api_files(root: pathlib.Path) -> dict[str, int]:
    found = {str(path.relative_to(root)): lines_of(path) for path in sorted((root / "templates").glob("*/api/**/*")) if path.is_file()}
    if not any(path.endswith("/api/c_api.cpp") for path in found):
        raise Unreadable("templates: no family has an api/c_api.cpp")
    return found


def passed(root: pathlib.Path) -> list[str]:
    """Prints each count, and gives a sentence for each that is over its bound."""
    functions = exported(read(root, SYMBOLS))
    rows, rules = rows_of_combinations(read(root, COMBINATIONS)), functions_of_rules(read(root, RULES))
    api = api_files(root)
    families = {path.split("/")[1] for path in api}
    most = MOST_FUNCTIONS + len(families)
    longest = max(api, key=lambda path: api[path])
    print(f"functions that libwavejit exports: {functions} of {most} ({MOST_FUNCTIONS}, and one for each of {len(families)} families)")
    print(f"rules that refuse a spec of attention_forward: {rows + rules} of {MOST_RULES} ({rows} rows of combinations.cpp, {rules} functions of rules.cpp)")
    print(f"lines of a family's api file: up to {api[longest]} of {MOST_API_LINES} ({longest})")
    wrong = [f"{path} has {lines} lines; accepted: up to {MOST_API_LINES}, so what it does belongs to the engine" for path, lines in api.items() if lines > MOST_API_LINES]
    if functions > most:
        wrong.append(f"{SYMBOLS} lists {functions} functions; accepted: up to {most}, so make one of two that are alike")
    if rows + rules > MOST_RULES:
        wrong.append(f"{COMBINATIONS} and rules.cpp have {rows + rules} rules; accepted: up to {MOST_RULES}, so let kernel_room measure what only lacks registers")
    return wrong


def print_sizes(root: pathlib.Path) -> None:
    for folder in ("src", "templates", "tools", "tests"):
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--", folder], check=True, capture_output=True, text=True).stdout.split("\0")
        lines = {path: lines_of(root / path) for path in listed if path and (root / path).is_file()}
        print(f"lines of {folder}: {sum(lines.values())} in {len(lines)} files")
        sources = [(count, path) for path, count in lines.items() if count > LONG and path.endswith((".h", ".cpp", ".c", ".inc", ".py"))]
        for count, path in sorted(sources, reverse=True):
            print(f"  {path}: {count}, more than {LONG}")


def self_test() -> int:
    symbols = "# what is exported\n" + "".join(f"wavejit_f{i} 0.1.0\n" for i in range(MOST_FUNCTIONS + 1))
    row = '    {WAVEJIT_BESIDE("beside {this"), WAVEJIT_IF(asked.a),  // and {that\n     {&a, &b}},\n'
    combinations = "constexpr Combination combinations[] = {\n" + row * 38 + "};\nint other[] = {1};\n"
    rules = "std::string one(const Asked& asked) {\n}\n\nstd::string two(const Asked& asked) {\n}\nconstexpr Rule rules[] = {one,\n refused_combination};\n"
    rules += "std::string first_refusal(const AskedSpec& asked) {\n  for (const Rule rule : rules) rule(asked);\n  return two(asked);\n}\n"
    good = {SYMBOLS: symbols, COMBINATIONS: combinations, RULES: rules, "templates/one/api/c_api.cpp": "int a;\n" * 40}
    another = "std::string three(const Asked& asked) {\n}\n"
    bad = {"a function more": {SYMBOLS: symbols + "wavejit_more 0.1.0\n"}, "a row more": {COMBINATIONS: combinations.replace("{\n", "{\n" + row, 1)},
           "a rule more": {RULES: another + rules}, "a line more": {"templates/one/api/calls.h": "int a;\n" * 41}}  # fmt: skip
    unread = {"a function without a version": {SYMBOLS: symbols + "wavejit_more\n"}, "no functions": {SYMBOLS: "# none\n"}, "no table": {COMBINATIONS: ""},
              "a row of another form": {COMBINATIONS: combinations.replace("{\n", "{\nROW(a),", 1)}, "nobody who asks": {RULES: rules.replace("first_refusal", "refusal")},
              "no end": {COMBINATIONS: combinations.split("};")[0]}, "a rule of another form": {RULES: rules.replace("two(const Asked& asked)", "two(Asked asked)")},
              "no list of rules": {RULES: another}, "no api": {"templates/one/api/c_api.cpp": None}}  # fmt: skip
    for name, change in {"nothing": {}, **bad, **unread}.items():
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**good, **change}.items():
                if text is not None:
                    (pathlib.Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                    (pathlib.Path(folder) / path).write_text(text, encoding="utf-8")
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    seen = len(passed(pathlib.Path(folder)))
            except Unreadable:
                seen = -1
            if seen != (-1 if name in unread else 1 if name in bad else 0):
                print(f"self-test: {name}: {seen}")
                return 1
    print("counts.py sees what passes a bound, and what it cannot read")
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    root = pathlib.Path(sys.argv[1])
    try:
        wrong = passed(root)
    except Unreadable as unreadable:
        wrong = [str(unreadable)]
    print_sizes(root)
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
