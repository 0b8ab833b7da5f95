#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The README's chart, from the numbers of the bench pages: predicted cycles and compile times beside others'.

    comparison_picture.py <source root> [--check]     writes docs/pictures/comparison.svg, or exits 1 where it differs
"""
import json
import pathlib
import sys

PICTURE = "docs/pictures/comparison.svg"
COLOURS = {"wavejit": "#c2410c", "AITER": "#64748b", "Triton": "#94a3b8"}
WIDTH, ROW, BAR, LEFT, RIGHT = 860, 20, 14, 190, 120
# Rows of the two pages: a title, and the first cells of the row.
CYCLES = [("head dim 128, full", ["128", "full", "8192"]), ("head dim 128, causal", ["128", "causal", "8192"]),
          ("head dim 64, full", ["64", "full", "8192"]), ("head dim 64, causal", ["64", "causal", "8192"])]
COMPILES = [("gfx950, head dim 128", ["gfx950 d128 causal"]), ("gfx942, head dim 128", ["gfx942 d128 causal"]),
            ("gfx950, head dim 64", ["gfx950 d64 causal"]), ("gfx942, head dim 64", ["gfx942 d64 causal"])]


def row(page: str, first: list[str]) -> list[str]:
    for line in page.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:len(first)] == first:
            return cells[len(first):]
    raise SystemExit(f"no row begins with {first}")


def cycles_of(page: str) -> list[tuple[str, dict[str, float]]]:
    bars = []
    for title, first in CYCLES:
        names = ["wavejit", "AITER", "Triton"]
        bars.append((title, {name: float(cell) / 1e6 for name, cell in zip(names, row(page, first)) if cell != "–"}))
    return bars


def compiles_of(page: str) -> list[tuple[str, dict[str, float]]]:
    bars = []
    for title, first in COMPILES:
        ours, triton = (float(cell.split()[0]) for cell in row(page, first)[:2])
        bars.append((title, {"wavejit": ours, "Triton": triton}))
    return bars


def panel(top: int, title: str, unit: str, groups: list[tuple[str, dict[str, float]]], lines: list[str]) -> int:
    lines.append(f'<text x="16" y="{top}" font-weight="bold">{title}</text>')
    y = top + 14
    longest = max(value for _, bars in groups for value in bars.values())
    for name, bars in groups:
        for place, (who, value) in enumerate(bars.items()):
            width = round(value / longest * (WIDTH - LEFT - RIGHT), 1)
            if place == 0:
                lines.append(f'<text x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{name}</text>')
            text = f"{value:.0f}" if unit else f"{value:.1f}"
            lines.append(f'<rect x="{LEFT}" y="{y}" width="{width}" height="{BAR}" fill="{COLOURS[who]}"/>')
            lines.append(f'<text x="{LEFT + width + 6}" y="{y + 11}">{who} {text} {unit}</text>')
            y += ROW - 3
        y += 8
    return y


def picture(root: pathlib.Path) -> str:
    shapes = (root / "bench/predicted_shapes.md").read_text(encoding="utf-8")
    bench = (root / "bench/README.md").read_text(encoding="utf-8")
    error = json.loads((root / "src/simgpu/checkers/clock/model_error.json").read_text(encoding="utf-8"))["real_kernels"]
    lines: list[str] = []
    y = panel(28, "Predicted cycles on gfx950, one performance model for all (16 × 16 heads, 8,192 keys, bf16), in millions", "",
              cycles_of(shapes), lines)
    lines.append(f'<text x="16" y="{y + 6}" fill="#64748b">The model erred by {error["root_mean_square_percent"]} % (root mean square) on '
                 f'{error["anchors"]} real kernels of others. Nothing ran on silicon.</text>')
    y = panel(y + 44, "Compiling one attention kernel from nothing (causal), measured on one machine in one run", "ms", compiles_of(bench), lines)
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 8}" viewBox="0 0 {WIDTH} {y + 8}" '
            'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="#ffffff"/>\n')
    return head + "\n".join(line.replace("  ", " ") for line in lines) + "\n</svg>\n"


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    text = picture(root)
    if "--check" in sys.argv:
        if (root / PICTURE).read_text(encoding="utf-8") == text:
            return 0
        print(f"{PICTURE} is not what the bench pages say today; ./dev bench comparison-picture draws it anew")
        return 1
    (root / PICTURE).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
