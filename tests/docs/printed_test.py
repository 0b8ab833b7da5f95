#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pages say that the program prints, beside what it prints today: every line, every digit. "…" in a line of a page
stands for what was left out. A page whose example is older than the program fails, and the line to write is shown.
What stands between "<!-- wavejit <words> -->" and "<!-- end -->" is all that the words print, no more and no less.

    printed_test.py <wavejit> <source root> [--write]     with --write the pages get today's lines, elided as they were
    printed_test.py --self-test
"""
import pathlib
import re
import subprocess
import sys

PROBLEM = "attention_forward bf16 b1 q8192 k8192 h16/4 d128"
DEVICE = ["--device", "sim:gfx950", "--cache", "off"]
# A page, the beginning of the first line of what it shows, and what prints that.
SHOWN = (
    ("docs/profile.md", "profile  ", ["profile", PROBLEM, *DEVICE]),
    ("docs/profile.md", "A          B  B - A", ["compare", PROBLEM, "--set-b", "pipeline=auto stagger=off", *DEVICE]),
    ("docs/profile.md", "cycles   5", ["profile", "attention_forward bf16 b1 q8192 k8192 h16/4 d64", *DEVICE]),
)
GENERATED = re.compile(r"(<!-- wavejit ([^\n>]*) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
PRIVATE = re.compile(r"\bprivate=(\d+)")


def block_of(page: str, first: str) -> list[str]:
    """The indented lines from the first that begins so."""
    lines = page.split("\n")
    for start, line in enumerate(lines):
        if line.startswith("    ") and line.strip().startswith(first):
            end = start
            while end < len(lines) and lines[end].startswith("    "):
                end += 1
            return [line[4:] for line in lines[start:end]]
    return []


def same(line: str, other: str) -> bool:
    pattern = ".*".join(re.escape(" ".join(piece.split())) for piece in line.split("…")).replace(r"\ .*", ".*")
    return re.fullmatch(pattern, " ".join(other.split())) is not None


def label(line: str) -> str:
    """What a line is of: its first words, which stand apart; of a line that goes on, nothing."""
    return "" if line.startswith("      ") and not line.strip().startswith("A ") else re.split(r" {2,}", line.strip())[0]


def todays(block: list[str], printed: list[str]) -> list[str]:
    """The block with the lines that are printed now in place of those that are not."""
    lines, at = [], -1
    for line in block:
        of = label(line)
        found = [k for k, other in enumerate(printed) if of and label(other) == of]
        at = found[0] if found else at + 1
        if line.strip() == "…" or at >= len(printed) or any(same(line, other) for other in printed):
            lines.append(line)
        elif line.endswith("…"):
            lines.append(", ".join(printed[at].split(", ")[:line.count(", ")]) + ", …")
        else:
            lines.append(printed[at].rstrip())
    return lines


def wrong_lines(block: list[str], printed: list[str]) -> list[str]:
    return [f"the page: {line}\n   today: {new}" for line, new in zip(block, todays(block, printed))
            if not any(same(line, other) for other in printed)]


def other_blocks(page: str, printed: dict[str, str]) -> list[str]:
    """The words of blocks that are not what the program prints: a line of either side that the other has not."""
    return [words for _, words, text, _ in GENERATED.findall(page) if text.strip() != printed[words].strip()]


def self_test() -> int:
    page = "text\n\n    cycles  12 and 3\n    waits  a 1, …\n\nmore"
    block = block_of(page, "cycles")
    assert block == ["cycles  12 and 3", "waits  a 1, …"], block
    assert not wrong_lines(block, ["cycles 12 and 3", "waits  a 1, b 2"])
    assert len(wrong_lines(block, ["cycles 13 and 3", "waits  a 1, b 2"])) == 1
    assert len(wrong_lines(block, ["cycles 12 and 3, more", "waits  a 2, b 2"])) == 2
    assert todays(block, ["cycles  13 and 4", "waits  a 2, b 2"]) == ["cycles  13 and 4", "waits  a 2, …"]
    table = "a\n<!-- wavejit supported -->\n| a | yes |\n| b | no |\n<!-- end -->\n"
    assert not other_blocks(table, {"supported": "| a | yes |\n| b | no |\n"})
    for other in ("| a | yes |\n", "| a | yes |\n| b | no |\n| c | no |\n", "| a | yes |\n| b | yes |\n"):
        assert other_blocks(table, {"supported": other}) == ["supported"], other
    print("an example that is older than the program is found")
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    program, root = sys.argv[1], pathlib.Path(sys.argv[2])
    writes = "--write" in sys.argv
    found = []
    for path in sorted([root / "README.md", *root.glob("docs/**/*.md")]):
        page = path.read_text(encoding="utf-8")
        printed = {words: subprocess.run([program, *words.split()], capture_output=True, text=True, check=True).stdout
                   for _, words, _, _ in GENERATED.findall(page)}
        if writes and printed:
            path.write_text(GENERATED.sub(lambda block: block[1] + printed[block[2]] + block[4], page), encoding="utf-8")
        elif others := other_blocks(page, printed):
            found += [f"{path.relative_to(root)}: the block of wavejit {words} is not what it prints today" for words in others]
    # The README's table of families is one of these blocks: a README without it is as wrong as one with an old table.
    if not GENERATED.search((root / "README.md").read_text(encoding="utf-8")):
        found.append("README.md: no block of `wavejit supported --markdown`")
    for name, first, arguments in SHOWN:
        block = block_of((root / name).read_text(encoding="utf-8"), first)
        if not block:
            found.append(f"{name}: no example that begins with '{first}'")
            continue
        ran = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            found.append(f"{name}: wavejit {arguments[0]} fails: {ran.stderr}")
        printed = ran.stdout.split("\n")
        if writes:
            page = (root / name).read_text(encoding="utf-8")
            old, new = ("".join(f"    {line}\n" for line in lines) for lines in (block, todays(block, printed)))
            (root / name).write_text(page.replace(old, new), encoding="utf-8")
            continue
        found += [f"{name}, wavejit {arguments[0]}\n{wrong}" for wrong in wrong_lines(block, printed)]
    most = max(int(figure) for path in (root / "tests/kernels/golden").glob("*.txt")
               for figure in PRIVATE.findall(path.read_text(encoding="utf-8")))
    if f"private memory (up to {most} bytes a lane" not in (root / "docs/serving.md").read_text(encoding="utf-8"):
        found.append(f"docs/serving.md: kernels use up to {most} bytes of private memory (tests/kernels/golden)")
    if found:
        found.append("./dev run python3 tests/docs/printed_test.py build/dev/bin/wavejit . --write")
    print("\n".join(found) if found else "pages show what the program prints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
