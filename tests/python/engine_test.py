# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The engine's life: questions, prepare, seal, prebuild, statistics, callbacks, threads."""
import gc
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import weakref

import numpy

import wavejit

Q = numpy.ones((1, 8, 2, 64), numpy.float16)
K = numpy.ones((1, 32, 1, 64), numpy.float16)
LINE = "attention_forward fp16 b1 q8 k32 h2/1 d64"
# the fastest kernel to compile
SMALL = "softmax_lse fp32 b1 h1 q1 k64"


def engine(**options):
    return wavejit.Engine("sim:gfx950", **options)


class Questions(unittest.TestCase):
    def test_describe_supported_ready(self):
        with engine() as it:
            self.assertEqual(it.describe(Q, K, K), LINE)
            self.assertTrue(it.supported(Q, K, K))
            self.assertIs(it.is_ready(Q, K, K), False)
            narrow = it.attention_forward_call(*(numpy.ones((1, 8, 4, 264), Q.dtype) for _ in range(3)))
            self.assertIs(narrow.supported(), False)
            self.assertIn("head dim", narrow.why_unsupported())
            call = it.attention_forward_call(Q, K, K)
            self.assertIsNone(call.why_unsupported())
            report = call.launch_with_report()
            self.assertIn(report["origin"], ("disk", "compiled"))
            self.assertIn("attention_forward", report["kernel_spec"])
            self.assertTrue(call.is_ready() and it.is_ready(Q, K, K))
            self.assertEqual(call.launch_with_report()["origin"], "memory")
            small = it.softmax_lse_call(numpy.zeros((1, 1, 1, 64), numpy.float32))
            self.assertEqual(small.describe(), SMALL)
            small.prepare()
            self.assertTrue(small.is_ready())
            self.assertEqual((it.device, it.target, it.ordinal, it.is_simulated), ("sim:gfx950", "gfx950", 0, True))
            self.assertIn("MI355X", it.device_name)
            self.assertEqual(repr(it), "wavejit.Engine('sim:gfx950')")
            self.assertTrue(any("kernel" in line or "spec" in line for line in it.explain(LINE)))
            with self.assertRaisesRegex(wavejit.InvalidArgument, "causal_prefix|prefix"):
                it.supported(Q, K, K, causal_prefix=-5, causal=True)

    def test_devices_by_number(self):
        other = wavejit.Engine("sim:gfx950x2:1")
        self.assertEqual(other.ordinal, 1)
        self.assertEqual(other.array(Q).__dlpack_device__(), (10, 1))


