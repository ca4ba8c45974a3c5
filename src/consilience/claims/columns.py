"""Which column is which: the caller's own names, ours, or the names that other packages use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from consilience.errors import Problem, nearest

KNOWN_NAMES = {
    "source": ("worker", "annotator", "rater", "judge", "labeler"),
    "object": ("task", "item", "example", "variable", "entity"),
    "value": ("label", "rating", "verdict", "answer", "claim"),
}


def find_columns(
    found: Sequence[str], asked: Mapping[str, str | None]
) -> tuple[dict[str, str], list[Problem]]:
    """The column of each role in `asked` ({role: name or None}), with a problem for each that cannot be told.

    A name given must exist. Otherwise our own name wins over those that others use. Case (of names that are not
    given) and spaces around a name matter only where nothing else tells two columns apart.
    """
    chosen: dict[str, str] = {}
    problems: list[Problem] = []
    given = {role: _named(name, found) for role, name in asked.items() if name is not None}
    taken = {name for names in given.values() for name in names}
    free = [name for name in found if name not in taken]
    for role, name in asked.items():
        candidates = given[role] if role in given else _candidates(role, free) or _candidates(role, found)
        if len(candidates) == 1:
            chosen[role] = candidates[0]
        elif candidates:
            problems.append(_ambiguous(role, candidates))
        else:
            problems.append(_missing(role, name, found))
    if not chosen and not given and problems:
        advice = f"{problems[0].advice} Where these are the cells of the first row, put a header above it."
        problems[0] = replace(problems[0], advice=advice)
    return chosen, problems + _repeated(chosen, found)


def _named(wanted: str, found: Sequence[str]) -> list[str]:
    """Columns of this name: written just so or, where there is none, with other spaces around it."""
    if wanted in found:
        return [wanted]
    return list(dict.fromkeys(name for name in found if name.strip() == wanted.strip()))


def _candidates(role: str, found: Sequence[str]) -> list[str]:
    """Columns that may be meant for a role."""
    same = _named(role, found) or [name for name in found if name.strip().lower() == role]
    return list(dict.fromkeys(same or [name for name in found if name.strip().lower() in KNOWN_NAMES[role]]))


def _missing(role: str, name: str | None, found: Sequence[str]) -> Problem:
    wanted = (name,) if name is not None else (role, *KNOWN_NAMES[role])
    close = list(dict.fromkeys(match for w in wanted for match in nearest(w, found, n=1)))[:2]
    hint = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
    lacks = f"There is no column {name!r}" if name is not None else f"No column is called {role!r}"
    advice = f'{hint}Say which column holds the {role}: {role}="{close[0] if close else "…"}".'
    if name is None:
        advice += f" Names understood without asking: {', '.join(wanted)}."
    return Problem("missing-column", f"{lacks}. Columns found: {_listed(found)}.", advice)


def _ambiguous(role: str, candidates: Sequence[str]) -> Problem:
    return Problem(
        "ambiguous-column",
        f"More than one column may be the {role}: {_listed(candidates)}.",
        f"Say which: {' or '.join(f'{role}={name!r}' for name in candidates)}.",
    )


def _repeated(chosen: Mapping[str, str], found: Sequence[str]) -> list[Problem]:
    """Columns that stand in the table twice, and columns chosen for two roles."""
    problems = []
    times = Counter(found)
    for name in dict.fromkeys(chosen.values()):
        roles = [role for role, column in chosen.items() if column == name]
        if times[name] > 1:
            what = f"The column {name!r} stands in the table {times[name]} times."
            problems.append(Problem("duplicate-column", what, "Give each column its own name."))
        if len(roles) > 1:
            what = f"The column {name!r} is named as {' and as '.join(roles)}."
            problems.append(Problem("duplicate-column", what, "Name a different column for each."))
    return problems


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:60]) for name in names[:20])
    return f"{shown}, … ({len(names)} in all)" if len(names) > 20 else shown or "none"
