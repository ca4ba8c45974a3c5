"""What every model must satisfy, whatever its mathematics. Run it on your own: `check_model(MyModel())`."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from consilience.claims.encoding import Claims
from consilience.claims.reading import read_claims
from consilience.models.base import Model
from consilience.results.fit import Fit
from consilience.runners.inline import Inline

Triples = list[tuple[str, str, str]]
Fits = list[tuple[Triples, Fit]]
"""Every table with the model's fit to it: most checks need one, and a fit may take long."""
CLOSE = 1e-6
"""Probabilities nearer than this are the same; decisions with a smaller margin are not compared."""


def check_model(model: Model) -> None:
    """Raise AssertionError, with the check's name, where the model falls short."""
    fits = [(triples, model.fit(read_claims(triples))) for triples in tables()]
    for check in (
        _gives_probabilities,
        _unanimity_wins,
        _same_seed_same_bits,
        _order_of_rows_does_not_matter,
        _names_do_not_matter,
        _shards_do_not_matter,
        _bound_never_falls,
        _known_truths_are_kept,
        _input_is_left_alone,
        _small_tables_work,
        _pickles,
    ):
        try:
            check(model, fits)
        except AssertionError as error:
            raise AssertionError(f"{model.name}: {check.__name__[1:].replace('_', ' ')}: {error}") from error


def tables(n: int = 4) -> Iterator[Triples]:
    """Small tables with copiers, contested objects and sources of varied zeal."""
    for seed in range(n):
        rng = np.random.default_rng(seed)
        n_sources, n_objects, n_values = 8, 15, 3
        truth = rng.integers(n_values, size=n_objects)
        leader = np.where(rng.random(n_objects) < 0.5, truth, rng.integers(n_values, size=n_objects))
        triples = []
        for n in range(n_sources):
            follows = n < 4
            for m in range(n_objects):
                if rng.random() < 0.4 + 0.05 * n:
                    right = truth[m] if not follows else leader[m]
                    value = right if rng.random() < 0.85 else rng.integers(n_values)
                    triples.append((f"s{n}", f"o{m}", f"v{value}"))
        yield triples


def _gives_probabilities(model: Model, fits: Fits) -> None:
    for _, fit in fits:
        sums = np.add.reduceat(fit.truth, fit.claims.first_candidate[:-1])
        assert np.all(fit.truth >= 0), "a probability is negative"
        assert np.allclose(sums, 1, atol=1e-9), f"probabilities sum to {sums.min()} … {sums.max()}"
        best = np.maximum.reduceat(fit.truth, fit.claims.first_candidate[:-1])
        assert np.all(fit.truth[fit.decision] >= best - 1e-9), "a decision is not the most probable candidate"
        assert np.all(np.isfinite(fit.source_reliability[:, 0])), "a source has no reliability"


def _unanimity_wins(model: Model, fits: Fits) -> None:
    for triples, _ in fits:
        extra = [(f"s{n}", f"agreed{i}", f"v{i % 3}") for n in range(8) for i in range(6)]
        answer = _answer(model.fit(read_claims(triples + extra)))
        for i in range(6):
            assert answer[f"agreed{i}"][0] == f"v{i % 3}", (
                f"everybody says v{i % 3}, the answer is {answer[f'agreed{i}']}"
            )


def _same_seed_same_bits(model: Model, fits: Fits) -> None:
    claims = fits[0][1].claims
    assert _bits(model.fit(claims, seed=3)) == _bits(model.fit(claims, seed=3))


def _order_of_rows_does_not_matter(model: Model, fits: Fits) -> None:
    for seed, (triples, fit) in enumerate(fits):
        shuffled = [triples[i] for i in np.random.default_rng(seed).permutation(len(triples))]
        assert _bits(model.fit(read_claims(shuffled))) == _bits(fit)