class Serving(unittest.TestCase):
    def test_prepare_and_seal(self):
        with engine() as it:
            told = []
            prepared = it.prepare([LINE, "attention_forward fp16 b1 q8 k32 h2/1 d7", "nonsense"], strict=False, progress=told.append)
            self.assertEqual([line.status for line in prepared], [0, 2, 1])
            self.assertEqual((prepared[0].failure, prepared[0].descriptor), ("", LINE))
            self.assertIn("head dim 7 has no kernel", prepared[1].failure)
            self.assertEqual((told[-1]["done"], told[-1]["total"], told[-1]["failed"]), (3, 3, 2))
            it.seal()
            self.assertTrue((it.attention_forward(Q, K, K).numpy() == 1).all())
            with self.assertRaises(wavejit.Sealed):
                it.softmax_lse(numpy.zeros((1, 1, 1, 64), numpy.float32))
            self.assertTrue(it.statistics()["sealed"])
            it.unseal()
            self.assertEqual(it.prepare(SMALL)[0].status, 0)
            it.trim()

    def test_prepare_raises_what_has_no_kernel_and_prepares_the_rest(self):
        lines = ["attention_forward fp16 b1 q8 k32 h2/1 d7", LINE, "nonsense"]
        with engine() as it:
            with self.assertRaises(wavejit.Unsupported) as raised:  # of the first that failed
                it.prepare(lines)
            told = raised.exception.detail
            self.assertTrue(told.startswith("prepare: 2 of 3 lines could not be prepared:\n'attention_forward fp16 b1 q8 k32 h2/1 d7': "), told)
            self.assertIn("\n'nonsense': ", told)
            self.assertNotIn(LINE, told)
            it.seal()
            self.assertTrue((it.attention_forward(Q, K, K).numpy() == 1).all())
            it.unseal()
            self.assertEqual([line.status for line in it.prepare(lines, strict=False)], [2, 0, 1])
            with self.assertRaisesRegex(TypeError, "strict: a int; accepted: True, False"):
                it.prepare(LINE, strict=0)

    def test_what_progress_raises_is_raised_here(self):
        class Enough(Exception):
            pass

        def enough(_):
            raise Enough

        with engine() as it, self.assertRaises(Enough):
            it.prepare([LINE], progress=enough)

    def test_statistics_add_up(self):
        with engine() as it:
            for _ in range(3):
                it.attention_forward(Q, K, K)
            counts = it.statistics()
            self.assertEqual((counts["calls"], counts["memory_hits"]), (3, 2))
            self.assertEqual(counts["calls"] + counts["prepared"], counts["memory_hits"] + counts["disk_hits"] + counts["misses"])
            self.assertEqual(counts["kernels"][0]["descriptor"], LINE)
            self.assertEqual(counts["target"], "gfx950")

    def test_options_by_name_and_their_forms(self):
        with tempfile.TemporaryDirectory() as folder, engine(cache_dir=folder, cache_layers=[], pipeline="auto stagger=off", kv_splits=1, log_level="off") as it:
            it.prepare(SMALL)
            self.assertEqual(it.statistics()["compiled"], 1)
            (entry,) = wavejit.cache.entries(cache_dir=folder, cache_packaged=False)
            self.assertEqual((entry.target, entry.damage, entry.layer), ("gfx950", None, "user"))
            self.assertGreater(entry.file_bytes, 1000)
            swept = wavejit.cache.gc(any_age=True, cache_dir=folder, cache_limit="1MiB")
            self.assertEqual((swept.entries, swept.bytes, swept.evicted, swept.failures), (1, entry.file_bytes, 0, 0))
            with self.assertRaisesRegex(wavejit.InvalidArgument, "cache_limit"):
                wavejit.cache.gc(cache_dir=folder, cache_limit="1KiB")

    def test_layers_that_nothing_asks_are_refused(self):
        with self.assertRaisesRegex(wavejit.InvalidArgument, "options.cache_mode = off beside cache_layers, which nothing asks then; accepted: ro and rw"):
            engine(cache_mode="off", cache_layers=["/image"])
        engine(cache_mode="off", cache_layers=[]).close()

    def test_texts_of_kernels(self):
        ((spec, text),) = wavejit.kernel_texts(SMALL, "gfx950")
        self.assertIn("softmax_lse", spec)
        self.assertIn("s_endpgm", text)
        ((_, text),) = wavejit.kernel_texts(SMALL, "gfx942", form="ir")
        self.assertIn("define ", text)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "form = 'c'; accepted: 'ir', 'isa'"):
            wavejit.kernel_texts(SMALL, "gfx950", form="c")


class Callbacks(unittest.TestCase):
    def test_on_compile_hears_of_every_kernel(self):
        events = []
        with engine(on_compile=events.append) as it:
            it.attention_forward(Q, K, K)
            it.attention_forward(Q, K, K)
        (event,) = events
        self.assertEqual((event["descriptor"], event["status"], event["thread"]), (LINE, 0, threading.get_native_id()))
        self.assertIn(event["origin"], ("disk", "compiled"))

    def test_what_on_compile_raises_is_told_and_dropped(self):
        told = []
        hook, sys.unraisablehook = sys.unraisablehook, lambda raised: told.append(raised.exc_type)
        try:
            with engine(on_compile=lambda event: event["nothing"]) as it:
                self.assertTrue((it.attention_forward(Q, K, K).numpy() == 1).all())
        finally:
            sys.unraisablehook = hook
        self.assertEqual(told, [KeyError])

    def test_on_log(self):
        lines = []
        with engine(on_log=lambda level, line: lines.append((level, line)), log_level="debug", cache_mode="off") as it:
            it.prepare(SMALL)
        self.assertTrue(lines and all(level in (1, 2, 3, 4) and isinstance(line, str) for level, line in lines))


