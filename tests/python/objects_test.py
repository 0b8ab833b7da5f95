# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results as objects: the cache, sweeps, profiles and comparisons, with what the program says of each."""
import dataclasses
import html
import json
import os
import pathlib
import re
import stat
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

import numpy

import wavejit
from wavejit import _profile, _program

SMALL = "softmax_lse fp32 b1 h1 q1 k64"
LINE = "attention_forward bf16 b1 q64 k64 h2 d64"
ENGINE = wavejit.Engine("sim:gfx950")


def names(kind):
    return {field.name for field in dataclasses.fields(kind)}


class StandIn:
    """In the program's place: a script that says and does what a test wants."""

    def __init__(self, script):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name, "wavejit")
        self.path.write_text(f"#!/bin/sh\n{script}\n")
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    def __enter__(self):
        self.kept, _program.PROGRAM = _program.PROGRAM, self.path

    def __exit__(self, *_):
        _program.PROGRAM = self.kept
        self.folder.cleanup()


class Cache(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.words = {"cache_dir": f"{self.folder}/cache", "cache_packaged": False}
        wavejit.prebuild(SMALL, "gfx950,gfx942", progress=False, **self.words)

    def program(self, *words):
        environment = {"WAVEJIT_CACHE_DIR": self.words["cache_dir"], "WAVEJIT_CACHE_PACKAGED": "off"}
        return _program.answer(_program.Command(["cache", *words], environment), (0, 1))

    def test_what_it_holds(self):
        entries = wavejit.cache.entries(**self.words)
        self.assertEqual(sorted(entry.target for entry in entries), ["gfx942", "gfx950"])
        told = {entry["key"]: entry for entry in self.program("list")}
        for entry in entries:
            self.assertEqual({name: value for name, value in dataclasses.asdict(entry).items() if name != "modified_unix_seconds"},
                             {name: value for name, value in told[entry.key].items() if name != "modified"})
            self.assertEqual(os.path.getsize(entry.path), entry.file_bytes)
        info = wavejit.cache.info(**self.words)
        self.assertEqual((info.entries, info.bytes, info.damaged), (2, sum(entry.file_bytes for entry in entries), 0))
        self.assertEqual(dataclasses.asdict(info), self.program("info"))
        (layer,) = wavejit.cache.stats(cache_limit="none", **self.words)
        self.assertEqual((layer.name, layer.path, layer.writable, layer.entries, layer.bytes, layer.limit_bytes, layer.state),
                         ("user", self.words["cache_dir"], True, 2, info.bytes, None, None))

    def test_damage(self):
        before = wavejit.cache.verify(**self.words)
        self.assertEqual((before.entries, before.damaged, before.ok), (2, [], True))
        victim = pathlib.Path(wavejit.cache.entries(**self.words)[0].path)
        victim.write_bytes(victim.read_bytes()[:-1])
        after = wavejit.cache.verify(**self.words)
        self.assertEqual((after.entries, [entry.path for entry in after.damaged], after.ok), (2, [str(victim)], False))
        self.assertTrue(after.damaged[0].damage)
        self.assertEqual((after.damaged[0].kernel_name, after.damaged[0].vgprs), ("", 0))
        self.assertEqual((wavejit.cache.info(**self.words).damaged, wavejit.cache.stats(**self.words)[0].damaged), (1, 1))
        with self.assertRaisesRegex(wavejit.NotFound, "cache_dir = .*nowhere"):
            wavejit.cache.verify(cache_dir=f"{self.folder}/nowhere", cache_packaged=False)

    def test_carried_elsewhere(self):
        archive = pathlib.Path(self.folder, "all.wavejit-archive")
        copied = wavejit.cache.copy(None, archive, archive=True, targets=["gfx950"], **self.words)
        self.assertEqual((copied.copied, copied.damaged, copied.failed), (1, 0, 0))
        there = {"cache_dir": f"{self.folder}/there", "cache_packaged": False}
        self.assertEqual(wavejit.cache.copy(archive, **there).copied, 1)
        self.assertEqual(wavejit.cache.copy(archive, **there).present, 1)
        self.assertEqual(wavejit.cache.gc(any_age=True, **there).entries, 1)
        layers = wavejit.cache.stats(cache_layers=[archive], **there)
        self.assertEqual([(layer.name, layer.writable, layer.entries) for layer in layers], [(str(archive), False, 1), ("user", True, 1)])
        with self.assertRaises(wavejit.NotFound):
            wavejit.cache.copy(f"{self.folder}/nowhere", **there)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "remote = 'up'; accepted: 'to', 'from'"):
            wavejit.cache.copy(remote="up", **there)