def _names_do_not_matter(model: Model, fits: Fits) -> None:
    for seed, (triples, fit) in enumerate(fits):
        rng = np.random.default_rng(seed)
        renamed: list[Callable[[str], str]] = []
        for column in range(3):
            names = sorted({triple[column] for triple in triples})
            new = dict(zip(names, rng.permutation([f"n{i:03}" for i in range(len(names))]), strict=True))
            renamed.append(lambda name, new=new: str(new[name]))  # type: ignore[misc]
        source, object_, value = renamed
        before = _answer(fit)
        after = _answer(model.fit(read_claims([(source(s), object_(o), value(v)) for s, o, v in triples])))
        for name, (decision, probability, margin) in before.items():
            decision_after, probability_after, _ = after[object_(name)]
            assert abs(probability - probability_after) < CLOSE, (
                f"{name}: {probability} becomes {probability_after}"
            )
            assert margin < CLOSE or value(decision) == decision_after, (
                f"{name}: {decision} becomes {decision_after}"
            )


def _shards_do_not_matter(model: Model, fits: Fits) -> None:
    for triples, fit in fits[:2]:
        for runner in (Inline(1, 1), Inline(7, 2)):
            assert _bits(model.fit(read_claims(triples), runner=runner)) == _bits(fit), f"{runner}"


def _bound_never_falls(model: Model, fits: Fits) -> None:
    for _, fit in fits:
        path = np.array([record["bound"] for record in fit.trace])
        assert np.all(np.diff(path) >= -1e-9 * np.maximum(1, np.abs(path[1:]))), f"{np.diff(path).min()}"


def _known_truths_are_kept(model: Model, fits: Fits) -> None:
    for triples, _ in fits[:2]:
        known = {"o0": "v2", "o1": "nobody says this"}
        answer = _answer(model.fit(read_claims(triples), known=known))
        for name, value in known.items():
            assert answer[name][:2] == (value, 1.0), (
                f"{name} is known to be {value}, the answer is {answer[name]}"
            )


def _input_is_left_alone(model: Model, fits: Fits) -> None:
    claims = read_claims(fits[0][0])
    before = {
        name: getattr(claims, name).copy() for name in ("claim_source", "claim_candidate", "first_claim")
    }
    model.fit(claims)
    for name, array in before.items():
        assert np.array_equal(getattr(claims, name), array), f"{name} was changed"


def _small_tables_work(model: Model, fits: Fits) -> None:
    for triples in (
        [("s", "o", "v")],
        [("s", "o", "v"), ("s", "o2", "v")],
        [("s", "o", "v"), ("t", "o", "v")],
        [("s", "o", "v"), ("t", "o", "w")],
        [(f"s{n}", "o", f"v{n}") for n in range(5)],
        [("s", f"o{m}", f"v{m}") for m in range(5)],
    ):
        fit = model.fit(read_claims(triples))
        assert np.all(np.isfinite(fit.truth)), f"not a number on {triples}"


def _pickles(model: Model, fits: Fits) -> None:
    fit = fits[0][1]
    assert _bits(pickle.loads(pickle.dumps(fit))) == _bits(fit)
    assert pickle.loads(pickle.dumps(model)) == model


def _bits(fit: Fit) -> bytes:
    arrays = [fit.truth, fit.decision, fit.source_reliability]
    if fit.groups_found is not None:
        arrays += [fit.groups_found.group, fit.groups_found.membership, fit.groups_found.group_reliability]
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


def _answer(fit: Fit) -> dict[str, tuple[str, float, float]]:
    """object → decided value, its probability, its margin."""
    claims: Claims = fit.claims
    answer = {}
    for m in range(claims.n_objects):
        domain = slice(int(claims.first_candidate[m]), int(claims.first_candidate[m + 1]))
        ranked = np.sort(fit.truth[domain])[::-1]
        margin = float(ranked[0] - ranked[1]) if len(ranked) > 1 else 1.0
        value: Any = claims.values[int(claims.candidate_value[fit.decision[m]])]
        answer[str(claims.objects[m])] = (str(value), float(ranked[0]), margin)
    return answer
