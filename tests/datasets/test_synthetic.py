from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from consilience.claims.encoding import Float, Int
from consilience.datasets.synthetic import CASES, Simulated, bloc, from_model, planted
from consilience.errors import SettingsError, UnknownNameError

PLANTED_VOTE = {
    "copied-leader": 0.425,
    "six-groups": 0.696,
    "malicious-bloc": 0.218,
    "good-leader": 0.804,
    "independent": 0.997,
    "guessers": 0.890,
}
PLANTED_GROUPS = {
    "copied-leader": [30] + [1] * 12,
    "six-groups": [25] + [5] * 5,
    "malicious-bloc": [25] + [3] * 5,
    "good-leader": [30] + [1] * 12,
    "independent": [1] * 60,
    "guessers": [1] * 50,
}


def indices(column: pa.ChunkedArray, names: pa.ChunkedArray) -> Int:
    """(n,) where each cell of `column` stands among the distinct `names`."""
    return np.asarray(pc.index_in(column, value_set=pc.unique(names)))


def right(simulated: Simulated) -> NDArray[np.bool_]:
    """(n_claims,) whether each claim is right."""
    claims, truth = simulated.claims, simulated.truth
    true_value = truth["value"].take(pa.array(indices(claims["object"], truth["object"])))
    return np.asarray(pc.equal(claims["value"], true_value))


def realised_accuracy(simulated: Simulated) -> Float:
    """(n_sources,) share of right claims of each source."""
    source = indices(simulated.claims["source"], simulated.groups["source"])
    n = len(simulated.groups)
    return np.bincount(source, right(simulated), n) / np.bincount(source, minlength=n)


def vote_accuracy(simulated: Simulated) -> float:
    """Share of objects on which most claims are right; ties at random."""
    claims, truth = simulated.claims, simulated.truth
    votes = np.random.default_rng(0).random((len(truth), len(pc.unique(truth["value"])))) / 2
    np.add.at(
        votes, (indices(claims["object"], truth["object"]), indices(claims["value"], truth["value"])), 1
    )
    return float(np.mean(votes.argmax(axis=1) == indices(truth["value"], truth["value"])))


def check_tables(simulated: Simulated) -> None:
    """What must hold of every simulated table."""
    claims, truth, groups = simulated.claims, simulated.truth, simulated.groups
    assert claims.schema == pa.schema([(name, pa.string()) for name in ("source", "object", "value")])
    assert truth.schema == pa.schema([(name, pa.string()) for name in ("object", "value")])
    assert groups.column_names == ["source", "group", "kind", "accuracy"]
    assert set(claims["source"].to_pylist()) <= set(groups["source"].to_pylist())
    assert set(claims["object"].to_pylist()) <= set(truth["object"].to_pylist())
    assert len(pc.unique(truth["object"])) == len(truth)
    assert len(pc.unique(groups["source"])) == len(groups)
    assert len(claims.group_by(["source", "object"]).aggregate([])) == len(claims)
    assert sorted(pc.unique(groups["group"]).to_pylist()) == list(range(len(pc.unique(groups["group"]))))
    accuracy = groups["accuracy"].to_numpy()
    assert np.all((accuracy >= 0) & (accuracy <= 1))


@pytest.mark.parametrize("name", CASES)
def test_every_case_is_well_formed_and_decided_by_its_seed(name: str) -> None:
    make = CASES[name]
    first, again, other = make(seed=3), make(seed=3), make(seed=4)
    check_tables(first)
    assert first.claims.equals(again.claims)
    assert first.truth.equals(again.truth)
    assert first.groups.equals(again.groups)
    assert not first.claims.equals(other.claims)
    assert make.description


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.resizable])
def test_cases_take_a_number_of_objects(name: str) -> None:
    assert len(CASES[name](n_objects=37).truth) == 37


def test_a_case_of_fixed_size_says_so() -> None:
    with pytest.raises(SettingsError, match="brings its own objects"):
        CASES["capitals"](n_objects=10)


@pytest.mark.parametrize("name", PLANTED_VOTE)
def test_voting_does_as_well_on_planted_cases_as_the_table_of_the_model_says(name: str) -> None:
    found = np.mean([vote_accuracy(planted(name, seed=seed)) for seed in range(5)])
    assert found == pytest.approx(PLANTED_VOTE[name], abs=0.03)


