#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documents as a site: they build without a warning, no link leads nowhere, and a browser draws them.

    site_test.py <scripts/docs_site.py> <folder to build in> <chromium-headless-shell> <wavejit>
"""
import html.parser
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import zlib

SCRIPT, FOLDER, BROWSER, PROGRAM = sys.argv[1:5]
HTML = pathlib.Path(FOLDER) / "html"


class Page(html.parser.HTMLParser):
    def __init__(self, path: pathlib.Path):
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if values.get("id"):
            self.names.add(values["id"])


def pixels(picture: bytes) -> set[bytes]:
    """The lines of a PNG, as they are stored: a page that was not drawn has few different ones."""
    at, data, width, depth = 8, b"", 0, 4
    while at < len(picture):
        size, kind = struct.unpack(">I4s", picture[at:at + 8])
        if kind == b"IHDR":
            width, depth = struct.unpack(">I", picture[at + 8:at + 12])[0], {2: 3, 6: 4}[picture[at + 17]]
        if kind == b"IDAT":
            data += picture[at + 8:at + 8 + size]
        at += 12 + size
    rows = zlib.decompress(data)
    line = 1 + width * depth
    return {rows[begin:begin + line] for begin in range(0, len(rows), line)}


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gone = HTML / "docs" / "a_page_that_left_the_tree.html"
        cls.gone.parent.mkdir(parents=True, exist_ok=True)
        cls.gone.write_text('<a href="nowhere.html">as an earlier build left it</a>', encoding="utf-8")
        made = subprocess.run([sys.executable, SCRIPT, FOLDER, PROGRAM], capture_output=True, text=True)
        if made.returncode != 0:
            raise AssertionError(made.stdout + made.stderr)

    def test_what_left_the_tree_left_the_site(self):
        self.assertFalse(self.gone.exists())

    def test_references_are_whole(self):
        text = {name: (HTML / "reference" / f"{name}.html").read_text(encoding="utf-8") for name in
                ("program", "python", "torch", "jax", "transformers", "cache", "cpp")}
        for name, words in {"program": ("wavejit sweep", "wavejit cache unpack", "--up-to-keys"), "torch": ("scaled_dot_product_attention", "flash_attn_with_kvcache"),
                            "jax": ("wavejit.jax.attention", "wavejit.jax.dot_product_attention"), "transformers": ("wavejit.transformers.register",), "cache": ("wavejit.cache.verify",),
                            "cpp": ('id="the-engine"', 'id="device-memory-and-tensors"')}.items():
            for word in words:
                self.assertIn(word, text[name], name)
        # The package's example is one block, with its quotation marks as they are typed.
        example = text["python"].split("Attention kernels for AMD GPUs", 1)[1]
        self.assertLess(example.index("highlight-python"), example.index("The package carries"))
        self.assertNotIn("<blockquote>", example[:example.index("The package carries")])

    def test_the_index_says_what_pages_are_for(self):
        text = "".join(_text((HTML / "index.html").read_text(encoding="utf-8")))
        self.assertIn("Latent attention: multi-head latent attention (DeepSeek, Kimi, GLM)", text)
        self.assertGreater(len(re.findall(r"\w: \w", text)), 40)

    def test_no_link_leads_nowhere(self):
        pages = {path: Page(path) for path in HTML.rglob("*.html")}
        self.assertGreater(len(pages), 60)
        broken = []
        for path, page in pages.items():
            for link in page.links:
                parts = urllib.parse.urlsplit(link)
                if parts.scheme:
                    continue
                reached = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
                if not reached.exists():
                    broken.append(f"{path.relative_to(HTML)}: {link}")
                elif parts.fragment and reached in pages and parts.fragment not in pages[reached].names:
                    broken.append(f"{path.relative_to(HTML)}: no #{parts.fragment} in {parts.path or 'itself'}")
        self.assertFalse(broken)

    def test_references_name_what_there_is(self):
        for page, words in (("c", ["wavejit_attention_forward_arguments", "id=\"the-call\""]), ("cpp", ["class Engine"]),
                            ("python", ["wavejit.Engine", "attention_forward"])):
            text = (HTML / "reference" / f"{page}.html").read_text(encoding="utf-8")
            for word in words:
                plain = text if "=" in word else "".join(_text(text))
                self.assertIn(word, plain)

    def test_code_is_no_wider_than_its_page(self):
        for name in ("docs/command-line", "docs/profile", "reference/program"):
            page = (HTML / f"{name}.html").read_text(encoding="utf-8")
            measured = """<script>document.documentElement.setAttribute("data-wide",
                [...document.querySelectorAll("pre")].filter(block => block.scrollWidth > block.clientWidth).length + " of "
                + document.querySelectorAll("pre").length)</script></body>"""
            copy = HTML / f"{name}_measured.html"
            copy.write_text(page.replace("</body>", measured), encoding="utf-8")
            try:
                with tempfile.TemporaryDirectory() as scratch:
                    drawn = subprocess.run([BROWSER, "--no-sandbox", "--disable-gpu", "--window-size=1280,900", f"--user-data-dir={scratch}", "--dump-dom", copy.as_uri()],
                                           check=True, timeout=120, capture_output=True, text=True).stdout
            finally:
                copy.unlink()
            self.assertRegex(drawn, 'data-wide="0 of [1-9]', name)

    def test_a_browser_draws_it(self):
        with tempfile.TemporaryDirectory() as scratch:
            for page in ("index", "docs/start/simulated-gpu-only", "reference/c"):
                picture = pathlib.Path(scratch) / "page.png"
                subprocess.run([BROWSER, "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=900,700", f"--user-data-dir={scratch}/browser",
                                f"--screenshot={picture}", (HTML / f"{page}.html").as_uri()], check=True, timeout=120, capture_output=True)
                self.assertGreater(len(pixels(picture.read_bytes())), 100, page)


def _text(page: str) -> list[str]:
    class Text(html.parser.HTMLParser):
        def __init__(self):
            super().__init__()
            self.all: list[str] = []

        def handle_data(self, data):
            self.all.append(data)

    parser = Text()
    parser.feed(page)
    return parser.all


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