class Sweep(unittest.TestCase):
    def test_every_figure_of_the_program(self):
        told = []
        lines = [LINE, "nonsense", "attention_forward bf16 b1 q8 k8 h2 d264"]
        swept = ENGINE.sweep(lines, pipelines=["auto", "generic"], schedules=["in_order", "random:7"], progress=told.append, sample="all")
        self.assertEqual((swept.device_name, swept.target, swept.passed, swept.failed, swept.ok), (ENGINE.device_name, "gfx950", 1, 0, False))
        self.assertEqual(sum(swept.set_aside.values()), 3)  # the last line on two pipelines; the first one's kernel ran for auto
        self.assertEqual(swept.set_aside["not supported"], 2)
        self.assertEqual([(line.line, line.text) for line in swept.not_understood], [(2, "nonsense")])
        self.assertIn("'nonsense'", swept.not_understood[0].reason)
        (good,) = [outcome for outcome in swept.outcomes if outcome.ok]
        self.assertEqual((good.line, good.descriptor, good.pipeline, good.ran, good.schedules, good.rows, good.rows_compared),
                         (1, LINE, "auto", "whole", "in_order random:7", 128, 128))
        self.assertTrue(0 < good.error_of_bound < 1 and 0 < good.max_error < 0.1 and good.least_row_cosine > 0.999)
        self.assertIs(swept.worst, good)
        self.assertIn("1 passed, 0 failed", str(swept))
        self.assertEqual({report["verdict"] for report in told}, {None, "ok", "aside"})
        self.assertEqual((told[-1]["done"], told[-1]["total"]), (2, 2))

    def test_fields_are_those_of_the_program(self):
        raw = _program.answer(_program.command(["sweep", SMALL], {"device": "sim:gfx950"}), told=bool)
        self.assertEqual(set(raw["outcomes"][0]), names(wavejit.SweepOutcome))
        self.assertEqual(set(raw) - {"lines_not_understood"}, names(wavejit.SweepResult) - {"not_understood"})

    def test_failures_are_results(self):
        raw = _program.answer(_program.command(["sweep", SMALL], {"device": "sim:gfx950"}), told=bool)
        raw["outcomes"][0].update(verdict="FAILED", max_error="inf", lse_error="nan", reason="<b>", descriptor="<i>")
        raw.update(passed=0, failed=1)
        with StandIn(f"cat <<'JSON'\n{json.dumps(raw)}\nJSON\nexit 1"):
            swept = wavejit.sweep(SMALL)
        self.assertEqual((swept.ok, swept.outcomes[0].ok, swept.outcomes[0].max_error), (False, False, float("inf")))
        self.assertNotEqual(swept.outcomes[0].lse_error, swept.outcomes[0].lse_error)
        page = swept._repr_html_()
        self.assertIn("<td>FAILED</td><td>&lt;i&gt;</td>", page)
        self.assertNotIn("<i>", page)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "rows.csv")
            wavejit.sweep([LINE, SMALL], device="sim:gfx950", csv=path, filter="softmax", up_to_keys=64, shard=(1, 1))
            self.assertEqual(len(path.read_text().splitlines()), 2)

    def test_where_nothing_was_compared_all_is_not_well(self):
        swept = wavejit.sweep(["attention_forward bf16 b1 q16 k16 h1 d100"], device="sim:gfx950")
        self.assertEqual((swept.passed, swept.failed, sum(swept.set_aside.values()), swept.ok), (0, 0, 1, False))
        self.assertTrue(wavejit.sweep(["attention_forward bf16 b1 q16 k16 h1 d100", SMALL], device="sim:gfx950").ok)

    def test_refused(self):
        for kind, words, given in (
            (wavejit.NoDevice, 'device "sim:gfx1" names no device', {"device": "sim:gfx1"}),
            (wavejit.InvalidArgument, "shard: '3/2' is not accepted", {"shard": (3, 2)}),
            (wavejit.InvalidArgument, "up_to_keys: 'x' is not accepted", {"up_to_keys": "x"}),
            (wavejit.InvalidArgument, 'pipeline "none" is not known', {"pipelines": "none"}),
            (wavejit.InvalidArgument, "cache_mode|--cache", {"cache_mode": "most"}),
            (wavejit.IoError, "csv /proc/nowhere/x", {"csv": "/proc/nowhere/x"}),
            (wavejit.InvalidArgument, "without a zero byte", {"filter": "\0"}),
            (TypeError, "'colour' is no option; accepted: device", {"colour": "red"}),
            (TypeError, "schedules: a int", {"schedules": [3]}),
            (TypeError, "progress: a str", {"progress": "bar"}),
        ):
            with self.subTest(given), self.assertRaisesRegex(kind, words) as caught:
                wavejit.sweep(SMALL, **{"device": "sim:gfx950", **given})
            if issubclass(kind, wavejit.Error):
                self.assertEqual((type(caught.exception), caught.exception.status), (kind, kind.status))
        for lines in ([], ["a\nb"]):
            with self.assertRaisesRegex(wavejit.InvalidArgument, "descriptors: none"):
                wavejit.sweep(lines)

    def test_a_bar_of_tqdm(self):
        """tqdm may not be here: one that takes down what it is told is put in its place."""
        bar = unittest.mock.MagicMock()
        bar.return_value.__enter__.return_value = bar
        with unittest.mock.patch.dict(sys.modules, {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": types.SimpleNamespace(tqdm=bar)}):
            wavejit.sweep([SMALL, "nonsense"], device="sim:gfx950", progress=True)
        bar.assert_called_once_with(desc="sweep", unit="problem")
        self.assertEqual((bar.n, bar.total), (1, 1))

    def test_what_progress_raises_ends_it(self):
        class Enough(Exception):
            pass

        def enough(_):
            raise Enough

        began = time.monotonic()
        with StandIn("echo '[1/2] ok x' >&2; exec sleep 60"), self.assertRaises(Enough):
            wavejit.sweep(SMALL, progress=enough)
        self.assertLess(time.monotonic() - began, 30)

    def test_a_program_that_dies(self):
        for script, kind, words in (
            ("kill -SEGV $$", wavejit.Internal, "ended by signal 11"),
            ("echo 'wavejit sweep: it cannot be' >&2; exit 7", wavejit.Internal, "^it cannot be$"),
            ("echo 'wavejit sweep: no; `wavejit sweep --help` tells more' >&2; exit 4", wavejit.Unsupported, "^no$"),
            ("exit 0", wavejit.Internal, "exit code 0"),
        ):
            with self.subTest(script), StandIn(script), self.assertRaisesRegex(kind, words):
                wavejit.sweep(SMALL)
        kept, _program.PROGRAM = _program.PROGRAM, pathlib.Path("/nowhere/wavejit")
        try:
            with self.assertRaisesRegex(wavejit.NotFound, "the package is not whole"):
                wavejit.sweep(SMALL)
        finally:
            _program.PROGRAM = kept


class Profiles(unittest.TestCase):
    def test_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            profile = ENGINE.profile(LINE, timeline=f"{folder}/timeline.json")
            self.assertTrue(json.loads(pathlib.Path(folder, "timeline.json").read_text())["traceEvents"])
            profile.save(f"{folder}/page.html")
            self.assertEqual(pathlib.Path(folder, "page.html").read_text(), profile.page)
        raw, launch = profile.json, profile.longest
        self.assertEqual((profile.subject, profile.target, profile.cycles), (LINE, "gfx950", raw["predicted_cycles"]))
        self.assertEqual((profile.workgroups, profile.workgroups_run, len(profile.launches)), (2, 2, 1))
        self.assertIn("predicted, not measured", profile.model_error.text)
        self.assertEqual(launch.cycles_before, 0)
        self.assertAlmostEqual(sum(launch.waits.values()) + launch.issuing, 1)
        self.assertEqual(list(launch.waits.values()), sorted(launch.waits.values(), reverse=True))
        # 4 cycles an instruction: what waves did when they did not wait
        self.assertAlmostEqual(launch.issuing, 4 * launch.json["waves"]["issued"] / launch.json["waves"]["cycles"], delta=0.02)
        self.assertEqual(set(launch.busy), {"matrix pipe", "vector port", "LDS", "vector memory", "scalar"})
        self.assertTrue(all(0 < part < 1 for part in launch.busy.values()))
        self.assertEqual((sum(launch.written.values()), launch.issued["matrix"] >= launch.written["matrix"] > 0), (launch.instructions, True))
        self.assertLess(launch.longest_waits[-1].total, launch.longest_waits[0].total)
        self.assertLessEqual(sum(cluster.total for cluster in launch.clusters), 1)
        self.assertRegex(repr(profile), rf"^wavejit.Profile\('{LINE}', \d+ cycles predicted on gfx950\)$")

    def test_in_a_notebook(self):
        profile = wavejit.profile(LINE, device="sim:gfx950")
        (shown,) = re.findall(r'^<iframe sandbox="allow-scripts" [^>]* srcdoc="([^"]*)"></iframe>$', profile._repr_html_(), re.S)
        self.assertEqual(html.unescape(shown), profile.page)
        self.assertTrue(profile.page.startswith("<!doctype html>") and LINE in profile.page)

    def test_an_engines_options_lie_beneath(self):
        with wavejit.Engine("sim:gfx942", pipeline="auto stagger=off", kv_splits=2, log_level="off") as engine:
            rows = engine.empty((1, 8, 1, 64), "bf16")
            keys = engine.empty((1, 2048, 1, 64), "bf16")
            split = engine.profile(engine.attention_forward_call(rows, keys, keys))
            self.assertEqual((split.target, len(split.launches)), ("gfx942", 2))  # stagger means nothing to it: no error
            self.assertGreater(split.launches[1].cycles_before, 0)
            self.assertEqual(split.cycles, sum(launch.cycles + launch.cycles_before for launch in split.launches))
            self.assertEqual(len(engine.profile(split.subject, kv_splits=1).launches), 1)
            self.assertEqual(engine.profile(LINE, device="sim:gfx950").target, "gfx950")

    def test_compared(self):
        compared = wavejit.compare(LINE, a_settings={"device": "sim:gfx942"}, b_settings={"device": "sim:gfx950", "pipeline": "auto lazy_rescale=off"})
        self.assertEqual((compared.a.target, compared.b.target, compared.b.settings), ("gfx942", "gfx950", "device=sim:gfx950 pipeline=auto lazy_rescale=off"))
        rows = {row.name: row for row in compared.differences}
        self.assertEqual((rows["cycles"].a, rows["cycles"].b), (str(compared.a.cycles), str(compared.b.cycles)))
        self.assertIn("iframe", compared._repr_html_())
        self.assertIn("cycles predicted on gfx942", repr(compared))
        self.assertEqual(names(wavejit.Difference), set(_program.answer(_program.command(["compare", LINE, SMALL], {"device": "sim:gfx950"}))["differences"][0]))

    def test_of_a_closed_engine(self):
        engine = wavejit.Engine("sim:gfx950")
        engine.close()
        for ask in (engine.profile, engine.sweep):
            with self.assertRaisesRegex(wavejit.InvalidArgument, "engine: it is closed"):
                ask(LINE)

    def test_refused(self):
        bad = wavejit.InvalidArgument
        for kind, words, subject, given in (
            (bad, "'nonsense' is neither a problem descriptor", "nonsense", {}),
            (bad, "subject = '-h'", "-h", {}),
            (TypeError, "subject: a int; accepted: a descriptor, a call", 3, {}),
            (wavejit.Unsupported, "head dim", "attention_forward bf16 b1 q8 k8 h2 d7", {}),
            (bad, "stagger means nothing to this kernel", LINE, {"pipeline": "auto stagger=off"}),
            (TypeError, "'stagger' is no option", LINE, {"stagger": False}),
            (bad, "settings grid=1,2: 'grid' is a word of code objects", LINE, {"settings": {"grid": (1, 2)}}),
            (wavejit.IoError, "timeline /proc/x", LINE, {"timeline": "/proc/x"}),
        ):
            with self.subTest(words), self.assertRaisesRegex(kind, words) as caught:
                wavejit.profile(subject, **{"device": "sim:gfx950", **given})
            self.assertIs(type(caught.exception), kind)
        with self.assertRaisesRegex(bad, "B is missing"):
            wavejit.compare(LINE, device="sim:gfx950")
        self.assertEqual(_profile._settings("x", "--set", {"pipeline": "auto xcd_swizzle=on", "arguments": ["buffer:1MiB", "i32:4"], "kv_splits": 2}),
                         ["--set=pipeline=auto xcd_swizzle=on", "--set=arguments=buffer:1MiB,i32:4", "--set=kv-splits=2"])


class Options(unittest.TestCase):
    def test_the_program_takes_an_engines(self):
        with self.assertRaises(TypeError) as caught:
            wavejit.explain(LINE, "gfx950", colour="red")
        known = set(str(caught.exception).partition("accepted:")[2].split())
        self.assertEqual(known, {*_program.FLAGS, *_program.VARIABLES})
        of_engine = {"pipeline": "auto o_store=scalar", "cache_mode": "ro", "device": "hip"}
        command = _program.command(["sweep"], {"cache_dir": "/x", "cache_limit": "1MiB"}, of_engine)
        self.assertEqual(command.arguments, ["sweep", "--cache-dir=/x", "--device=hip"])
        self.assertEqual(command.environment, {"WAVEJIT_CACHE_LIMIT": "1MiB", "WAVEJIT_PIPELINE": "auto o_store=scalar", "WAVEJIT_CACHE": "ro"})
        self.assertEqual(_program.command(["sweep"], {"device": "sim:gfx942"}, of_engine).arguments, ["sweep", "--device=sim:gfx942"])

    def test_what_the_program_misses_is_no_news_of_the_engine(self):
        with tempfile.TemporaryDirectory() as folder:
            misses = pathlib.Path(folder, "misses.txt")
            with wavejit.Engine("sim:gfx950", miss_log=misses, cache_mode="off") as engine:
                engine.sweep(SMALL)
                self.assertEqual(misses.read_text() if misses.exists() else "", "")
                engine.softmax_lse(numpy.zeros((1, 1, 1, 64), numpy.float32))
                self.assertIn(SMALL, misses.read_text())


class Questions(unittest.TestCase):
    def test_of_softmax(self):
        scores = numpy.zeros((1, 1, 1, 64), numpy.float32)
        with wavejit.Engine("sim:gfx950") as engine:
            self.assertEqual(engine.softmax_lse_describe(scores), SMALL)
            self.assertEqual(engine.softmax_lse_describe(scores, None, lse=True), "softmax_lse fp32 b1 h1 q1 k64 weights=none lse")
            self.assertTrue(engine.softmax_lse_supported(scores))
            self.assertIs(engine.softmax_lse_is_ready(scores), False)
            call = engine.softmax_lse_call(scores)
            self.assertEqual(call.explain(), engine.explain(SMALL))
            self.assertEqual(engine.explain(call), wavejit.explain(SMALL, "gfx950"))
            call.launch()
            self.assertIs(engine.softmax_lse_is_ready(scores), True)
            with self.assertRaisesRegex(wavejit.InvalidArgument, "scores: shape"):
                engine.softmax_lse_supported(scores[0])


class Lock(unittest.TestCase):
    def turns_during(self, work):
        turns, end = [0], threading.Event()

        def turn():
            while not end.is_set():
                time.sleep(0.001)
                turns[0] += 1

        thread = threading.Thread(target=turn)
        thread.start()
        try:
            before = turns[0]
            work()
            return turns[0] - before
        finally:
            end.set()
            thread.join()

    def test_python_runs_while_a_kernel_runs(self):
        rows = ENGINE.empty((1, 2048, 4, 64), "bf16")
        call = ENGINE.attention_forward_call(rows, rows, rows)
        call.launch()
        ENGINE.synchronize()

        def work():
            call.launch()
            ENGINE.synchronize()

        self.assertGreater(self.turns_during(work), 5)  # with the lock held it could be 1

    def test_and_while_the_program_works(self):
        with StandIn("sleep 0.2; exit 7"), self.assertRaises(wavejit.Internal):
            self.assertGreater(self.turns_during(lambda: self.assertRaises(wavejit.Internal, wavejit.sweep, SMALL)), 5)
            wavejit.sweep(SMALL)


if __name__ == "__main__":
    unittest.main()
