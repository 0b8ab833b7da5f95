# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The disk cache: what it holds, whether that is whole, how it is bounded and carried elsewhere.

Every function takes the options that choose a cache, by an engine's names: cache_dir, cache_layers, cache_packaged,
cache_limit, cache_remote and more; what is not given is the environment's (docs/environment.md). Only `gc` and `copy` write.

>>> import tempfile, wavejit
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = wavejit.prebuild("softmax_lse fp32 b1 h1 q1 k64", "gfx950", progress=False, cache_dir=folder)
...     info = wavejit.cache.info(cache_dir=folder, cache_packaged=False)
>>> info.entries, info.damaged, list(info.targets)
(1, 0, ['gfx950'])
"""
from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import _wavejit
from ._errors import InvalidArgument, NotFound
from ._offline import option_texts, texts_of

__all__ = ["Collected", "Copied", "Entry", "Info", "Layer", "Share", "Verified", "copy", "entries", "gc", "info", "stats", "verify"]

# enum wavejit_cache_remote
REMOTE = {None: 0, "to": 1, "from": 2}


@dataclass(frozen=True)
class Entry:
    """One kernel on disk, read and verified. Where `damage` says what is wrong with it, what the file could not tell is
    empty or 0.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = wavejit.prebuild("softmax_lse fp32 b1 h1 q1 k64", "gfx950", progress=False, cache_dir=folder)
    ...     (entry,) = wavejit.cache.entries(cache_dir=folder, cache_packaged=False)
    >>> entry.key_text.split()[:2], entry.path.endswith(f"{entry.key}.wavejit"), entry.file_bytes > entry.code_object_bytes
    (['softmax_lse', 'fp32'], True, True)
    """

    path: str
    key: str
    """SHA-256 of key_text, hexadecimal: the file's name."""
    key_text: str
    target: str
    kernel_name: str
    damage: str | None
    """None: it is whole."""
    file_bytes: int
    code_object_bytes: int
    modified_unix_seconds: int
    vgprs: int
    lds_bytes: int
    kernarg_bytes: int
    layer: str
    """Where it lies: "user", the cache's own folder, or the path of a read-only layer."""


@dataclass(frozen=True)
class Share:
    """Whole entries and the bytes of their files.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = wavejit.prebuild("softmax_lse fp32 b1 h1 q1 k64", "gfx950", progress=False, cache_dir=folder)
    ...     share = wavejit.cache.info(cache_dir=folder, cache_packaged=False).targets["gfx950"]
    >>> share.entries, share.bytes > 5000
    (1, True)
    """

    entries: int
    bytes: int


@dataclass(frozen=True)
class Info:
    """Counts over all layers: whole entries, their bytes, damaged ones, and whole ones by target.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wavejit.cache.info(cache_dir=folder, cache_packaged=False)
    Info(entries=0, bytes=0, damaged=0, targets={})
    """

    entries: int
    bytes: int
    damaged: int
    targets: dict[str, Share]


@dataclass(frozen=True)
class Verified:
    """How many entries were looked at, and those that are damaged.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wavejit.cache.verify(cache_dir=folder, cache_packaged=False)
    Verified(entries=0, damaged=[])
    """

    entries: int
    damaged: list[Entry]

    @property
    def ok(self) -> bool:
        """Whether every entry is whole."""
        return not self.damaged


@dataclass(frozen=True)
class Layer:
    """One layer of the cache. `stats` has them in the order in which they are asked; a remote one is last, and uncounted.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (layer,) = wavejit.cache.stats(cache_dir=folder, cache_packaged=False)
    >>> layer.name, layer.path == folder, layer.bytes, layer.state
    ('user', True, 0, None)
    """

    name: str
    """That is "user" for the cache's own folder, "remote", else the path."""
    path: str
    """The folder or archive; of a remote layer the address without the password."""
    writable: bool
    entries: int
    """Whole ones."""
    bytes: int
    damaged: int
    limit_bytes: int | None
    """The size limit of the cache's own folder; None: no limit."""
    state: str | None
    """Whether a remote layer answers, or why not; None: the layer is no remote one."""


@dataclass(frozen=True)
class Collected:
    """What `gc` found and did. `failures`: files and folders that could not be read or removed.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wavejit.cache.gc(cache_dir=folder)
    Collected(entries=0, bytes=0, evicted=0, evicted_bytes=0, leftovers_removed=0, failures=0)
    """

    entries: int
    """Before it."""
    bytes: int
    """Before it."""
    evicted: int
    evicted_bytes: int
    leftovers_removed: int
    """Temporary files and locks of processes that are no more."""
    failures: int


@dataclass(frozen=True)
class Copied:
    """What `copy` did: entries copied, already present there, left behind as damaged, failed; bytes of what was copied.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wavejit.cache.copy(folder, f"{folder}/layer")
    Copied(copied=0, present=0, damaged=0, failed=0, bytes=0)
    """

    copied: int
    present: int
    damaged: int
    failed: int
    bytes: int


