#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""./dev soak in parts: what runs again, what is written down, which words are refused.   soak_test.py <source dir>

A tree of its own with this ./dev and its scripts, a ninja that builds nothing, and a ctest that plays the tests of tests.json.
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
PARTS = """# number | what | tests
1 | first things | ^a_
2 | second things | ^b_
3 | threads | tsan: races
4 | commands | commands:
"""
COMMANDS = "help = run help\nsoak = run soak 1\nbench = run no-such-command\n"
NINJA = "#!/bin/sh\necho \"$*\" >>ninja.txt\n"
CTEST = r'''#!/usr/bin/env python3
import json, os, pathlib, re, signal, sys, time
words = sys.argv[1:]
def after(word):
    return words[words.index(word) + 1] if word in words else None
folder = pathlib.Path(after("--test-dir"))
if "--show-only=json-v1" in words:
    folder = pathlib.Path(re.search('"(.*)"', (folder / "CTestTestfile.cmake").read_text()).group(1))
tests = json.loads((folder / "tests.json").read_text())
if "--show-only=json-v1" in words:
    labels = {name: [{"name": "LABELS", "value": [test["labels"]]}] for name, test in tests.items()}
    print(json.dumps({"tests": [
        {"name": name, "command": test.get("command", []), "properties": labels[name]} for name, test in tests.items()]}))
    sys.exit(0)
assert "-V" in words
listed = after("--tests-from-file")
chosen = pathlib.Path(listed).read_text().split() if listed else [name for name in tests if re.search(after("-R"), name)]
junit, failed = "<testsuite>", 0
for number, name in enumerate(chosen, 1):
    test = tests[name]
    with open("ran.txt", "a") as ran:
        ran.write(name + "\n")
    print(f"test {number}\n    Start {number}: {name}\n\n" + "".join(f"{number}: {line}\n" for line in test.get("says", [])), end="", flush=True)
    if test["ends"] == "killed":
        results, waited = pathlib.Path("build/soak/results.jsonl"), 0
        while waited < 1000 and (not results.exists() or len(results.read_text().splitlines()) < number - 1):
            time.sleep(0.01)
            waited += 1
        os.killpg(os.getpgrp(), signal.SIGKILL)
    print(f"{number}/{len(chosen)} Test #{number}: {name} .....{test['ends']}    1.25 sec", flush=True)
    well = "Passed" in test["ends"]
    failed += not well and test["ends"] != "***Skipped"
    inside = '<skipped message="SKIP_RETURN_CODE=77"/>' if test["ends"] == "***Skipped" else ""
    inside += f'<properties><property name="cmake_labels" value="{test["labels"]}"/></properties>'
    junit += f'<testcase name="{name}" time="1" status="{"run" if well else "notrun" if "skipped" in inside else "fail"}">{inside}</testcase>'
pathlib.Path(after("--output-junit")).write_text(junit + "</testsuite>")
sys.exit(8 if failed else 0)
'''


def test(ends: str = "   Passed", *says: str, labels: str = "room-soak") -> dict:
    return {"ends": ends, "says": says, "labels": labels}