class PythonsEnd(unittest.TestCase):
    """Threads that meet the end of Python: what was begun is told, and nothing is ended in the middle of C++."""

    BEGINNING = """
        import os, sys, threading, time, types
        import numpy, wavejit
        # Destroyed when Python ends, slowly: by then nobody else gets Python's lock.
        class Late:
            def __del__(self, sleep=time.sleep):
                sleep(0.3)
        sys.modules["late"] = types.ModuleType("late")
        sys.modules["late"].late = Late()
        begun, ended = threading.Event(), threading.Event()
        def compile_behind(**callbacks):
            global engine
            engine = wavejit.Engine("sim:gfx950", cache_mode="off", log_level="debug", **callbacks)
            try:
                engine.softmax_lse(numpy.zeros((1, 1, 1, 64), numpy.float32), compile="behind")
            except wavejit.NotReady:
                pass
        """

    def ended(self, source):
        program = textwrap.dedent(self.BEGINNING) + textwrap.dedent(source)
        run = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout

    def test_while_a_kernel_is_on_its_way(self):
        self.ended("compile_behind(on_compile=print, on_log=print)")

    def test_in_the_middle_of_a_callback(self):
        told = self.ended("""
            def on_log(level, line):
                if threading.current_thread() is not threading.main_thread() and not begun.is_set():
                    begun.set()
                    time.sleep(0.1)
                    print("told")
            compile_behind(on_log=on_log)
            begun.wait()
            """)
        self.assertEqual(told, "told\n")

    def test_while_a_daemon_thread_calls(self):
        self.ended("""
            engine = wavejit.Engine("sim:gfx950")
            def call():
                while True:
                    engine.synchronize()
            threading.Thread(target=call, daemon=True).start()
            time.sleep(0.05)
            """)

    def test_a_forked_child_does_not_wait_for_callbacks_of_its_parent(self):
        told = self.ended("""
            def on_log(level, line):
                if threading.current_thread() is not threading.main_thread():
                    begun.set()
                    ended.wait()
            compile_behind(on_log=on_log)
            begun.wait()
            child = os.fork()
            if child == 0:
                sys.exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            ended.set()
            """)
        self.assertEqual(told, "7\n")


    def test_an_engine_that_its_callbacks_know_is_collected(self):
        for word in ("on_compile", "on_log"):
            engines = []
            engines.append(engine(**{word: lambda *_, engines=engines: engines}))
            self.assertTrue((engines[0].attention_forward(Q, K, K).numpy() == 1).all())
            gone = weakref.ref(engines[0])
            del engines
            gc.collect()
            self.assertIsNone(gone(), word)


class Threads(unittest.TestCase):
    def test_what_is_waited_for_beside_a_launch_lets_nothing_go(self):
        """One thread stands before its launch, over memory that another library lent, while another waits for the device."""
        with engine() as it:
            array = it.array(Q)
            lent = it.from_dlpack(_Lent(array))
            call = it.attention_forward_call(lent, K, K)
            launch = call._launch

            def launch_later(stream):
                waiting = threading.Thread(target=it.synchronize)
                waiting.start()
                waiting.join()
                launch(stream)

            call._launch = launch_later
            call.launch()
            self.assertIn(call, it._kept)
            it.synchronize()
            self.assertNotIn(call, it._kept)

    def test_python_runs_while_a_kernel_compiles(self):
        turns, end = [0], threading.Event()

        def turn():
            while not end.is_set():
                time.sleep(0.001)
                turns[0] += 1

        thread = threading.Thread(target=turn)
        thread.start()
        try:
            with engine(cache_mode="off") as it:
                call = it.attention_forward_call(Q, K, K)
                before = turns[0]
                report = call.launch_with_report()
                during = turns[0] - before
        finally:
            end.set()
            thread.join()
        self.assertEqual(report["origin"], "compiled")
        self.assertGreater(during, 5)  # with the lock held it could be 1

    def test_many_threads_share_an_engine(self):
        random = numpy.random.default_rng(3)
        q, k = random.standard_normal((1, 8, 2, 64)).astype(numpy.float16), random.standard_normal((1, 32, 1, 64)).astype(numpy.float16)
        events = []
        with engine(on_compile=events.append) as it:
            call = it.attention_forward_call(q, k, k)
            outs, failures = [], []

            def work():
                try:
                    for _ in range(5):
                        outs.append(it.attention_forward(q, k, k).numpy())
                        call.launch()
                except Exception as error:  # noqa: BLE001: shown below
                    failures.append(error)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            self.assertEqual((len(outs), len(events), it.statistics()["calls"]), (20, 1, 40))
            self.assertTrue(all(numpy.array_equal(out, call.out.numpy()) for out in outs))

    def test_a_kernel_behind_the_call(self):
        with engine() as it:
            with self.assertRaises(wavejit.NotReady):
                it.attention_forward(Q, K, K, compile="behind")
            until = time.monotonic() + 60
            while not it.is_ready(Q, K, K) and time.monotonic() < until:
                time.sleep(0.01)
            self.assertTrue((it.attention_forward(Q, K, K, compile="never").numpy() == 1).all())


