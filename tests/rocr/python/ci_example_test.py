# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/rocm_ci as far as it goes without containers: the workflow's own commands run here, and the Containerfile names what there is.

    ci_example_test.py <folder of the example> <folder of the program wavejit>
"""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml  # Debian's python3-yaml, which the documents' site brings

EXAMPLE, PROGRAMS = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
WORKFLOW = yaml.safe_load((EXAMPLE / "workflow.yml").read_text())
(JOB,) = WORKFLOW["jobs"].values()
INSTRUCTIONS = {"FROM", "COPY", "RUN", "WORKDIR", "CMD", "ENV", "ARG"}


def instructions():
    """The Containerfile as pairs of instruction and its text, lines joined."""
    text = re.sub(r"\\\n", " ", (EXAMPLE / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(line.split(None, 1)) for line in lines]


def run(command, folder):
    environment = os.environ | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-e", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


class Workflow(unittest.TestCase):
    def test_has_what_a_workflow_must_have(self):
        # In YAML 1.1 `on` is a truth value; GitHub reads 1.2.
        self.assertEqual(WORKFLOW[True], ["push", "pull_request"])
        self.assertIn("runs-on", JOB)
        self.assertEqual(set(JOB["strategy"]["matrix"]), {"target"})
        for step in JOB["steps"]:
            self.assertEqual(len({"run", "uses"} & set(step)), 1, step)
            self.assertLessEqual(set(step), {"run", "uses", "name", "with"}, step)
            self.assertLessEqual(set(re.findall(r"\$\{\{\s*(.*?)\s*\}\}", step.get("run", ""))), {"matrix.target"})

    def commands(self, target):
        return [re.sub(r"\$\{\{\s*matrix\.target\s*\}\}", target, step["run"]) for step in JOB["steps"] if "run" in step]

    def test_its_commands_run(self):
        targets = JOB["strategy"]["matrix"]["target"]
        for target in targets if os.environ.get("WAVEJIT_TEST_WHOLE") == "1" else targets[:1]:  # another one in the test below
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy(EXAMPLE / "row_sums.hip", folder)
                lines = []
                for command in self.commands(target):
                    done = run(command, folder)
                    self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
                    lines += re.findall(r"GPU \d: 37 rows are right", done.stdout)
                self.assertEqual([line[4] for line in lines], ["0", "0", "0", "1"])

    def test_a_mistake_fails_the_step(self):
        build, *_ = self.commands("gfx950")
        check = next(command for command in self.commands("gfx950") if "--check all" in command)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(EXAMPLE / "row_sums.hip", folder)
            self.assertEqual(run(build + " -DFORGET_THE_BARRIER", folder).returncode, 0)
            done = run(check, folder)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"\(row_sums\.hip:\d+\).*races: .* LDS byte 0x")


class Container(unittest.TestCase):
    def test_knows_its_instructions_and_its_files(self):
        for instruction, text in instructions():
            self.assertIn(instruction, INSTRUCTIONS)
            if instruction == "COPY":
                source = text.split()[0]
                # The packages are put there by hand, as the first lines say.
                self.assertTrue(source == "packages/*.deb" or glob.glob(str(EXAMPLE / source)), source)
            if instruction in ("RUN", "CMD"):
                self.assertEqual(subprocess.run(["sh", "-n", "-c", text], check=False).returncode, 0, text)

    def test_its_packages_are_those_that_are_used_here(self):
        (text,) = [text for instruction, text in instructions() if instruction == "RUN"]
        names = [name for part in re.findall(r"--no-install-recommends ([^&]*)", text) for name in part.split() if not name.startswith("/")]
        self.assertIn("libamdhip64-dev", names)
        known = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *names], capture_output=True, text=True, check=False).stdout
        self.assertEqual({line.split()[0] for line in known.splitlines() if line.endswith(" installed")}, set(names))

    def test_its_command_is_the_workflows(self):
        (command,) = [text for instruction, text in instructions() if instruction == "CMD"]
        for part in command.split(" && "):
            self.assertIn(part, [re.sub(r"\$\{\{\s*matrix\.target\s*\}\}", "gfx950", step.get("run", "")) for step in JOB["steps"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
