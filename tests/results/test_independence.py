"""The permutation test: it holds its level on independent sources and sees copiers."""

from __future__ import annotations

import numpy as np

from consilience.claims.encoding import Claims
from consilience.claims.reading import align_truths, read_claims, read_truths
from consilience.datasets.synthetic import planted
from consilience.models.vote import Vote
from consilience.results.independence import IndependenceTest, independence_test


def known_truths(name: str, seed: int, n_objects: int = 150) -> tuple[Claims, np.ndarray]:
    data = planted(name, n_objects=n_objects, seed=seed)
    claims = read_claims(data.claims)
    return claims, align_truths(read_truths(data.truth), claims)


def test_copiers_are_seen() -> None:
    for name in ("copied-leader", "six-groups", "malicious-bloc"):
        found = independence_test(*known_truths(name, 0), permutations=99, seed=0)
        assert found.p_value == 0.01
        assert found.shared > 1.1 * found.expected


def test_independent_sources_are_rarely_accused() -> None:
    """Under independence p-values are uniform: of forty tables, about four fall below 0.1."""
    p_values = [
        independence_test(*known_truths("independent", seed, 80), permutations=19, seed=seed).p_value
        for seed in range(40)
    ]
    assert np.sum(np.array(p_values) <= 0.1) <= 11
    assert 0.3 < np.mean(p_values) < 0.75


def test_popular_mistakes_are_not_copying() -> None:
    """Everybody who errs prefers the same wrong value: agreement, but none that depends on who errs."""
    rng = np.random.default_rng(0)
    rows = [
        (f"s{n}", f"o{m}", "right" if rng.random() < 0.6 else rng.choice(["popular", "rare"], p=[0.8, 0.2]))
        for n in range(25)
        for m in range(120)
        if rng.random() < 0.5
    ]
    claims = read_claims(rows)
    truth = align_truths(read_truths({f"o{m}": "right" for m in range(120)}), claims)
    assert independence_test(claims, truth, permutations=99, seed=0).p_value > 0.05


def test_two_values_cannot_tell() -> None:
    claims = read_claims([(f"s{n}", f"o{m}", str(n % 2)) for n in range(4) for m in range(4)])
    assert Vote().fit(claims).independence() == IndependenceTest(0.0, 0.0, 1.0, 0)


def test_the_seed_decides_the_permutations() -> None:
    claims, truth = known_truths("guessers", 0, 60)
    once, again = (independence_test(claims, truth, permutations=49, seed=3) for _ in range(2))
    assert once == again
    assert once != independence_test(claims, truth, permutations=49, seed=4)
