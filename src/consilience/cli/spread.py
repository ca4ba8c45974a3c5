"""`consilience fit --runner ray`: claims that a cluster reads, and truths that it writes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from consilience.cli.output import Screen
from consilience.cli.record import record
from consilience.cli.summary import show_notes
from consilience.cli.tables import domain_of, read_gold
from consilience.errors import InputError

if TYPE_CHECKING:
    from consilience.models.base import Model
    from consilience.results.checkpoint import Checkpoint
    from consilience.results.spread import SpreadFit
    from consilience.runners.base import Runner

SHOWN = 5
"""Rows of each table that are shown."""
EVERY = 1.0
"""Seconds from a line of progress to the next, at the least."""


def chosen_runner(runner: str, address: str | None) -> Runner:
    """The runner of that name, a cluster's at this address."""
    from consilience.runners.choose import choose

    if runner == "ray":
        return choose(runner, address)
    if address is not None:
        raise InputError(f"--address is that of a Ray cluster: give --runner ray too. Got --runner {runner}.")
    return choose(runner)


def is_spread(runner: Runner, claims: str) -> bool:
    """Whether the cluster reads these claims itself: Parquet files. Others are read here and sent to it."""
    if runner.name != "ray":
        return False
    from consilience.claims.files import parquet_files
    from consilience.claims.frames import is_query

    return not is_query(claims) and bool(parquet_files(claims))


def fit_spread(
    screen: Screen,
    model: Model,
    runner: Any,
    claims: str,
    truth: str | None,
    known: str | None,
    *,
    source: str | None,
    object_: str | None,
    value: str | None,
    domain: str,
    on_conflict: str,
    on_missing: str,
    out: str | None,
    checkpoint: Checkpoint | None,
    seed: int,
    engine: str,
) -> dict[str, Any]:
    """Fit with a line a sweep, save, show: what `--json` prints."""
    from consilience.claims.words import quantity
    from consilience.models.mss.model import MSS
    from consilience.results.score import no_overlap

    if not isinstance(model, MSS):
        raise InputError(
            f"A cluster fits mss, and {model.name} works on a whole table at once: leave out --runner ray."
        )
    gold, helpful = (None if name is None else read_gold(name, object_, value) for name in (truth, known))
    address = runner.address
    how: dict[str, Any] = {"domain": domain_of(domain), "on_conflict": on_conflict, "on_missing": on_missing}
    screen.say(f"{'Starting Ray on this machine' if address is None else f'Connecting to {address}'} …")
    if dashboard := runner.connect():
        screen.say(f"The cluster at work: {dashboard}")
    table = runner.read(claims, source=source, object=object_, value=value, **how)
    screen.say(
        f"The cluster read {quantity(table.n_claims, 'claim')} by {quantity(table.n_sources, 'source')} on "
        f"{quantity(table.n_objects, 'object')}, in {quantity(len(table.parts), 'part')}."
    )
    show_notes(screen, table.notes)
    for name, truths in (("truth", gold), ("known", helpful)):
        if truths is None:
            continue
        n_found = table.n_with(truths)
        if not n_found:
            raise no_overlap(truths, name)
        if n_found < len(truths.objects):
            n_others = quantity(len(truths.objects) - n_found, "truth")
            screen.say(f"  {n_others} of {len(truths.objects):,} about objects without claims, not used.")

    told = -EVERY

    def progress(stage: str, sweep: int, bound: float) -> None:
        """A line for every sweep that takes its time, of the many short ones now and then one."""
        nonlocal told
        if time.monotonic() >= told + EVERY:
            told = time.monotonic()
            screen.say(f"  {stage}: sweep {sweep:,}, bound {bound:,.2f}")

    fit = model.fit(table, known=helpful, seed=seed, engine=engine, progress=progress, checkpoint=checkpoint)
    if out is not None:
        fit.save(out)
        if checkpoint is not None:
            checkpoint.remove()
    found = record(fit)
    if not screen.quiet:
        _show(screen, fit)
    if gold is not None:
        n_gold, n_known, accuracy = fit.accuracy(gold)
        found |= {"n_gold": n_gold, "n_known": n_known, "accuracy": accuracy}
        right = "none of them was left to find" if accuracy is None else f"{accuracy:.1%} right"
        screen.say(f"\nScore: {right}, {n_gold:,} objects with a gold truth")
    for warning in fit.warnings:
        screen.warn(warning)
    if out is not None:
        screen.say(f"\nSaved in {out}: the truths are the files of {out}/truths.parquet.")
    return found


def _show(screen: Screen, fit: SpreadFit) -> None:
    from consilience.report.formats import interval, share, shown

    groups, sources = fit.groups.slice(0, SHOWN).to_pylist(), fit.sources
    screen.table(
        f"{fit.n_groups:,} groups of sources, the largest",
        ["group", "kind", "sources", "reliability", "90 % interval"],
        [
            [
                f"{g['group']}",
                g["kind"],
                f"{g['n_sources']:,}",
                share(g["reliability"]),
                interval(g["low"], g["high"]),
            ]
            for g in groups
        ],
        text=2,
    )
    ends = [
        *sources.slice(0, SHOWN).to_pylist(),
        *sources.slice(max(len(sources) - SHOWN, SHOWN)).to_pylist(),
    ]
    screen.table(
        "Sources, the most and the least reliable",
        ["source", "group", "reliability", "90 % interval", "claims"],
        [
            [
                shown(str(s["source"]), 32),
                f"{s['group']}",
                share(s["reliability"]),
                interval(s["low"], s["high"]),
                f"{s['n_claims']:,}",
            ]
            for s in ends
        ],
        text=1,
    )
    state = "Converged" if fit.converged else "NOT converged"
    screen.say(
        f"\n{state} after {fit.sweeps:,} sweeps at a bound of {fit.bound:,.2f}, in {fit.seconds:,.1f} s"
    )