class Soak(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name, "tree")
        shutil.copytree(SOURCE / "scripts", self.tree / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(SOURCE / "dev", self.tree)
        self.write("tests/soak_parts.txt", PARTS)
        self.write("scripts/commands.txt", COMMANDS)
        self.write("docs/README.md", "# Pages\n")
        self.write(".gitignore", "/build/\n/bin/\n/*.txt\n__pycache__/\n")
        self.write("CMakePresets.json", "{}\n")
        for name, text in (("ninja", NINJA), ("ctest", CTEST)):
            self.write(f"bin/{name}", text).chmod(0o755)
        self.git("init", "-q")
        self.commit()
        self.tests(a_one=test(), a_two=test(), a_three=test())
        self.tests("tsan", t_one=test(labels="runtime-races"))

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], cwd=self.tree, check=True, stdout=subprocess.PIPE)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Change something")

    def tests(self, preset: str = "dev", **tests: dict) -> None:
        self.write(f"build/{preset}/tests.json", json.dumps(tests))
        for name in ("build.ninja", "CTestTestfile.cmake", "preset.stamp"):
            self.write(f"build/{preset}/{name}", "")

    def environment(self) -> dict[str, str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("WAVEJIT_", "CTEST_"))}
        return environment | {"PATH": f"{self.tree}/bin:{os.environ['PATH']}", "WAVEJIT_SKIP_INSTALL": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def soak(self, *words: str) -> tuple[int, str, list[str]]:
        """Exit code, output, and the tests that ran."""
        (self.tree / "ran.txt").unlink(missing_ok=True)
        done = subprocess.run(["./dev", "soak", *words], cwd=self.tree, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              start_new_session=True, check=False)
        ran = self.tree / "ran.txt"
        return done.returncode, done.stdout, ran.read_text().split() if ran.exists() else []

    def rows(self) -> dict[str, dict]:
        lines = (self.tree / "build/soak/results.jsonl").read_text(encoding="utf-8").splitlines()
        return {row["test"]: row for row in map(json.loads, lines)}

    def last_line(self, output: str) -> str:
        return output.splitlines()[-1]

    def test_what_failed_runs_again(self):
        self.tests(a_one=test(), a_two=test("***Failed"), a_three=test("***Timeout"), b_one=test())
        status, output, ran = self.soak("1")
        self.assertEqual((status, ran), (1, ["a_one", "a_two", "a_three"]), output)
        self.assertIn("./dev soak '^(a_three|a_two)$'", output)
        self.assertEqual([self.rows()[name]["outcome"] for name in ran], ["passed", "failed", "timed out"])
        self.tests(a_one=test(), a_two=test(), a_three=test(), b_one=test())
        status, output, ran = self.soak("1")
        self.assertEqual((status, ran, self.last_line(output)), (0, ["a_two", "a_three"], "3 passed, 0 failed"), output)
        status, output, ran = self.soak("1")
        self.assertEqual((status, ran, self.last_line(output)), (0, [], "3 passed, 0 failed"), output)
        self.assertEqual(self.soak("1-2")[2], ["b_one"])

    def test_a_killed_run_goes_on(self):
        self.tests(a_one=test(), a_two=test("killed"), a_three=test())
        status, _, ran = self.soak("1")
        self.assertEqual((status, ran, list(self.rows())), (-9, ["a_one", "a_two"], ["a_one"]))
        with (self.tree / "build/soak/results.jsonl").open("a") as results:
            results.write('{"commit": "half a li')
        self.tests(a_one=test(), a_two=test(), a_three=test())
        status, output, ran = self.soak("1")
        self.assertEqual((status, ran), (0, ["a_two", "a_three"]), output)
        self.assertEqual(sorted(self.rows()), ["a_one", "a_three", "a_two"])

    def test_again(self):
        self.tests(a_one=test(), b_one=test())
        self.assertEqual(self.soak("1", "2")[2], ["a_one", "b_one"])
        self.assertEqual(self.soak("1", "--again")[2], ["a_one"])
        self.assertEqual(self.soak("1", "2")[2], [])

    def test_another_tree(self):
        self.tests(a_one=test())
        self.assertEqual(self.soak("1")[2], ["a_one"])
        self.write("docs/README.md", "# More pages\n")
        self.assertEqual(self.soak("1")[2], ["a_one"])
        self.assertEqual(self.soak("1")[2], [])
        self.commit()
        self.assertEqual(self.soak("1")[2], ["a_one"])
        self.git("checkout", "-q", "HEAD~1")
        self.assertEqual(self.soak("1")[2], [])

    def test_what_is_left_out_is_no_failure(self):
        self.tests(a_one=test("***Skipped"))
        for _ in range(2):
            status, output, ran = self.soak("1")
            self.assertEqual((ran, self.last_line(output)), (["a_one"], "0 passed, 0 failed, 1 skipped"), output)
        self.assertEqual(self.rows()["a_one"]["outcome"], "left out")

    def test_what_tests_say(self):
        self.tests(a_one=test("   Passed", "so far: 3/4 kernels, 0 failed", 'Test command: wavejit "invariance" "--device" "sim:gfx942" "--seed" "7"', " WAVEJIT_SIM_MATRIX=seeded:9",
                              "attention_merge on MI300X (simulated gfx942), seed 7: of 1600 pairs no bit differs"),
                   a_two=test("\x1b[32m   Passed\x1b[0m", "\x1b[32m[  PASSED  ]\x1b[0m 12 tests.", "[  PASSED  ] 1 test."),
                   a_three=test("   Passed", "Ran 5 tests in 0.1s"),
                   a_four=test("***Failed", "MI355X (simulated gfx950): 14 passed, 1 failed, 2 set aside, 0 lines not understood, in 3.7 s"))
        output = self.soak("1")[1]
        rows = self.rows()
        self.assertEqual([rows[name]["counts"] for name in rows], [{"pairs": 1600}, {"tests": 13}, {"tests": 5}, {"problems": 14}])
        self.assertEqual((rows["a_one"]["seeds"], rows["a_one"]["targets"]), (["--seed 7", "WAVEJIT_SIM_MATRIX=seeded:9"], ["gfx942"]))
        self.assertEqual((rows["a_one"]["seconds"], rows["a_four"]["targets"]), (1.25, ["gfx950"]))
        self.assertNotIn("1600", output)  # a test's own output is not shown
        self.assertIn("\n1: so far: 3/4 kernels, 0 failed\n", output)

        status, output, _ = self.soak("report")
        self.assertEqual((status, output), (0, "docs/soak-report.md\n"))
        page = (self.tree / "docs/soak-report.md").read_text(encoding="utf-8")
        self.assertRegex(page, r"\| 1 \| first things \| \w{12} \| [\d-]{10} \| 3 of 4 \| 1,600 pairs, 14 problems, 18 tests \| gfx942 \| "
                               r"`--seed 7`, `WAVEJIT_SIM_MATRIX=seeded:9` \| \d+ \| `a_four` failed \|\n")
        for words in ("| 2 | second things | not run |", "is simulated"):
            self.assertIn(words, page)
        for word in ("easured", str(self.tree), socket.gethostname()):
            self.assertNotIn(word, page)
        self.git("add", "-A")  # the page changes no result
        self.assertEqual(self.soak("1")[2], ["a_four"])

    def reported(self, part: int) -> str:
        self.assertEqual(self.soak("report")[0], 0)
        page = (self.tree / "docs/soak-report.md").read_text(encoding="utf-8")
        return next(line for line in page.splitlines() if line.startswith(f"| {part} | "))

    def test_a_report_keeps_what_ran_whole_at_an_earlier_commit(self):
        self.tests(a_one=test(), a_two=test(), b_one=test())
        self.soak("1")
        first, second = self.reported(1), self.reported(2)
        self.assertIn("| 2 of 2 |", first)
        self.commit()
        self.soak("2")
        self.assertEqual(self.reported(1), first)
        self.assertNotEqual(self.reported(2), second)
        self.soak("a_one")  # not all of the part
        self.assertEqual(self.reported(1), first)
        self.soak("1")
        self.assertNotEqual(self.reported(1), first)
        self.assertIn("| 2 of 2 |", self.reported(1))

    def test_a_report_of_nothing(self):
        status, output, _ = self.soak("report")
        self.assertEqual(status, 1)
        self.assertIn("no part has run at this commit", output)

    def test_tests_by_name(self):
        for _ in range(2):
            self.assertEqual(self.soak("one|three")[2], ["a_one", "a_three"])
        self.assertEqual(self.soak("1")[2], ["a_two"])

    def test_other_kinds(self):
        status, output, ran = self.soak("3")
        self.assertEqual((status, ran, self.rows()["t_one"]["preset"]), (0, ["t_one"], "tsan"), output)
        self.assertEqual((self.tree / "ninja.txt").read_text().split()[-1], "wavejit_race_tests")
        for commands in (["help", "1", "no-such-command"], ["no-such-command"]):
            status, output, _ = self.soak("4")
            self.assertEqual((status, [line.split()[-1] for line in output.splitlines() if line.startswith("[commands]")]), (1, commands), output)
            self.assertEqual(self.last_line(output), "2 passed, 1 failed")  # ./dev soak 1 has a report of its own
        self.write("scripts/commands.txt", "help = run help\n")
        self.assertEqual(self.soak("4")[0], 0)
        self.assertIn("exit 0  ./dev help\n", (self.tree / "build/commands.txt").read_text())

    def test_parts(self):
        shutil.rmtree(self.tree / "build")
        status, output, _ = self.soak("parts")
        self.assertEqual((status, output.splitlines()[1].split()), (0, ["1", "-", "0", "-", "first", "things"]), output)
        self.tests(a_one=test(), b_one=test("***Failed"), b_two=test())
        self.tests("tsan", t_one=test(labels="runtime-races"))
        self.soak("1-2")
        rows = [line.split() for line in self.soak("parts")[1].splitlines()[1:5]]
        self.assertEqual([row[:3] for row in rows], [["1", "1", "1"], ["2", "2", "1"], ["3", "1", "0"], ["4", "3", "0"]])
        self.assertRegex(rows[0][3], r"^0:00:\d\d$")
        self.assertEqual(rows[1][3], "-")

    def test_each_test_has_one_part(self):
        self.write("build/dev/CMakeCache.txt", "CMAKE_BUILD_TYPE:STRING=\n")
        left_out = test(labels="b") | {"command": ["bash", "/tests/left_out/missing.sh", "ROCM", "ROCm"]}
        for tests, said in (
                ({"b_one": test()}, ""), ({"b_one": left_out}, ""), ({"b_one": test(), "got": test(labels="torch")}, ""),
                ({}, "part 2, second things: no long test matches '^b_'"), ({"b_one": test(labels="b")}, "no long test matches"),
                ({"b_one": test(), "c_one": test()}, "c_one is in no part")):
            self.tests(a_one=test(), **tests)
            done = subprocess.run([sys.executable, SOURCE / "tests/hosts/soak_parts_test.py", self.tree, self.tree / "build/dev"], env=self.environment(),
                                  stdout=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, 1 if said else 0, done.stdout)
            self.assertIn(said, done.stdout)
        self.write("tests/soak_parts.txt", PARTS.replace("^b_", "^[ab]_"))
        self.tests(a_one=test(), b_one=test())
        done = subprocess.run([sys.executable, SOURCE / "tests/hosts/soak_parts_test.py", self.tree, self.tree / "build/dev"], env=self.environment(),
                              stdout=subprocess.PIPE, text=True, check=False)
        self.assertIn("a_one is in parts 1, 2", done.stdout)

    def test_refused_words(self):
        for words, said in (
                (["99"], "there is no part 99"), (["0"], "there is no part 0"), (["2-5"], "there is no part 5"), (["4-3"], "'4-3' has no part"),
                (["--twice"], "'--twice' is not known"), ([""], "'' is not known"), (["parts", "3"], "'3' is not known behind 'parts'"),
                (["vllm", "torch"], "'vllm' and 'torch'"), (["vllm", "3"], "'vllm' beside numbers"), (["vllm", "--again"], "--again goes with parts"),
                (["(vllm"], "'(vllm' is no regular expression")):
            status, output, ran = self.soak(*words)
            self.assertEqual((status, ran), (2, []), output)
            self.assertIn("./dev soak: " + said, output)
            self.assertIn("\n  2  second things\n", output)
        self.assertFalse((self.tree / "ninja.txt").exists())


if __name__ == "__main__":
    unittest.main()