@pytest.mark.parametrize("name", PLANTED_VOTE)
def test_planted_sources_are_as_accurate_and_as_grouped_as_planted(name: str) -> None:
    simulated = planted(name, n_objects=20_000, seed=1)
    n_sources = len(simulated.groups)
    assert len(simulated.claims) / (n_sources * 20_000) == pytest.approx(0.3, abs=0.01)
    planted_accuracy = simulated.groups["accuracy"].to_numpy()
    assert realised_accuracy(simulated) == pytest.approx(planted_accuracy, abs=0.04)
    sizes = np.bincount(simulated.groups["group"].to_numpy())
    assert sorted(sizes, reverse=True) == PLANTED_GROUPS[name]


def test_members_of_a_group_share_their_mistakes_and_others_do_not() -> None:
    simulated = planted("copied-leader", n_objects=4000)
    groups = simulated.groups.to_pydict()
    kinds = dict(zip(groups["source"], groups["kind"], strict=True))
    wrong = simulated.claims.filter(pa.array(~right(simulated)))
    by_source = {
        kind: [s for s in groups["source"] if kinds[s] == kind] for kind in ("copier", "independent")
    }

    def agreement(a: str, b: str) -> float:
        """Share of equal values where both sources are wrong."""
        mistakes = [
            dict(zip(rows["object"].to_pylist(), rows["value"].to_pylist(), strict=True))
            for rows in (wrong.filter(pc.equal(wrong["source"], source)) for source in (a, b))
        ]
        shared = mistakes[0].keys() & mistakes[1].keys()
        return float(np.mean([mistakes[0][o] == mistakes[1][o] for o in shared]))

    assert agreement(*by_source["copier"][:2]) > 0.75
    # Few objects on which both are wrong: chance is 1/3.
    assert agreement(*by_source["independent"][:2]) < 0.7


def test_malicious_copiers_are_below_chance_and_guessers_at_chance() -> None:
    malicious = planted("malicious-bloc", n_objects=5000)
    kind = malicious.groups["kind"].to_numpy(zero_copy_only=False)
    assert np.all(realised_accuracy(malicious)[kind == "malicious"] < 0.2)
    assert np.sum(kind == "malicious") == 25
    guessing = planted("guessers", n_objects=5000)
    kind = guessing.groups["kind"].to_numpy(zero_copy_only=False)
    assert realised_accuracy(guessing)[kind == "guesser"] == pytest.approx(0.25, abs=0.06)


def test_names_do_not_give_the_groups_away() -> None:
    kind = planted("copied-leader").groups["kind"].to_pylist()
    assert kind != sorted(kind)


def test_an_unknown_planted_case_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="'six-groups'"):
        planted("six-group")


def test_bloc_is_the_case_that_ruins_voting() -> None:
    simulated = bloc(seed=0)
    assert len(simulated.claims) == 100_000
    assert vote_accuracy(simulated) == pytest.approx(0.72, abs=0.02)
    sizes = np.bincount(simulated.groups["group"].to_numpy())
    assert sorted(sizes, reverse=True) == [400] + [1] * 600
    kind = simulated.groups["kind"].to_numpy(zero_copy_only=False)
    accuracy = simulated.groups["accuracy"].to_numpy()
    assert np.all(np.abs(accuracy[kind == "copier"] - 0.45) < 0.06)
    assert accuracy[kind == "independent"].min() < 0.45
    assert accuracy[kind == "independent"].max() > 0.9
    assert right(simulated).mean() == pytest.approx(accuracy.mean(), abs=0.02)


