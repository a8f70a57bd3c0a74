"""All figures and tables of the five papers' evaluations, by paper and number."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from stentor.errors import SettingsError
from stentor_lab.reproduce.experiment import Experiment, Paper


@cache
def papers() -> dict[str, Paper]:
    """The papers by the name that the command line has for them."""
    from stentor_lab.reproduce.papers import ap_tree, be_star_tree, covering, mics, mo_tree

    every = mics, covering, mo_tree, be_star_tree, ap_tree
    return {module.PAPER.key: module.PAPER for module in every}


Chosen = tuple[Paper, Experiment]


def chosen(paper: str | None = None, figure: str | None = None) -> list[Chosen]:
    """The experiments of *paper* (all papers without), or its one *figure*, that can be run."""
    known = papers()
    if paper is not None and paper not in known:
        near = get_close_matches(paper, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SettingsError(f"no paper {paper!r}; {hint}there are {', '.join(known)}")
    some = [known[paper]] if paper is not None else list(known.values())
    if figure is None:
        return [(one, each) for one in some for each in one.experiments if each.measure]
    assert paper is not None, "a figure is one of a paper"
    found = some[0].experiment(figure.lower().removeprefix("figure-").removeprefix("fig-"))
    if found is None:
        numbers = ", ".join(one.number for one in some[0].experiments)
        raise SettingsError(f"{paper} has no figure or table {figure!r}; there are {numbers}")
    if found.measure is None:
        raise SettingsError(f"{paper}, {found.name} cannot be run: {found.why_not}")
    return [(some[0], found)]
