#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bill of materials names every package that is inside, with its version, and is made of the same bytes twice.

    check_sbom.py <scripts/sbom.py> <cmake/third_party.txt>
"""
import json
import pathlib
import subprocess
import sys
import tempfile

script, list_file = sys.argv[1:3]
wanted = {line.split("|")[0].strip() for line in pathlib.Path(list_file).read_text(encoding="utf-8").splitlines() if line and line[0] != "#"}
with tempfile.TemporaryDirectory() as scratch:
    one, other, runtime = (pathlib.Path(scratch, name) for name in ("one", "other", "runtime"))
    for path, parts in ((one, []), (other, []), (runtime, ["runtime"])):
        subprocess.run([sys.executable, script, path, *parts], check=True)
    assert one.read_bytes() == other.read_bytes(), "the same packages, other bytes"
    bill = json.loads(one.read_text(encoding="utf-8"))
    named = {reference["referenceLocator"].split("/")[2].split("@")[0]: entry for entry in bill["packages"] for reference in entry.get("externalRefs", [])}
    assert set(named) == wanted, set(named) ^ wanted
    assert all(entry["versionInfo"] for entry in bill["packages"])
    assert named["libssl-dev"]["name"] == "openssl", named["libssl-dev"]
    described = {relation["relatedSpdxElement"] for relation in bill["relationships"]}
    assert described == {entry["SPDXID"] for entry in bill["packages"]}
    small = {entry["name"] for entry in json.loads(runtime.read_text(encoding="utf-8"))["packages"]}
    assert "openssl" in small and not any(name.startswith("llvm") for name in small), small
print(f"{len(wanted)} packages are inside, and the bill of materials names them")