def entries(**options: Any) -> list[Entry]:
    """Every layer's entries, each read and verified as before a load: format, key text against name, target, checksum.
    A layer that cannot be used is one damaged entry.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = wavejit.prebuild("softmax_lse fp32 b1 h1 q1 k64", "gfx950", progress=False, cache_dir=folder)
    ...     (entry,) = wavejit.cache.entries(cache_dir=folder, cache_packaged=False)
    >>> entry.kernel_name, entry.target, entry.damage, entry.layer
    ('softmax_lse_fp32_fp32_resident_vectors_gfx950', 'gfx950', None, 'user')
    """
    return [_entry(told) for told in _wavejit.cache_entries(option_texts(options))]


def _entry(told: dict[str, Any]) -> Entry:
    for text in ("path", "key", "key_text", "target", "kernel_name", "layer"):
        told[text] = told[text] or ""
    return Entry(**told)


def info(**options: Any) -> Info:
    """Counts of entries and bytes, by target too.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wavejit.cache.info(cache_dir=folder, cache_packaged=False)
    Info(entries=0, bytes=0, damaged=0, targets={})
    """
    found = entries(**options)
    whole = [entry for entry in found if entry.damage is None]
    targets = {}
    for target in sorted({entry.target for entry in whole}):
        sizes = [entry.file_bytes for entry in whole if entry.target == target]
        targets[target] = Share(len(sizes), sum(sizes))
    return Info(len(whole), sum(entry.file_bytes for entry in whole), len(found) - len(whole), targets)


def verify(**options: Any) -> Verified:
    """Looks at every entry. A damaged one fails no call: it is compiled anew when it is next asked for.

    Raises NotFound when `cache_dir` is given and there is no such folder.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wavejit.cache.verify(cache_dir=folder, cache_packaged=False).ok
    True
    """
    found = entries(**options)
    folder = options.get("cache_dir") or options.get("cache_directory")
    if folder and not found and not os.path.isdir(folder):
        raise NotFound(f"cache_dir = {os.fspath(folder)!r}: there is no such folder")
    return Verified(len(found), [entry for entry in found if entry.damage is not None])


def stats(**options: Any) -> list[Layer]:
    """The layers in the order in which they are asked, with what each holds. Asks a remote one whether it answers.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (layer,) = wavejit.cache.stats(cache_dir=folder, cache_limit="512MiB", cache_packaged=False)
    >>> layer.name, layer.writable, layer.entries, layer.limit_bytes
    ('user', True, 0, 536870912)
    """
    layers = _wavejit.cache_layers(option_texts(options))
    return [Layer(**{**told, "limit_bytes": told["limit_bytes"] or None}) for told in layers]


def gc(any_age: bool = False, **options: Any) -> Collected:
    """Makes the cache's own folder keep its limit now, as happens in the background after a compile: what was used longest
    ago goes first. `any_age`: also what was published within the last minute. Layers are never touched.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = wavejit.prebuild("softmax_lse fp32 b1 h1 q1 k64", "gfx950", progress=False, cache_dir=folder)
    ...     collected = wavejit.cache.gc(cache_dir=folder, cache_limit="1MiB")
    >>> collected.entries, collected.evicted
    (1, 0)
    """
    return Collected(**_wavejit.cache_sweep(bool(any_age), option_texts(options)))


def copy(source: str | os.PathLike[str] | None = None, destination: str | os.PathLike[str] | None = None, *,
         targets: str | Iterable[str] | None = None, archive: bool = False, remote: str | None = None, **options: Any) -> Copied:
    """Copies entries between the cache, folders that serve as layers, and archives; each is verified on the way, and what is
    there already is left alone.

    source
        A folder or an archive. None: the cache that the options name, with its layers.
    destination
        A folder, or with `archive` the file to write, which appears whole or not at all. None: the cache's own folder.
    targets
        "gfx950", a list of them, None for all.
    remote
        "to": the whole cache to the remote layer; "from": what that has, to the cache's own folder. Without source and
        destination.

    Raises NotFound when the source is not there, IoError when something could not be read or written, or when there is
    nothing to put into an archive.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = wavejit.prebuild("softmax_lse fp32 b1 h1 q1 k64", "gfx950", progress=False, cache_dir=folder)
    ...     copied = wavejit.cache.copy(None, f"{folder}/all.wavejit-archive", archive=True, cache_dir=folder, cache_packaged=False)
    >>> copied.copied, copied.failed
    (1, 0)
    """
    if remote not in REMOTE:
        raise InvalidArgument(f"remote = {remote!r}; accepted: 'to', 'from', None")
    names = None if targets is None else ",".join(texts_of("targets", targets, "names of targets"))
    places = [None if place is None else os.fspath(place) for place in (source, destination)]
    return Copied(**_wavejit.cache_copy(places[0], places[1], names, bool(archive), REMOTE[remote], option_texts(options)))
