#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that load into LDS, run with loads that land in any order: those that need the order of issue are found, those that do not give
the same bits as in order. The list is lds_dma_kinds.txt, and docs/simulated-gpu.md shows it.

    lds_dma_order_test.py first|all <wavejit>    the first problem of each kind, or all of them
    lds_dma_order_test.py page <source root>     whether the page has the list's rows
"""
import csv
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIST = pathlib.Path(__file__).with_name("lds_dma_kinds.txt")
PAGE, HEAD = "docs/simulated-gpu.md", "| gfx950 kernels | need the order |"
CHECKS = ("waits", "races", "uninitialised")
FINDING = re.compile(r"^wavejit simulated GPU: kernel (\w+): .*: (?:waits|races|uninitialised): ", re.MULTILINE)


@dataclasses.dataclass
class Kind:
    name: str
    needs: str = ""
    kernels: str = ""
    beside: str = ""
    problems: list[str] = dataclasses.field(default_factory=list)

    def is_in_need(self) -> bool:
        return self.needs.startswith("yes")


def kinds() -> list[Kind]:
    found: list[Kind] = []
    for line in LIST.read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        if word == "kind":
            found.append(Kind(rest))
        elif word in ("needs", "kernels", "beside"):
            setattr(found[-1], word, rest)
        elif line and word != "#":
            found[-1].problems.append(line)
    return found


def sweep(wavejit: str, problem: str, beside: str, schedules: list[str]) -> tuple[dict[str, str], list[str]]:
    """The row of the problem, and the kernels in which something was found."""
    with tempfile.TemporaryDirectory() as folder:
        rows = pathlib.Path(folder) / "rows.csv"
        ignored = {"WAVEJIT_SIM_IGNORE": ",".join(f"{check}:{beside}" for check in CHECKS)} if beside else {}
        orders = [word for schedule in schedules for word in ("--schedule", schedule)]
        run = subprocess.run([wavejit, "sweep", "--device", "sim:gfx950", "--check", "--csv", rows, *orders, problem], capture_output=True, text=True,
                             env={**os.environ, **ignored}, check=False)
        written = list(csv.DictReader(rows.read_text(encoding="utf-8").splitlines())) if rows.exists() else []
        if len(written) != 1:
            return {"verdict": "", "reason": run.stderr[-400:]}, []
        return written[0], FINDING.findall(run.stderr)


def problem_of(wavejit: str, kind: Kind, problem: str) -> str | None:
    """What is wrong with the list."""
    # In order nothing is found. A call of several kernels names one of them.
    row, found = sweep(wavejit, problem, "", ["in_order"])
    if row["verdict"] != "ok":
        return f"{row['verdict']} in order: {found[:1]} {row['reason']}"
    if not kind.beside and not re.search(kind.kernels, row["kernel_spec"]) and not row["kernel_spec"].startswith("attention_backward_dq"):
        return f"it ran {row['kernel_spec']}, which is of another kind"
    row, found = sweep(wavejit, problem, kind.beside, ["in_order", "unordered"])
    if kind.is_in_need():
        family = re.match(r"\^(\w+)", kind.kernels)
        return None if family and any(name.startswith(family[1] + "_") for name in found) else "nothing is found in any order: it does not need the order"
    if found:
        return f"found in {found[0]}: it needs the order"
    # Beside a kernel that needs the order the call's other results are worth nothing.
    return None if kind.beside or row["verdict"] == "ok" else f"other bits in any order: {row['reason']}"


def run_kinds(wavejit: str, whole: bool) -> int:
    wrong = []
    for kind in kinds():
        for problem in kind.problems if whole else kind.problems[:1]:
            if why := problem_of(wavejit, kind, problem):
                wrong.append(f"{kind.name}: {problem}: {why}")
    print("\n".join(wrong or [f"{sum(len(kind.problems) for kind in kinds()) if whole else len(kinds())} problems, each as {LIST.name} says"]))
    return 1 if wrong else 0


def compare_page(root: str) -> int:
    lines = (pathlib.Path(root) / PAGE).read_text(encoding="utf-8").splitlines()
    wanted = [HEAD, "|---|---|", *(f"| {kind.name} | {kind.needs} |" for kind in kinds())]
    if HEAD in lines and lines[lines.index(HEAD):][:len(wanted) + 1] == [*wanted, ""]:
        return 0
    print(f"{PAGE} has another table than {LIST.name} gives:\n" + "\n".join(wanted))
    return 1


if __name__ == "__main__":
    sys.exit(compare_page(sys.argv[2]) if sys.argv[1] == "page" else run_kinds(sys.argv[2], sys.argv[1] == "all"))
