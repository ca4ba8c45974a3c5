"""What a person sees of claims and of a fit in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from consilience.cli.output import Screen

if TYPE_CHECKING:
    from consilience.claims.encoding import Claims
    from consilience.report.summary import Gold, Groups, Source, Sources, Summary

SHOWN = 5
"""Rows of each table that are shown; the summary may hold more."""
NAME = 32
"""Characters of a name."""


def show_claims(screen: Screen, claims: Claims) -> None:
    """What was read, and what was merged or dropped on the way."""
    from consilience.claims.words import quantity

    each = {"claimed": "those claimed for it", "common": "the same for all", "given": "as given"}[
        claims.domain
    ]
    mean_domain = claims.n_candidates / max(claims.n_objects, 1)
    screen.say(
        f"Read {quantity(claims.n_claims, 'claim')} by {quantity(claims.n_sources, 'source')} "
        f"on {quantity(claims.n_objects, 'object')}; {mean_domain:.1f} possible values an object, {each}."
    )
    show_notes(screen, claims.notes)


def show_notes(screen: Screen, notes: Iterable[str]) -> None:
    """What was merged, dropped or added, in words and numbers."""
    for note in notes:
        screen.say(f"  {note}")


def show_fit(screen: Screen, summary: Summary) -> None:
    """Truths, groups and sources, the score where there is gold, and how the fit went."""
    from consilience.report import words

    _show_majority(screen, summary)
    _show_least_certain(screen, summary)
    if summary.groups is not None:
        _show_groups(screen, summary, summary.groups)
    if together := words.strangers(summary.course):
        screen.say(f"\n{together}")
    _show_sources(screen, summary.sources)
    if summary.gold is not None:
        _show_gold(screen, summary.gold)
    screen.say(f"\n{words.course(summary.course)}")


def _show_majority(screen: Screen, summary: Summary) -> None:
    from consilience.report import words
    from consilience.report.formats import share, shown

    said = words.majority(summary.majority).removesuffix(".")
    if not summary.majority.cases:
        screen.say(f"\n{said}")
        return
    screen.table(
        f"{said}; the most consequential",
        ["object", "truth", "majority says", "probability", "claims", "for majority"],
        [
            [
                *(shown(text, NAME) for text in (case.object, case.value, case.majority)),
                share(case.probability),
                f"{case.n_claims:,}",
                f"{case.n_majority:,}",
            ]
            for case in summary.majority.cases[:SHOWN]
        ],
        text=3,
    )


def _show_least_certain(screen: Screen, summary: Summary) -> None:
    from consilience.report import words
    from consilience.report.formats import share, shown

    certainty = summary.certainty
    if certainty.least:
        screen.table(
            "Least certain truths",
            ["object", "truth", "or else", "probability", "margin", "claims"],
            [
                [
                    *(shown(text, NAME) for text in (row.object, row.value, row.runner_up)),
                    share(row.probability),
                    share(row.margin),
                    f"{row.n_claims:,}",
                ]
                for row in certainty.least[:SHOWN]
            ],
            text=3,
        )
    if certainty.n_ties:
        screen.say(words.ties(certainty))


def _show_groups(screen: Screen, summary: Summary, groups: Groups) -> None:
    from consilience.claims.words import quantity
    from consilience.report.formats import interval, share

    shared, apart = groups.n_shared, groups.n_apart
    n, overall = summary.sources.n, summary.worth.overall
    worth = f": the {n:,} are worth {quantity(overall, 'independent one')}" if n > 1 else ""
    title = f"{quantity(shared, 'group')} and {quantity(apart, 'source')} apart{worth}"
    if not shared:
        screen.say(f"\n{title}")
        return
    screen.table(
        title,
        ["group", "kind", "sources", "reliability", "90 % interval"],
        [
            [f"{g.group}", g.kind, f"{g.n_sources:,}", share(g.reliability), interval(g.low, g.high)]
            for g in groups.largest[: min(shared, SHOWN)]
        ],
        text=2,
    )
    if shared > SHOWN:
        screen.say(f"… and {quantity(shared - SHOWN, 'more group')}")


def _show_sources(screen: Screen, sources: Sources) -> None:
    listed = (*sources.best, *sources.worst)
    columns = ["source", "group", "reliability", "90 % interval", "claims"]
    if sources.n <= 2 * SHOWN:
        table = [_source_row(source) for source in listed]
    else:
        first, last = listed[:SHOWN], listed[-SHOWN:]
        table = [*map(_source_row, first), ["…", "", "", "", ""], *map(_source_row, last)]
    filled = [i for i in range(len(columns)) if any(row[i] for row in table if row[0] != "…")]
    screen.table(
        "Sources, the most and the least reliable",
        [columns[i] for i in filled],
        [[row[i] for i in filled] for row in table],
        text=1,
    )


def _source_row(source: Source) -> list[str]:
    from consilience.report.formats import interval, share, shown

    return [
        shown(source.source, NAME),
        "" if source.group is None else f"{source.group}",
        share(source.reliability),
        interval(source.low, source.high),
        f"{source.n_claims:,}",
    ]


def _show_gold(screen: Screen, gold: Gold) -> None:
    from consilience.report import words
    from consilience.report.formats import share

    if gold.accuracy is None:
        screen.say(f"\n{words.UNSCORED}")
    else:
        of = f"{gold.n_right:,} of {gold.n_gold:,} objects with a gold truth"
        screen.say(f"\nScore: {share(gold.accuracy)} right, {of}")
    for line in words.scored(gold):
        screen.say(f"  {line}")
