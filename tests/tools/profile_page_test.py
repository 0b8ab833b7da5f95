#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looks at the page of `wavejit profile --html` in a headless browser: that it draws itself without an error, that the
tracks it was given are there, that it fits a desk and a phone, and that there is something to see.

    profile_page_test.py <the program wavejit> <chromium-headless-shell>
"""
import html.parser
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

PROGRAM, BROWSER = sys.argv[1:3]
SCRATCH = tempfile.TemporaryDirectory(prefix="wavejit-page-")
FOLDER = pathlib.Path(SCRATCH.name)
# A dual-wave kernel: eight waves, two on each SIMD, with barriers; long enough to go round its loop.
PROBLEM = "attention_forward bf16 b1 q256 k2048 h1 d128"


def browse(page: pathlib.Path, *options: str) -> str:
    # --no-sandbox: tests run as root in containers; the page is this project's own and comes from a file.
    command = [BROWSER, "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={FOLDER}/browser", *options, page.as_uri()]
    return subprocess.run(command, check=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()


class Elements(html.parser.HTMLParser):
    """Every element's name and attributes, and which track a shape lies in."""

    def __init__(self, text: str):
        super().__init__()
        self.root: dict[str, str] = {}
        self.tracks: dict[str, dict[str, int]] = {}
        self.classes: dict[str, int] = {}
        self.track = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = {name: value or "" for name, value in attributes}
        if tag == "html":
            self.root = values
        if tag == "g" and "data-track" in values:
            self.track = values["data-track"]
            self.tracks.setdefault(self.track, {})
        for name in values.get("class", "").split():
            self.classes[name] = self.classes.get(name, 0) + 1
            if tag == "rect" and self.track:
                of_track = self.tracks[self.track]
                of_track[name] = of_track.get(name, 0) + 1

    def handle_endtag(self, tag):
        if tag == "g":
            self.track = ""


def pixels(path: pathlib.Path) -> tuple[int, int, list[bytes]]:
    """Width, height and rows of RGB of an 8-bit PNG without interlacing, as the browser writes it."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    at, stream = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (2, 6) and not interlaced
            channels = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            stream += body
        at += 12 + length
    raw = zlib.decompress(stream)
    stride = width * channels
    rows, before = [], bytearray(stride)
    for y in range(height):
        kind = raw[y * (stride + 1)]
        line = bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for i in range(stride) if kind else ():
            left = line[i - channels] if i >= channels else 0
            up = before[i]
            corner = before[i - channels] if i >= channels else 0
            if kind == 1:
                guess = left
            elif kind == 2:
                guess = up
            elif kind == 3:
                guess = (left + up) // 2
            else:
                estimate = left + up - corner
                guess = min((left, up, corner), key=lambda each: abs(estimate - each))
            line[i] = (line[i] + guess) & 255
        rows.append(bytes(line) if channels == 3 else bytes(b for i, b in enumerate(line) if i % 4 != 3))
        before = line
    return width, height, rows


class ProfilePageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = FOLDER / "profile.html"
        run = [PROGRAM, "profile", PROBLEM, "--device", "sim:gfx950", "--cache", "off", "--html", str(cls.page), "--json"]
        cls.told = json.loads(subprocess.run(run, check=True, timeout=300, stdout=subprocess.PIPE).stdout)
        text = cls.page.read_text(encoding="utf-8")
        cls.data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))
        # The same page, which then says how wide it came out.
        cls.measured = FOLDER / "measured.html"
        cls.measured.write_text(text.replace("</body>", "<script>document.documentElement.dataset.width = document.documentElement.scrollWidth</script></body>"), encoding="utf-8")

    def test_tracks_are_drawn(self):
        dom = Elements(browse(self.measured, "--dump-dom", "--window-size=1280,900"))
        self.assertEqual(dom.root.get("data-state"), "drawn")
        self.assertNotIn("data-failure", dom.root)
        self.assertEqual(dom.root.get("data-width"), "1280")
        iteration = self.data["profiles"][0]["iteration"]
        self.assertTrue(iteration["is_iteration"])
        workgroup = self.told["launches"][0]["sample"][0]["workgroup"]
        expected = {f"SIMD {simd}, matrix pipe" for simd in range(4)} | {f"workgroup {workgroup}, wave {wave}" for wave in range(8)}
        self.assertEqual(set(dom.tracks), expected)
        for lane in iteration["lanes"]:
            if lane.get("pipe"):
                track = dom.tracks[f"SIMD {lane['simd']}, matrix pipe"]
                self.assertEqual(track.get("pipe-span", 0), len(lane["spans"]))
            else:
                track = dom.tracks[lane["name"]]
                for drawn, given in (("issued", "issued"), ("wait", "waits"), ("arrival", "barriers")):
                    self.assertEqual(track.get(drawn, 0), len(lane[given]), f"{drawn} of {lane['name']}")
                self.assertGreater(track.get("issued", 0), 100)
        self.assertEqual(dom.classes.get("release", 0), len(iteration["releases"]))
        self.assertGreater(len(iteration["releases"]), 0)
        for name in ("units", "waits", "roofline", "over-time", "reached"):
            self.assertGreater(dom.classes.get(name, 0), 0, name)

    def test_fits_a_phone(self):
        dom = Elements(browse(self.measured, "--dump-dom", "--window-size=390,844"))
        self.assertEqual(dom.root.get("data-state"), "drawn")
        # Narrower windows than 500 are not to be had without a screen: the page must fit whatever it got.
        self.assertLessEqual(int(dom.root["data-width"]), 500)

    def test_there_is_something_to_see(self):
        picture = FOLDER / "page.png"
        browse(self.page, f"--screenshot={picture}", "--window-size=1280,900")
        width, height, rows = pixels(picture)
        self.assertEqual((width, height), (1280, 900))
        colours: dict[bytes, int] = {}
        for row in rows:
            for x in range(0, len(row), 3):
                colour = row[x : x + 3]
                colours[colour] = colours.get(colour, 0) + 1
        # Antialiased text alone makes some; the accents of classes, ink and paper stand out by their area.
        self.assertGreater(len(colours), 50)
        large = [colour for colour, count in colours.items() if count > 1000]
        self.assertGreaterEqual(len(large), 5, large)
        self.assertLess(max(colours.values()), 0.95 * width * height)

    def test_an_error_is_told(self):
        broken = FOLDER / "broken.html"
        text = self.page.read_text(encoding="utf-8")
        broken.write_text(text.replace('"launches":', '"lunches":', 1), encoding="utf-8")
        dom = Elements(browse(broken, "--dump-dom"))
        self.assertNotEqual(dom.root.get("data-state"), "drawn")
        self.assertIn("data-failure", dom.root)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
