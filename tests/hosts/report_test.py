#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The closing table of ./dev test, from reports as ctest writes them.   report_test.py <source dir>"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))


def case(name: str, status: str = "run", labels: str = "", inside: str = "", seconds: float = 0.1) -> str:
    return (f'<testcase name="{name}" classname="{name}" time="{seconds}" status="{status}">{inside}'
            f'<properties><property name="cmake_labels" value="{labels}"/></properties></testcase>')


class Report(unittest.TestCase):
    def run_report(self, stages: str, programs: dict[str, str] | None = None, **files: list[str]) -> tuple[int, list[str]]:
        with tempfile.TemporaryDirectory() as build:
            folder = pathlib.Path(build, "report")
            folder.mkdir()
            for name, text in (programs or {}).items():
                path = pathlib.Path(build, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            pathlib.Path(folder, "stages.tsv").write_text(stages, encoding="utf-8")
            for preset, cases in files.items():
                text = f'<?xml version="1.0"?><testsuite>{"".join(cases)}</testsuite>'
                pathlib.Path(folder, f"{preset}.xml").write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, SOURCE / "scripts" / "test_report.py", folder], stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout.splitlines()

    def test_counts_by_room_and_preset(self):
        status, lines = self.run_report(
            "build dev\t60\t100\t0\n",
            dev=[case("A.x", labels="cache-sanitize-threads"), case("A.y", labels="cache"), case("B.z", labels="tools")],
            asan=[case("A.x", labels="cache-sanitize-threads")])
        self.assertEqual(status, 0)
        rows = [line.split() for line in lines]
        self.assertIn(["cache", "2", "1"], rows)
        self.assertIn(["tools", "1", "-"], rows)
        self.assertIn(["all", "3", "1"], rows)
        self.assertIn(["build", "dev", "1:00", "1:40"], rows)
        self.assertEqual(lines[-1], "4 passed, 0 failed")

    def test_left_out_by_name_with_the_reason(self):
        status, lines = self.run_report("", dev=[
            case("A.x"),
            case("hip.one", "notrun", "hip_kernels", '<skipped message="SKIP_RETURN_CODE=77"/><system-out>left out: HIP\n</system-out>'),
            case("Comgr.two", "notrun", "codegen", '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
                 "<system-out>isolated_test.cpp:180: Skipped\ncomgr is not installed\n</system-out>")])
        self.assertEqual(status, 0)
        text = "\n".join(lines)
        self.assertIn("hip.one: HIP", text)
        self.assertIn("Comgr.two: comgr is not installed", text)
        self.assertEqual(lines[-1], "1 passed, 0 failed, 2 skipped")

    def test_failures_are_named(self):
        status, lines = self.run_report("test dev\t1\t1\t8\n", dev=[case("A.x"), case("A.y", "fail", inside='<failure message="Failed"/>')])
        self.assertEqual(status, 1)
        self.assertIn("  dev   A.y", lines)
        self.assertIn("  ./dev check 'A\\.y'", lines)
        self.assertEqual(lines[-1], "1 passed, 1 failed")

    def test_what_repeats_a_long_test(self):
        failure = '<failure message="Failed"/>'
        inside = '<testsuites><testsuite name="A"><testcase name="x" classname="A" status="run" time="0"><failure message="1 != 2"/></testcase></testsuite></testsuites>'
        status, lines = self.run_report("", {"dev/gtest/large_tests.xml": inside},
                                        dev=[case("large_tests", "fail", "attention-soak-together"), case("list_whole", "fail", "tools-soak", failure), case("A.y", "fail", "cache", failure)],
                                        commands=[case("fuzz 5", "fail", "commands", failure)])
        self.assertEqual(status, 1)
        first = lines.index("again")
        self.assertEqual(lines[first + 1:first + 4], ["  ./dev check 'A\\.y'", "  ./dev soak '^(large_tests|list_whole)$'", "  ./dev commands '^(fuzz 5)$'"])

    def test_a_test_whose_fixture_failed_is_no_skip(self):
        status, lines = self.run_report("", dev=[case("A.x", "notrun", inside="<skipped message=\"\"/>")])
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))

    def test_each_test_of_a_program_counts(self):
        inside = ('<testsuites><testsuite name="A"><testcase name="x" classname="A" status="run" time="0.5"/>'
                  '<testcase name="y" classname="A" status="run" time="0"><skipped message="no ROCm"/></testcase>'
                  '<testcase name="off" classname="A" status="notrun" time="0"/>{}</testsuite></testsuites>')
        broken = '<testcase name="z" classname="A" status="run" time="0"><failure message="1 != 2"/></testcase>'
        whole = case("cache_tests", labels="cache-sanitize")
        status, lines = self.run_report("", {"asan/gtest/cache_tests.xml": inside.format("")}, asan=[whole])
        self.assertEqual((status, lines[-1]), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("  asan  A.y: no ROCm", lines)
        again = case("compiled.cache_tests", labels="cache")  # the same tests in another way have names of their own
        status, lines = self.run_report("", {"dev/gtest/compiled.cache_tests.xml": inside.format("")}, dev=[again])
        self.assertEqual((status, lines[-1]), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("  dev   compiled.A.y: no ROCm", lines)
        failed = case("cache_tests", "fail", labels="cache-sanitize")
        status, lines = self.run_report("", {"asan/gtest/cache_tests.xml": inside.format(broken)}, asan=[failed])
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 1 skipped"))
        self.assertIn("  asan  A.z", lines)
        # All tests passed, and then something leaked.
        status, lines = self.run_report("", {"asan/gtest/cache_tests.xml": inside.format("")}, asan=[failed])
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 1 skipped"))
        self.assertIn("  asan  cache_tests", lines)
        # It crashed and left no report.
        status, lines = self.run_report("", asan=[failed])
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))

    def test_a_failed_stage_is_a_failure(self):
        status, lines = self.run_report("lint\t1\t1\t1\n", dev=[case("A.x")])
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))
        self.assertIn("  stage lint", lines)

    def test_no_tests_are_no_success(self):
        status, lines = self.run_report("")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))

    def test_the_slowest_thirty(self):
        _, lines = self.run_report("", dev=[case(f"A.t{i}", seconds=i) for i in range(40)])
        start = lines.index("slowest 30 tests")
        self.assertTrue(lines[start + 1].endswith("A.t39"))
        self.assertTrue(lines[start + 30].endswith("A.t10"))
        self.assertEqual(lines[start + 31], "")


if __name__ == "__main__":
    unittest.main()
