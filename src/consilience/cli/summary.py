"""What a person sees of claims and of a fit in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from consilience.cli.output import Screen

if TYPE_CHECKING:
    import pyarrow as pa

    from consilience.claims.encoding import Claims
    from consilience.results.fit import Fit
    from consilience.results.score import Score

SHOWN = 5
"""Rows of each table that are shown."""


def show_claims(screen: Screen, claims: Claims) -> None:
    """What was read, and what was merged or dropped on the way."""
    each = {"claimed": "those claimed for it", "common": "the same for all", "given": "as given"}[
        claims.domain
    ]
    mean_domain = claims.n_candidates / max(claims.n_objects, 1)
    screen.say(
        f"Read {_count(claims.n_claims, 'claim')} by {_count(claims.n_sources, 'source')} "
        f"on {_count(claims.n_objects, 'object')}; {mean_domain:.1f} possible values an object, {each}."
    )
    show_notes(screen, claims.notes)


def show_notes(screen: Screen, notes: Iterable[str]) -> None:
    """What was merged, dropped or added, in words and numbers."""
    for note in notes:
        screen.say(f"  {note}")


def show_fit(screen: Screen, fit: Fit, score: Score | None) -> None:
    """Truths, groups and sources, the score where there is gold, and whatever to be careful about."""
    from consilience.results.groups import groups_table
    from consilience.results.tables import against_majority, is_found, sources_table, truths_table

    if not screen.quiet:
        found = truths_table(fit).filter(is_found(fit))
        _show_truths(screen, fit, found, against_majority(fit))
        if fit.groups_found is not None:
            _show_groups(screen, fit, groups_table(fit.groups_found, fit.prior))
        _show_sources(screen, sources_table(fit))
        if score is not None:
            _show_score(screen, score)
        screen.say(f"\n{_how_it_went(fit)}")
    for warning in fit.warnings:
        screen.warn(warning)


def _show_truths(screen: Screen, fit: Fit, truths: pa.Table, against: pa.Table) -> None:
    n_different, n_given = against.num_rows, fit.claims.n_objects - truths.num_rows
    of = f"of {truths.num_rows:,} objects"
    if n_given:
        of += f" ({n_given:,} more {'was' if n_given == 1 else 'were'} given)"
    if n_different:
        screen.table(
            f"The truth differs from majority vote on {n_different:,} {of}; the surest",
            ["object", "truth", "majority says", "probability", "claims", "for majority"],
            [
                [
                    *_texts(r, "object", "value", "majority"),
                    _share(r["probability"]),
                    *_numbers(r, "n_claims", "n_majority"),
                ]
                for r in against.slice(0, SHOWN).to_pylist()
            ],
            text=3,
        )
    else:
        screen.say(f"\nThe truth differs from majority vote on none {of}")
    contested = [
        r for r in truths.sort_by("margin").slice(0, SHOWN).to_pylist() if r["runner_up"] is not None
    ]
    if contested:
        screen.table(
            "Least certain truths",
            ["object", "truth", "or else", "probability", "margin", "claims"],
            [
                [
                    *_texts(r, "object", "value", "runner_up"),
                    _share(r["probability"]),
                    _share(r["margin"]),
                    *_numbers(r, "n_claims"),
                ]
                for r in contested
            ],
            text=3,
        )
    if fit.ties:
        screen.say(f"{fit.ties:,} ties, decided by seed {fit.seed}")


def _show_groups(screen: Screen, fit: Fit, groups: pa.Table) -> None:
    worth, n = f"{fit.effective_sources.overall:.3g}", fit.claims.n_sources
    shared = sum(size > 1 for size in groups["n_sources"].to_pylist())
    apart = groups.num_rows - shared
    screen.table(
        f"{_count(shared, 'group')} and {_count(apart, 'source')} apart: the {n:,} are worth {worth} independent ones",
        ["group", "kind", "sources", "reliability", "90 % interval"],
        [
            [str(r["group"]), r["kind"], *_numbers(r, "n_sources"), _share(r["reliability"]), _interval(r)]
            for r in groups.slice(0, SHOWN).to_pylist()
        ],
        text=2,
    )
    more, left = max(shared - SHOWN, 0), apart - max(SHOWN - shared, 0)
    rest = [_count(more, "more group")] * (more > 0) + [f"{_count(left, 'source')} apart"] * (left > 0)
    if rest:
        screen.say(f"… and {' and '.join(rest)}")


def _show_sources(screen: Screen, sources: pa.Table) -> None:
    n = sources.num_rows
    rows = sources.to_pylist() if n <= 2 * SHOWN else sources.slice(0, SHOWN).to_pylist()
    columns = ["source", "group", "reliability", "90 % interval", "claims"]
    table = [_source_row(r) for r in rows]
    if n > 2 * SHOWN:
        table.append(["…", "", "", "", ""])
        table += [_source_row(r) for r in sources.slice(n - SHOWN).to_pylist()]
    filled = [i for i in range(len(columns)) if any(row[i] for row in table if row[0] != "…")]
    screen.table(
        "Sources, the most and the least reliable",
        [columns[i] for i in filled],
        [[row[i] for i in filled] for row in table],
        text=1,
    )


def _source_row(row: dict[str, Any]) -> list[str]:
    group = "" if row["group"] is None else str(row["group"])
    return [
        *_texts(row, "source"),
        group,
        _share(row["reliability"]),
        _interval(row),
        *_numbers(row, "n_claims"),
    ]


def _show_score(screen: Screen, score: Score) -> None:
    if score.accuracy is None:
        screen.say("\nScore: none, every object with a gold truth was given as known")
    else:
        right = round(score.accuracy * score.n_gold)
        screen.say(
            f"\nScore: {_share(score.accuracy)} right, {right:,} of {score.n_gold:,} objects with a gold truth"
        )
    if score.log_loss is not None:
        screen.say(f"  log loss {score.log_loss:.3f}, calibration error {score.calibration_error:.3f}")
    if score.n_outside:
        screen.say(f"  {score.n_outside:,} of them have a truth that nobody claims and count as wrong")
    if score.n_known:
        were, are = ("object was", "is") if score.n_known == 1 else ("objects were", "are")
        screen.say(f"  {score.n_known:,} {were} given as known and {are} not scored")
    if score.n_unclaimed:
        screen.say(f"  {score.n_unclaimed:,} more have no claims and are not scored")


def _how_it_went(fit: Fit) -> str:
    if fit.bound is None:
        return f"{fit.model} took {fit.seconds:.2g} s"
    state = "converged" if fit.converged else "stopped"
    return f"{fit.model} {state} after {fit.sweeps:,} sweeps in {fit.seconds:.2g} s, bound {fit.bound:,.2f}"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _texts(row: dict[str, Any], *names: str) -> list[str]:
    from consilience.results.wording import plain

    return [plain(row[name], 32) for name in names]


def _numbers(row: dict[str, Any], *names: str) -> list[str]:
    return [f"{row[name]:,}" for name in names]


def _share(x: float | None) -> str:
    return "" if x is None else f"{x:.1%}"


def _interval(row: dict[str, Any]) -> str:
    return "" if row["low"] is None else f"{row['low']:.0%} to {row['high']:.0%}"
