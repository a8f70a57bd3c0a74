"""Jars that are fetched once, each checked against its sum: by Ivy, which PySpark brings along.

A list has a line per jar: its sha256, and its coordinates `group:artifact:version`. Nothing
beyond the list is fetched.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import quoteattr

import pyspark

from stentor._cache import private_folder
from stentor.errors import SettingsError
from stentor.pipeline.spark.java import MISSING, find_java

#: Seconds; 45 jars of 44 MB take half a minute.
MOST_SECONDS: Final = 240


class Jar(NamedTuple):
    """One line of a list."""

    sha256: str
    group: str
    artifact: str
    version: str

    @property
    def file(self) -> str:
        """The jar's name in a folder of jars."""
        return f"{self.artifact}-{self.version}.jar"


def read_list(list_file: Path) -> list[Jar]:
    """The jars that *list_file* names."""
    lines = list_file.read_text("utf-8").splitlines()
    pairs = (line.split() for line in lines if line.strip() and not line.startswith("#"))
    return [Jar(sha256, *coordinates.split(":")) for sha256, coordinates in pairs]


def fetched_jars(list_file: Path, folder: Path | None = None) -> list[Path]:
    """The jars of *list_file* in *folder* (by default the user's cache), fetched where missing.

    SettingsError where they cannot be had, or are not what they were.
    """
    jars = read_list(list_file)
    folder = folder or _cache()
    missing = [jar for jar in jars if not _is_there(jar, folder)]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        _fetch(missing, folder)
    return [folder / jar.file for jar in jars]


def _cache() -> Path:
    return private_folder("jars") or Path(tempfile.mkdtemp(prefix="stentor-jars-"))


def _is_there(jar: Jar, folder: Path) -> bool:
    file = folder / jar.file
    return file.is_file() and _sum(file) == jar.sha256


def _sum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _fetch(jars: list[Jar], folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as scratch:
        log = _run_ivy(jars, Path(scratch))
        for jar in jars:
            found = Path(scratch, "jars", jar.file)
            if not found.is_file():
                raise _unavailable(jars, folder, log)
            if _sum(found) != jar.sha256:
                raise SettingsError(
                    f"{jar.file} has the sha256 {_sum(found)}, expected {jar.sha256}: it is not "
                    "the file that this version of Stentor was tested with, and is not used"
                )
        for jar in jars:
            Path(scratch, "jars", jar.file).replace(folder / jar.file)


def _run_ivy(jars: list[Jar], scratch: Path) -> str:
    """Have Ivy put *jars* into the folder `jars` of *scratch*; what it says."""
    java = find_java()
    if java is None:
        raise SettingsError(MISSING)
    ivy = next(Path(pyspark.__file__).with_name("jars").glob("ivy-*.jar"))
    wanted = scratch / "ivy.xml"
    wanted.write_text(_ivy_file(jars), "utf-8")
    command = [
        java,
        f"-Duser.home={scratch}",  # a Maven repository in the real one would be read first
        *("-jar", ivy, "-cache", scratch / "cache", "-ivy", wanted),
        *("-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", scratch / "jars" / "[artifact]-[revision].[ext]"),
    ]
    try:
        ran = subprocess.run(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {MOST_SECONDS} s"
    return ran.stdout


def _ivy_file(jars: list[Jar]) -> str:
    lines = [
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} "
        f'rev={quoteattr(jar.version)} transitive="false"/>'
        for jar in jars
    ]
    return (
        '<ivy-module version="2.0"><info organisation="stentor" module="jars"/>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )


def _unavailable(jars: list[Jar], folder: Path, log: str) -> SettingsError:
    names = ", ".join(":".join(jar[1:]) for jar in jars[:4]) + (", …" if len(jars) > 4 else "")
    said = [line.strip() for line in log.splitlines() if line.strip()]
    return SettingsError(
        f"{len(jars)} jars could not be fetched ({names}); is this machine offline? Put the files "
        f"into {folder} yourself, named like {jars[0].file}, or try again. "
        f"The last that was said: {said[-1] if said else 'nothing'}"
    )