class _Lent:
    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **words):
        return self.array.__dlpack__(**words)


class Prebuild(unittest.TestCase):
    def test_into_a_folder_and_an_archive(self):
        with tempfile.TemporaryDirectory() as folder:
            told = []
            words = {"cache_dir": f"{folder}/cache", "cache_packaged": False}
            counts = wavejit.prebuild([SMALL], ["gfx950"], progress=told.append, **words)
            self.assertEqual((counts["total"], counts["compiled"], counts["failed"]), (1, 1, 0))
            self.assertEqual([report["done"] for report in told], sorted(report["done"] for report in told))
            self.assertIn("softmax_lse", told[-1]["kernel_spec"])
            archive = f"{folder}/served.wavejit-archive"
            counts = wavejit.prebuild(SMALL, "gfx950", output=archive, archive=True, progress=None, **words)
            self.assertEqual(counts["compiled"], 0)
            self.assertEqual(wavejit.prebuild(SMALL, "gfx950", output=archive, verify=True, progress=None, **words)["present"], 1)
            with self.assertRaises(wavejit.NotFound):
                wavejit.prebuild("softmax_lse bf16 b1 h1 q1 k64", "gfx950", output=archive, verify=True, progress=None, **words)
            with engine(cache_mode="ro", cache_layers=[archive], cache_dir=f"{folder}/empty", cache_packaged=False) as it:
                it.softmax_lse(numpy.zeros((1, 1, 1, 64), numpy.float32))
                self.assertEqual(it.statistics()["disk_hits"], 1)

    def test_lines_that_are_refused(self):
        told = []
        with self.assertRaises(wavejit.Unsupported):
            wavejit.prebuild(["attention_forward fp16 b1 q8 k32 h2/1 d264"], "gfx950", progress=told.append)
        (refusal,) = [report for report in told if report["descriptor"]]
        self.assertEqual((refusal["refused"], refusal["target"]), (1, "gfx950"))
        self.assertIn("head dim 264 has no kernel", refusal["failure"])
        with self.assertRaises(wavejit.InvalidArgument):
            wavejit.prebuild([LINE], "gfx1", progress=False)

    def test_a_bar_of_tqdm(self):
        """tqdm may not be here: one that takes down what it is told is put in its place."""
        bars = []

        class Bar:
            def __init__(self, **words):
                self.words, self.n, self.total = words, 0, None
                bars.append(self)

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def refresh(self):
                pass

        import types

        kept = {name: sys.modules.get(name) for name in ("tqdm", "tqdm.auto")}
        sys.modules["tqdm"], sys.modules["tqdm.auto"] = types.ModuleType("tqdm"), types.ModuleType("tqdm.auto")
        sys.modules["tqdm.auto"].tqdm = Bar
        try:
            wavejit.prebuild(SMALL, "gfx950", verify=False)
            sys.modules["tqdm"] = sys.modules["tqdm.auto"] = None  # importing them fails
            wavejit.prebuild(SMALL, "gfx950")
        finally:
            for name, module in kept.items():
                sys.modules.pop(name, None)
                if module is not None:
                    sys.modules[name] = module
        (bar,) = bars
        self.assertEqual((bar.n, bar.total, bar.words["desc"]), (1, 1, "prebuild"))


if __name__ == "__main__":
    unittest.main()
