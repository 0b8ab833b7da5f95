# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program `wavejit`, which the package carries: `wavejit …` and `python -m wavejit …`."""
from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from . import _errors, _offline, _wavejit

PACKAGE = pathlib.Path(__file__).parent
PROGRAM = PACKAGE / "bin" / "wavejit"
# Where a C++ build finds the package's headers and library.
FOLDERS = {"--cmake-dir": "lib/cmake/wavejit", "--pkg-config-dir": "lib/pkgconfig", "--include-dir": "include"}


def main() -> int:
    """Runs the program with this process's arguments. `demo` and the folders are the package's own words."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["demo"]:
        from . import _demo

        return _demo.main(arguments[1:])
    if len(arguments) == 1 and arguments[0] in FOLDERS:
        return _tell_folder(PACKAGE / FOLDERS[arguments[0]])
    if not os.access(PROGRAM, os.X_OK):
        print(f"wavejit: the program is not at {PROGRAM}: the package is not whole", file=sys.stderr)
        return 127
    sys.stdout.flush()
    os.execv(PROGRAM, ["wavejit", *arguments])
    return 127


def _tell_folder(folder: pathlib.Path) -> int:
    if not folder.is_dir():
        print(f"wavejit: {folder} is not there: an installed package has it, a build's has not", file=sys.stderr)
        return _FILE
    print(folder)
    return 0


_OPTIONS = {name: (variable, flag) for name, variable, flag in _wavejit.engine_options()}
# Engine options that commands of the program take, and how they are written there.
FLAGS = {name: flag for name, (_, flag) in _OPTIONS.items() if flag}
# Those that it takes from the environment alone.
VARIABLES = tuple(name for name, (_, flag) in _OPTIONS.items() if not flag)
# The program's words for what Python calls otherwise.
_PYTHON_NAMES = {"--cache": "cache_mode", "--set": "settings", "--set-a": "a_settings", "--set-b": "b_settings"}
# Exit codes that say that there is no answer (tools/exit_code.h).
_FILE = 3
_ERRORS: dict[int, type[_errors.Error]] = {
    2: _errors.InvalidArgument, 3: _errors.IoError, 4: _errors.Unsupported, 5: _errors.CompileFailed, 6: _errors.DeviceError,
}  # fmt: skip


class Command(NamedTuple):
    """Arguments of the program, and what its environment gets beside this process's."""

    arguments: list[str]
    environment: dict[str, str]


def command(words: Iterable[str], options: Mapping[str, Any], of_engine: Mapping[str, str] | None = None) -> Command:
    """A command of the program. `options` are given as arguments where it takes them. Those of an engine, texts already, go
    through the environment: what means nothing to a kernel is no error there. All but its device: in the environment that
    also says which GPU a simulated HIP shows."""
    arguments, environment = list(words), dict[str, str]()
    given = _offline.option_texts(dict(options))
    for name, text in (of_engine or {}).items():
        if name == "device":
            given.setdefault(name, text)
        else:
            environment[_OPTIONS[name][0]] = text
    for name, text in given.items():
        if name in FLAGS:
            arguments.append(f"{FLAGS[name]}={text}")
        elif name in VARIABLES:
            environment[_OPTIONS[name][0]] = text
        else:
            raise TypeError(f"{name!r} is no option; accepted: {' '.join([*FLAGS, *VARIABLES])}")
    return Command(arguments, environment)


def answer(command: Command, codes: Iterable[int] = (0,), text: str | None = None, told: Callable[[str], object] | None = None) -> Any:
    """What the program says with --json, in a process of its own. `codes`: exit codes with which it has said something;
    with another the exception is raised that it stands for. `text` is its standard input. `told` gets each line that it
    writes to standard error meanwhile and returns whether it had a use for it; the others are written to this process's."""
    import json
    import subprocess
    import tempfile

    for word in (*command.arguments, *command.environment.values()):
        if "\0" in word:
            raise _errors.InvalidArgument(f"{word!r}; accepted: text without a zero byte")
    if not os.access(PROGRAM, os.X_OK):
        raise _errors.NotFound(f"the program is not at {PROGRAM}: the package is not whole")
    name, errors = f"wavejit {command.arguments[0]}: ", []
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
        given.write((text or "").encode())
        given.seek(0)
        process = subprocess.Popen([PROGRAM, *command.arguments, "--json"], stdin=given, stdout=out, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
                                   env={**os.environ, **command.environment})
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if line.startswith(name):
                    errors.append(line[len(name) :].rstrip())
                elif told is None or not told(line.rstrip("\n")):
                    sys.stderr.write(line)
            code = process.wait()
        finally:  # an interrupt, or what `told` raised
            process.kill()
            process.wait()
            process.stderr.close()
        out.seek(0)
        said = out.read()
    if code not in codes or not said:
        raise _error(code, " ".join(errors))
    return json.loads(said)


def _error(code: int, detail: str) -> _errors.Error:
    detail = detail.partition("; `wavejit ")[0]
    first, space, rest = detail.partition(" ")
    if first.startswith("--"):
        option = first.rstrip(":")
        detail = _PYTHON_NAMES.get(option, option[2:].replace("-", "_")) + first[len(option) :] + space + rest
    if code < 0:
        return _errors.Internal(f"the program was ended by signal {-code}{': ' if detail else ''}{detail}")
    if code == 6 and detail.startswith("device"):
        return _errors.NoDevice(detail)
    return _ERRORS.get(code, _errors.Internal)(detail or f"the program ended with exit code {code}")
