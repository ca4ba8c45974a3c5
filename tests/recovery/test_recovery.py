"""What was planted, or is known of real data, is found again by the default, nothing set. Slow: `make recovery`.

Numbers are means over data seeds 0 to 4 where nothing else is said; of real data there is one table, and five seeds of
the fit.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from consilience.claims.reading import read_claims
from consilience.cli.main import app
from consilience.datasets.synthetic import bloc, planted
from consilience.models.mss.model import MSS
from consilience.models.mss.search import LOYAL
from consilience.models.registry import model
from consilience.models.vote import Vote
from consilience.results.decide import decide
from tests.searching import adjusted_rand, groups_of, planted_groups, search_of

pytestmark = pytest.mark.recovery
DATA = Path(os.environ.get("CONSILIENCE_DATA", Path(__file__).parents[3] / "shared" / "data"))
SEEDS = range(5)


def data_set(name, variant=""):
    """Claims and the path of the gold truths; skips where the data are not there."""
    folder = DATA / name
    if not folder.exists():
        pytest.skip(f"no data set at {folder}: set CONSILIENCE_DATA to the folder that holds it")
    return read_claims(folder / f"claims{variant}.csv.gz"), folder / f"truth{variant}.csv"


def accuracy_of(model, claims, gold, seeds):
    return np.array([model.fit(claims, seed=seed).score(gold).accuracy for seed in seeds])


@pytest.mark.parametrize("case", ["copied-leader", "six-groups", "malicious-bloc", "good-leader"])
def test_planted_groups_are_found_and_cost_nothing(case):
    found, given = [], []
    for seed in SEEDS:
        data = planted(case, seed=seed)
        claims = read_claims(data.claims)
        truth = planted_groups(data, claims)
        fit = MSS().fit(claims, seed=seed)
        assert adjusted_rand(truth, groups_of(fit)) >= 0.95
        found.append(fit.score(data.truth).accuracy)
        given.append(_accuracy_of_groups(fit, truth, data.truth))
    assert np.mean(found) >= np.mean(given) - 0.01
    assert np.min(np.subtract(found, given)) >= -0.02


@pytest.mark.parametrize("case", ["independent", "guessers"])
def test_negative_control_independent_sources_lose_nothing(case):
    found, given, voted = [], [], []
    for seed in SEEDS:
        data = planted(case, seed=seed)
        claims = read_claims(data.claims)
        fit = MSS().fit(claims, seed=seed)
        found.append(fit.score(data.truth).accuracy)
        given.append(_accuracy_of_groups(fit, np.arange(claims.n_sources), data.truth))
        voted.append(Vote().fit(claims, seed=seed).score(data.truth).accuracy)
        assert np.bincount(groups_of(fit)).max() <= 2
    assert np.mean(found) >= np.mean(given) - 0.01
    assert np.mean(found) >= np.mean(voted) - 0.001


def _accuracy_of_groups(fit, group, truth):
    """What the fit would have scored had it known the groups: everything but the search."""
    search = search_of(fit.claims)
    story = search.converge(search._fresh(group, LOYAL))
    decision, _ = decide(story.truth, fit.claims.first_candidate, fit.seed)
    return replace(fit, truth=story.truth, decision=decision).score(truth).accuracy


@pytest.mark.parametrize(
    ("n_objects", "least", "seeds", "n_starts"),
    [
        (10_000, 0.90, range(2), 3),  # two of the five seeds: half a minute each
        (100_000, 0.93, range(1), 1),  # one, from the start that wins: the whole default takes ten minutes
    ],
)
@pytest.mark.timeout(1800)
def test_a_bloc_whose_members_hardly_meet(n_objects, least, seeds, n_starts):
    accuracy, correlation = [], []
    for seed in seeds:
        data = bloc(n_objects=n_objects, seed=seed)
        claims = read_claims(data.claims)
        fit = MSS(n_starts=n_starts).fit(claims, seed=seed)
        accuracy.append(fit.score(data.truth).accuracy)
        table = data.groups.to_pydict()
        true = dict(zip(table["source"], table["accuracy"], strict=True))
        planted_accuracy = [true[name.as_py()] for name in claims.sources]
        correlation.append(np.corrcoef(planted_accuracy, fit.source_reliability[:, 0])[0, 1])
        assert np.bincount(groups_of(fit)).max() == pytest.approx(400, abs=20)
    assert np.mean(accuracy) >= least
    assert np.mean(correlation) >= 0.8


@pytest.mark.parametrize("n_objects", [20_000, 60_000])
def test_a_bloc_among_more_sources_than_can_be_compared(n_objects):
    data = bloc(n_sources=6_000, n_objects=n_objects)
    fit = MSS().fit(data.claims)
    assert fit.score(data.truth).accuracy >= 0.92
    assert np.bincount(groups_of(fit)).max() == pytest.approx(2_400, abs=100)


@pytest.mark.parametrize(
    ("name", "variant", "least", "seeds"),
    [
        ("book", "", 0.93, SEEDS),
        pytest.param(
            "book",
            "_simple",
            0.93,
            SEEDS,
            marks=pytest.mark.xfail(
                strict=True,
                reason="One cover of the hundred; on the silver list of 1,262 books it is the other way round "
                "(docs/decisions/0022-one-kind-of-open-values.md).",
            ),
        ),
        ("llm_mmlu_pro_a", "", 0.645, SEEDS),
    ],
)
@pytest.mark.timeout(900)
def test_real_data(name, variant, least, seeds):
    claims, gold = data_set(name, variant)
    accuracy = accuracy_of(MSS(), claims, gold, seeds)
    assert accuracy.mean() >= least, accuracy
    assert accuracy.mean() > accuracy_of(Vote(), claims, gold, range(10)).mean() + 0.03


@pytest.fixture(scope="module")
def flight_accuracy():
    claims, gold = data_set("flight")
    return accuracy_of(MSS(), claims, gold, SEEDS).mean()


def test_flight_is_well_above_voting(flight_accuracy):
    assert flight_accuracy > 0.85


@pytest.mark.xfail(
    strict=True,
    reason="Three stories lie within 125 nats of 34,600, and the right one (.938) is the last of them: whether sites "
    "of one origin are one voice decides which times are taken (docs/decisions/0022-one-kind-of-open-values.md).",
)
def test_flight(flight_accuracy):
    assert flight_accuracy >= 0.92


def test_book_on_the_command_line():
    claims, gold = DATA / "book" / "claims.csv.gz", data_set("book")[1]
    arguments = ["fit", str(claims), "--truth", str(gold), "--json", "--quiet", "--seed", "0"]
    run = CliRunner().invoke(app, arguments)
    assert json.loads(run.stdout)["accuracy"] >= 0.93


def test_too_small_and_too_large_a_concentration_cost_accuracy():
    """Figure 4 of the paper: κ fixed and all else learned, accuracy is highest inside the range and falls as κ → 0.

    To the right it falls less: a source that stands alone is still weighed by its own reliability.
    """
    claims, gold = data_set("book")
    few, *inside, many = (
        MSS(concentration=kappa).fit(claims).score(gold).accuracy for kappa in (1e-300, 1e3, 1e10, 1e300)
    )
    assert few <= max(inside) - 0.05
    assert many <= max(inside) - 0.01
    assert max(inside) >= 0.93


def test_the_order_of_the_paper_on_book():
    """Voting below TruthFinder, and voting below Accu below MSS; `claims_simple` is nearest to the paper's cleaning."""
    claims, gold = data_set("book", "_simple")
    right = {
        name: accuracy_of(model(name), claims, gold, SEEDS).mean()
        for name in ("vote", "truthfinder", "accu", "mss")
    }
    assert right["vote"] < right["truthfinder"]
    assert right["vote"] < right["accu"] < right["mss"]