@given(n_sources=st.integers(1, 12), share=st.floats(0, 1), seed=st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_bloc_draws_as_many_distinct_sources_for_each_object_as_asked(
    n_sources: int, share: float, seed: int
) -> None:
    claims_per_object = max(1, round(share * n_sources))
    simulated = bloc(n_sources, 20, claims_per_object, seed)
    check_tables(simulated)
    counts = simulated.claims.group_by("object").aggregate([("source", "count_distinct")])
    assert counts["source_count_distinct"].to_pylist() == [claims_per_object] * 20


def test_bloc_draws_all_sources_equally_often() -> None:
    simulated = bloc(n_sources=10, n_objects=20_000, claims_per_object=3, seed=0)
    counts = np.bincount(indices(simulated.claims["source"], simulated.groups["source"]))
    assert counts == pytest.approx(6000, abs=350)


def test_two_sources_share_a_group_of_the_model_as_often_as_the_sticks_say() -> None:
    shares = []
    for seed in range(300):
        sizes = np.bincount(
            from_model(n_sources=20, n_objects=1, concentration=3.0, seed=seed).groups["group"].to_numpy()
        )
        shares.append(np.sum(sizes * (sizes - 1)) / (20 * 19))
    assert np.mean(shares) == pytest.approx(1 / (1 + 3.0), abs=0.035)


@pytest.mark.parametrize("n_values", [3, (2, 7)])
def test_sources_of_the_model_are_as_accurate_as_their_groups(n_values: int | tuple[int, int]) -> None:
    simulated = from_model(30, 8000, n_values, density=0.8, seed=2)
    assert realised_accuracy(simulated) == pytest.approx(simulated.groups["accuracy"].to_numpy(), abs=0.05)
    assert len(pc.unique(simulated.groups["group"])) > 3


def test_a_group_of_the_model_shares_its_answers_where_counts_are_far_below_one() -> None:
    simulated = from_model(
        6, 300, 5, concentration=1e-6, true_count=(1e-3, 1e-3), false_count=(1e-3, 1e-3), density=1.0
    )
    distinct = simulated.claims.group_by("object").aggregate([("value", "count_distinct")])
    assert np.mean(distinct["value_count_distinct"].to_numpy() == 1) > 0.97
    # The shared answer is anywhere, for η = θ.
    assert right(simulated).mean() == pytest.approx(1 / 5, abs=0.08)


def test_groups_of_the_model_can_be_malicious() -> None:
    simulated = from_model(
        n_objects=3000, true_count=(0.05, 5.0), false_count=(1.0, 0.2), reliability=(9.0, 1.0)
    )
    malicious = simulated.groups["kind"].to_numpy(zero_copy_only=False) == "malicious"
    assert malicious.any()
    u_below_half = 0.5 * 0.05 / 3.05 + 0.5 * 5.0 / 5.6
    assert np.all(simulated.groups["accuracy"].to_numpy()[malicious] < u_below_half)


def test_domains_of_the_model_may_be_ragged() -> None:
    simulated = from_model(40, 500, (2, 6), false_count=(1.0, 1.0), true_count=(1.0, 1.5), density=1.0)
    distinct = simulated.claims.group_by("object").aggregate([("value", "count_distinct")])
    sizes = distinct["value_count_distinct"].to_numpy()
    assert sizes.min() <= 3
    assert sizes.max() == 6
    assert right(from_model(5, 50, 1)).all()


@given(
    n_sources=st.integers(1, 8),
    n_objects=st.integers(1, 8),
    values=st.tuples(st.integers(1, 4), st.integers(0, 4)),
    concentration=st.floats(1e-3, 1e3),
    count=st.floats(1e-3, 100),
    density=st.floats(1e-3, 1),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_the_model_runs_forwards_for_any_settings(
    n_sources: int,
    n_objects: int,
    values: tuple[int, int],
    concentration: float,
    count: float,
    density: float,
    seed: int,
) -> None:
    low, more = values
    simulated = from_model(
        n_sources,
        n_objects,
        (low, low + more),
        concentration,
        true_count=(count, 2 * count),
        false_count=(count, count),
        density=density,
        seed=seed,
    )
    check_tables(simulated)
    if density == 1:
        assert len(simulated.claims) == n_sources * n_objects


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_sources", 0),
        ("n_objects", -1),
        ("n_values", 0),
        ("n_values", (3, 2)),
        ("concentration", 0.0),
        ("true_count", (1.0,)),
        ("false_count", (0.0, 1.0)),
        ("reliability", (1.0, -1.0)),
        ("density", 0.0),
        ("density", 1.5),
    ],
)
def test_settings_out_of_range_are_refused(setting: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"'{setting}' must be"):
        from_model(**{setting: value})


def test_more_claims_than_sources_are_refused() -> None:
    with pytest.raises(SettingsError, match="at most n_sources = 5"):
        bloc(n_sources=5, claims_per_object=6)
