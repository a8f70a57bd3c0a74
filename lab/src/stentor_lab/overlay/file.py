"""The description of an overlay: brokers, links, policies, a space and a workload, in TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stentor.broker import Overlay, policy_of
from stentor.errors import SettingsError, StentorError
from stentor.index.catalog import index_class
from stentor.pipeline.config.reader import Text, TomlSection, nearest, shown
from stentor_lab.overlay.space import SpaceOf, read_space
from stentor_lab.overlay.workload import Workload, read_workload

Links = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Described:
    """What a file says."""

    links: Links
    policies: dict[str, str]  # by broker
    index: str
    space: SpaceOf
    workload: Workload

    def overlay(self) -> Overlay:
        """The overlay, with nothing in it; its space is made where a broker needs one."""
        is_ranged = any(policy.split()[0] == "mics" for policy in self.policies.values())
        return Overlay(
            self.policies,
            self.links,
            policy=self.policies,
            index=self.index,
            schema=self.workload.schema,
            space=self.space.made(self.workload) if is_ranged else None,
        )


def load(path: Path) -> Described:
    """What the file *path* says; a SettingsError lists every mistake in it."""
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None
    mistakes: list[str] = []
    described = _read(TomlSection("", raw, mistakes), path.parent)
    if mistakes:
        raise SettingsError(f"{path}:\n" + "\n".join(f"  {one}" for one in mistakes))
    return described


def _read(file: TomlSection, folder: Path) -> Described:
    links = _links(file)
    policy, index = file.get("policy", Text) or "covering", file.get("index", Text) or "auto"
    policies = _policies(file, links, policy)
    _tried(file, "index", index_class, index)
    kinds = file.inner("schema", "[schema]").pairs()
    space = read_space(file.inner("space", "[space]"))
    workload = read_workload(file.inner("workload", "[workload]"), folder, kinds)
    if kinds and workload.path is None:
        file.add_mistake("[schema]", "only records of a file have it, and no `records` are given")
    file.close()
    return Described(links, policies, index, space, workload)


def _links(file: TomlSection) -> Links:
    """The links, each of which joins two brokers that nothing has joined yet."""
    value: Any = file.any("links")
    if not isinstance(value, list) or not value:
        file.require("links", 'pairs of brokers, like [["west", "east"]]')
        if value is not None:
            file.add_mistake("links", f'expected pairs like [["west", "east"]], got {shown(value)}')
        return ()
    found: list[tuple[str, str]] = []
    tree: dict[str, str] = {}  # of each broker one that stands for all that it is joined with
    for link in value:
        match link:
            case [str(one), str(other)]:
                first, second = tree.get(one, one), tree.get(other, other)
                if first == second:
                    file.add_mistake("links", f"{shown(link)} closes a circle; expected a tree")
                    continue
                tree |= {one: first, other: second}
                tree |= {name: first for name, of in tree.items() if of == second}
                found.append((one, other))
            case _:
                file.add_mistake(
                    "links", f'expected pairs like ["west", "east"], got {shown(link)}'
                )
    for name in tree:
        if not name or "|" in name or "/" in name:
            file.add_mistake("links", f"a broker's name has neither '|' nor '/', got {shown(name)}")
    return tuple(found)


def _policies(file: TomlSection, links: Links, policy: str) -> dict[str, str]:
    """The policy of each broker that a link names."""
    policies = dict.fromkeys((name for link in links for name in link), policy)
    section = file.inner("brokers", "[brokers]")
    for name, own in section.pairs().items():
        if name in policies:
            policies[name] = str(own)
        elif links:
            section.add_mistake(name, "no link leads to this broker" + nearest(name, policies))
        _tried(section, name, policy_of, str(own))
    _tried(file, "policy", policy_of, policy)
    return policies


def _tried(section: TomlSection, key: str, make: Callable[[str], object], name: str) -> None:
    """Keep what *make* finds wrong with *name*, which *key* says."""
    try:
        make(name)
    except StentorError as error:
        section.add_mistake(key, str(error))
