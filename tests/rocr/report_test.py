#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program under `wavejit sim` leaves: its report, its summary, the code of its end.

    report_test.py <wavejit> <program of findings.hip> <rocr|hip>
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

WAVEJIT, PROGRAM, FRONT = sys.argv[1:4]


def run(folder, program, *options):
    report = pathlib.Path(folder) / "report.json"
    report.unlink(missing_ok=True)
    words = [WAVEJIT, "sim", "--target", "gfx950", "--front", FRONT, "--json", str(report), *options, "--", *program]
    ended = subprocess.run(words, capture_output=True, text=True)
    assert [path.name for path in pathlib.Path(folder).iterdir()] == ["report.json"], "something else was left"
    return ended, json.loads(report.read_text())


def lines(ended, beginning):
    return [line for line in ended.stderr.splitlines() if line.startswith("wavejit simulated GPU: " + beginning)]


def main():
    with tempfile.TemporaryDirectory() as folder:
        ended, report = run(folder, [PROGRAM, "fine", "return"], "--check", "all", "--fail-on-findings")
        assert ended.returncode == 0, ended
        assert report["exit_code"] == 0 and report["findings"] == 0 and report["launches"] == 1, report
        (process,) = report["processes"]
        assert process["front"] == FRONT and process["finished"] and process["target"] == "gfx950", process
        (kernel,) = process["kernels"]
        assert kernel["name"] == "fine(int*)" and kernel["launches"] == 1 and kernel["findings"] == {}, kernel
        assert "cycles" not in report and "cycles" not in kernel, "nobody kept time"
        assert lines(ended, "") == [], "nothing was found, nobody asked: nothing is to be said"

        ended, report = run(folder, [PROGRAM, "fine", "exit"], "--summary")
        assert lines(ended, "1 launch of 1 kernel, 0 bytes copied, nothing found"), ended.stderr
        assert lines(ended, "  1 launch of fine(int*)"), ended.stderr
        assert report["processes"][0]["finished"], report

        # What is found changes the end of a program that ended well, and only where that was asked for.
        for options, code in ((["--fail-on-findings"], 1), ([], 0)):
            ended, report = run(folder, [PROGRAM, "race", "exit"], "--check", "races", *options)
            assert ended.returncode == code, ended
            assert report["exit_code"] == 0 and report["findings"] >= 1, report
            (process,) = report["processes"]
            (kernel,) = [row for row in process["kernels"] if row["findings"]]
            assert kernel["name"] == "race(int*)" and set(kernel["findings"]) == {"races"}, kernel
            assert process["findings"] == kernel["findings"] and report["findings"] == kernel["findings"]["races"]
            assert len(process["found"]) == report["findings"], process
            assert process["found"][0]["check"] == "races" and "race" in process["found"][0]["kernel"], process
            (line,) = lines(ended, f"{report['findings']} finding")
            assert f"(races {report['findings']}) in 1 kernel" in line, line

        # A program's own kernel is checked, whatever it is called.
        ended, report = run(folder, [PROGRAM, "named", "exit"], "--check", "races")
        assert report["findings"] >= 1, report

        # What nobody wants to hear of, in the kernels that are named; by its symbol or as in the source.
        for ignored, found in (("races:race*", False), ("races", False), ("all:_Z4race*", False), ("waits:race*,races:r", True)):
            ended, report = run(folder, [PROGRAM, "race", "exit"], "--check", "races", "--ignore", ignored, "--fail-on-findings")
            assert ended.returncode == found and (report["findings"] != 0) == found, (ignored, ended)
        ended = subprocess.run([WAVEJIT, "sim", "--front", FRONT, "--ignore", "race", "--", PROGRAM, "fine", "exit"], capture_output=True, text=True)
        assert ended.returncode == 2 and "WAVEJIT_SIM_IGNORE='race' is not understood; it takes a list of waits" in ended.stderr, ended

        # The compiled engine finds its library from either front's.
        with_engine = {**os.environ, "WAVEJIT_SIM_ENGINE": "compile", "WAVEJIT_SIM_TRANSLATE_AFTER": "0"}
        ended = subprocess.run([WAVEJIT, "sim", "--front", FRONT, "--", PROGRAM, "fine", "exit"], capture_output=True, text=True, env=with_engine)
        assert ended.returncode == 0 and "interpreted" not in ended.stderr, ended

        # A program that gives its processes no time to end leaves what was found until then.
        for how, end in (("abort", {"signal": 6}), ("quick", {"exit_code": 0})):
            ended, report = run(folder, [PROGRAM, "far", how], "--fail-on-findings")
            assert ended.returncode == (128 + 6 if how == "abort" else 1), ended
            assert {name: report.get(name) for name in end} == end, report
            (process,) = report["processes"]
            assert not process["finished"] and process["findings"] == {"fault": 1}, process

        # Each process has its own report, whatever started it.
        script = f"{PROGRAM} fine exit && {PROGRAM} race exit; exit 7"
        ended, report = run(folder, ["sh", "-c", script], "--check", "races", "--fail-on-findings")
        assert ended.returncode == 7 and report["exit_code"] == 7, "the program's own failure comes first"
        assert len({process["process"] for process in report["processes"]}) == 2, report
        assert report["launches"] == 3 and report["findings"] >= 1, report

        # Under AMD's runtime, copies are kernels or run on a copy engine.
        _, report = run(folder, [PROGRAM, "copy", "exit"])
        (process,) = report["processes"]
        assert process["copied_bytes"] == 1024 or (FRONT == "rocr" and process["launches"] == 2), process

        # A signal that ends `wavejit sim` ends the program, too, and leaves its report.
        running = subprocess.Popen([WAVEJIT, "sim", "--front", FRONT, "--json", f"{folder}/report.json", "--",
                                    "sh", "-c", f"{PROGRAM} fine exit; echo ready; exec sleep 60"], stdout=subprocess.PIPE, text=True)
        while "ready" not in running.stdout.readline():
            pass
        running.terminate()
        assert running.wait() == 128 + 15
        report = json.loads((pathlib.Path(folder) / "report.json").read_text())
        assert report["signal"] == 15 and report["launches"] == 1, report

        ended, report = run(folder, ["true"])
        assert ended.returncode == 0 and report["processes"] == [], ended
        assert "no process of the program used a simulated GPU" in ended.stderr, ended

        missing = pathlib.Path(folder) / "none" / "report.json"
        ended = subprocess.run([WAVEJIT, "sim", "--front", FRONT, "--json", str(missing), "--", "touch", f"{folder}/ran"],
                               capture_output=True, text=True)
        assert ended.returncode == 3 and ended.stderr.count("\n") == 1 and str(missing) in ended.stderr, ended
        assert not (pathlib.Path(folder) / "ran").exists(), "refused before the program starts"
    print("reports, summaries and codes are right")


main()
