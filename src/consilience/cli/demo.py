"""`consilience demo`: the whole way from claims to an explanation, on a bundled example."""

from __future__ import annotations

from typing import Annotated

import typer

from consilience.cli.fit import fit_and_show, where_to_look
from consilience.cli.output import Screen
from consilience.cli.summary import show_claims
from consilience.memory import require_for_a_fit


def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for the result.")] = "consilience-demo",
    seed: Annotated[int, typer.Option(min=0, help="Decides everything random.")] = 0,
) -> None:
    """Fit a bundled example, in which counting heads fails.

    Forty travel sites name the capitals of sixty countries, and half of them copy one careless blog.

    \b
    Example:
      consilience demo --out out/demo
    """
    require_for_a_fit()
    from consilience.claims.reading import read_claims, read_truths
    from consilience.datasets.capitals import capitals
    from consilience.models.mss.model import MSS
    from consilience.models.vote import Vote
    from consilience.results.storage import check_target
    from consilience.results.tables import against_majority

    check_target(out)
    screen, made = Screen(), capitals(seed=seed)
    claims, gold = read_claims(made.claims), read_truths(made.truth)
    show_claims(screen, claims)
    fit, score = fit_and_show(screen, MSS(), claims, gold=gold, out=out, seed=seed)
    voted = Vote().fit(claims, seed=seed).score(gold)
    assert score is not None
    assert score.accuracy is not None
    assert voted.accuracy is not None
    screen.say(
        f"\nMajority vote is right on {voted.accuracy:.0%} of the countries, mss on {score.accuracy:.0%}."
    )
    if score.accuracy <= voted.accuracy:
        screen.say("Here the groups were missed; more starts may help: consilience fit --set n_starts=10.")
    truth = dict(zip(made.truth["object"].to_pylist(), made.truth["value"].to_pylist(), strict=True))
    for row in against_majority(fit).to_pylist():
        if row["value"] == truth[row["object"]]:
            screen.say(f"For example:\n\n{fit.explain(row['object'])}")
            break
    screen.say(f"\nThe result is in {out}. {where_to_look(out)}")
