#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bill of materials of what is built here, as SPDX 2.3 in JSON: whose code is inside, in which version.

    sbom.py <file> [part…]     the parts of cmake/third_party.txt: runtime, program, python (all, if none is named)

Packages are Debian's, of the system that builds. The same packages give the same bytes: the document's time is
SOURCE_DATE_EPOCH, else that of the last commit. ./dev package and ./dev wheel write one beside what they make, and wheels
have it inside.
"""
import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tomllib

import third_party

SOURCE = pathlib.Path(__file__).resolve().parent.parent
LICENCE = "Apache-2.0 WITH LLVM-exception"


def asked(*command: str) -> str:
    return subprocess.run(command, cwd=SOURCE, check=True, capture_output=True, text=True).stdout.strip()


def created() -> str:
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or asked("git", "log", "-1", "--format=%ct")
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def identifier(name: str) -> str:
    return "SPDXRef-" + "".join(c if c.isalnum() or c in ".-" else "-" for c in name)


def package(name: str, how: str, purpose: str) -> dict:
    # A development package of a C++ library that is linked statically: its source is what advisories name.
    version, source, source_version = asked("dpkg-query", "-W", "-f", "${Version}\t${source:Package}\t${source:Version}", name).split("\t")
    return {"SPDXID": identifier(name), "name": source, "versionInfo": source_version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
            "supplier": "Organization: Debian", "comment": f"{how}; {purpose}; from {name} {version}. THIRD-PARTY.md has its notice",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{name}@{version}?arch=amd64"}]}


def document(parts: set[str]) -> dict:
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    inside = [package(name, how, purpose) for name, where, how, purpose in third_party.entries() if not parts or parts & set(where.split())]
    own = {"SPDXID": "SPDXRef-wavejit", "name": "wavejit", "versionInfo": project["version"], "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
           "licenseConcluded": LICENCE, "licenseDeclared": LICENCE, "copyrightText": "NOASSERTION", "supplier": "Organization: The wavejit authors"}
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-wavejit"}]
    relations += [{"spdxElementId": "SPDXRef-wavejit", "relationshipType": "CONTAINS", "relatedSpdxElement": one["SPDXID"]} for one in inside]
    digest = hashlib.sha256(json.dumps(inside, sort_keys=True).encode()).hexdigest()
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"wavejit-{project['version']}",
            "documentNamespace": f"https://wavejit.example/spdx/{project['version']}/{digest}",
            "creationInfo": {"created": created(), "creators": ["Tool: scripts/sbom.py"]}, "packages": [own, *inside], "relationships": relations}


def main() -> int:
    path = pathlib.Path(sys.argv[1])
    path.write_text(json.dumps(document(set(sys.argv[2:])), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
