"""IBCC and EBCC against slow loops, against the exact evidence, and on sources that err together."""

from __future__ import annotations

from itertools import product
from math import exp, lgamma, log

import numpy as np
import pytest
from scipy.special import digamma

from consilience.claims.encoding import Claims
from consilience.claims.reading import read_claims
from consilience.errors import SettingsError, UnsuitableTableError
from consilience.kernels.segments import Labels, Segments
from consilience.models.base import truth_prior
from consilience.models.bcc import EBCC, IBCC
from consilience.models.order import colours
from consilience.models.vote import Vote
from consilience.testing.checks import check_model

TABLE = [
    ("ann", "o1", "a"), ("bob", "o1", "a"), ("cat", "o1", "b"),
    ("ann", "o2", "b"), ("bob", "o2", "c"), ("cat", "o2", "b"), ("dan", "o2", "b"),
    ("ann", "o3", "c"), ("dan", "o3", "a"),
    ("bob", "o4", "a"), ("cat", "o4", "a"), ("dan", "o4", "c"),
    ("ann", "o5", "b"), ("cat", "o5", "c"),
]  # fmt: skip

Triples = list[tuple[str, str, str]]
Rows = list[list[float]]


def dense(claims: Claims) -> list[list[tuple[int, int]]]:
    """For each object: who says which label."""
    said: list[list[tuple[int, int]]] = [[] for _ in range(claims.n_objects)]
    for i, m in enumerate(claims.claim_object()):
        said[m].append((int(claims.claim_source[i]), int(claims.candidate_value[claims.claim_candidate[i]])))
    return said


def dirichlet_logs(counts: list[float]) -> list[float]:
    return [float(digamma(x) - digamma(sum(counts))) for x in counts]


def dirichlet_terms(counts: list[float], prior: list[float]) -> float:
    """E ln p(x) - E ln q(x), both densities in full."""
    logs = dirichlet_logs(counts)
    p = (
        lgamma(sum(prior))
        - sum(map(lgamma, prior))
        + sum((a - 1) * x for a, x in zip(prior, logs, strict=True))
    )
    q = (
        lgamma(sum(counts))
        - sum(map(lgamma, counts))
        + sum((a - 1) * x for a, x in zip(counts, logs, strict=True))
    )
    return p - q


def slow_round(
    r: list[Rows], said: list[list[tuple[int, int]]], n_sources: int, model: EBCC
) -> tuple[list[Rows], float]:
    """One round from responsibilities r[m][z][g]: the new ones, and the bound at them."""
    n_labels, n_subtypes = len(r[0]), len(r[0][0])
    labels, subtypes = range(n_labels), range(n_subtypes)
    share = [model.share_count + sum(sum(row[z]) for row in r) for z in labels]
    subtype = [
        [model.subtype_count / n_subtypes + sum(row[z][g] for row in r) for g in subtypes] for z in labels
    ]
    beta = [[model.right_count if z == k else model.wrong_count for k in labels] for z in labels]
    confusion = {
        (n, z, g): [
            beta[z][k] + sum(row[z][g] for row, who in zip(r, said, strict=True) if (n, k) in who)
            for k in labels
        ]
        for n, z, g in product(range(n_sources), labels, subtypes)
    }
    bound = dirichlet_terms(share, [model.share_count] * n_labels)
    bound += sum(dirichlet_terms(row, [model.subtype_count / n_subtypes] * n_subtypes) for row in subtype)
    bound += sum(dirichlet_terms(row, beta[z]) for (_, z, _), row in confusion.items())
    log_share, log_subtype = dirichlet_logs(share), [dirichlet_logs(row) for row in subtype]
    logs = {key: dirichlet_logs(row) for key, row in confusion.items()}
    new: list[Rows] = []
    for who in said:
        joint = [
            [log_share[z] + log_subtype[z][g] + sum(logs[n, z, g][k] for n, k in who) for g in subtypes]
            for z in labels
        ]
        total = sum(exp(x) for row in joint for x in row)
        new.append([[exp(x) / total for x in row] for row in joint])
        bound += sum(
            q * (x - log(q))
            for row, p in zip(joint, new[-1], strict=True)
            for x, q in zip(row, p, strict=True)
        )
    return new, bound


def vote_of(claims: Claims) -> list[list[float]]:
    votes = [[0.0] * claims.n_values for _ in range(claims.n_objects)]
    for m, who in enumerate(dense(claims)):
        for _, k in who:
            votes[m][k] += 1 / len(who)
    return votes


def test_ibcc_goes_the_way_of_the_equations() -> None:
    claims = read_claims(TABLE, domain="common")
    said, like = dense(claims), EBCC(n_subtypes=1)
    r = [[[x] for x in row] for row in vote_of(claims)]
    for rounds in range(1, 8):
        r, bound = slow_round(r, said, claims.n_sources, like)
        fit = IBCC(max_rounds=rounds, tolerance=1e-12).fit(claims)
        assert fit.truth == pytest.approx([x[0] for row in r for x in row], abs=1e-9)
        assert fit.trace[-1]["bound"] == pytest.approx(bound, abs=1e-9)


def test_ebcc_goes_the_way_of_the_equations() -> None:
    claims = read_claims(TABLE, domain="common")
    said = dense(claims)
    for seed in range(3):
        model = EBCC(n_subtypes=3, n_starts=1, tolerance=1e-12)
        r = start_of(model, claims, seed)
        for rounds in range(1, 8):
            r, bound = slow_round(r, said, claims.n_sources, model)
            fit = EBCC(n_subtypes=3, n_starts=1, tolerance=1e-12, max_rounds=rounds).fit(claims, seed=seed)
            assert fit.truth == pytest.approx([sum(x) for row in r for x in row], abs=1e-9)
            assert fit.trace[-1]["bound"] == pytest.approx(bound, abs=1e-9)


def start_of(model: EBCC, claims: Claims, seed: int) -> list[Rows]:
    labels = Labels.of(Segments(*truth_prior(claims, None)[:2]))
    kinds, kind = np.unique(colours(claims)[1], return_inverse=True)
    start = model._start(labels, np.random.default_rng(seed), kind, len(kinds))
    rows: list[Rows] = start.reshape(claims.n_objects, claims.n_values, -1).tolist()
    return rows


def test_a_start_of_ebcc_splits_the_votes_and_forgets_names() -> None:
    claims = read_claims(TABLE, domain="common")
    start = np.array(start_of(EBCC(), claims, 4))
    assert start.sum(axis=2) == pytest.approx(np.array(vote_of(claims)), abs=1e-12)
    back = {"a": "z", "b": "x", "c": "y"}
    renamed = read_claims([(f"{s}!", f"{9 - int(o[1])}", back[v]) for s, o, v in TABLE], domain="common")
    other = np.array(start_of(EBCC(), renamed, 4))
    assert other[::-1][:, [2, 0, 1]] == pytest.approx(start, abs=1e-12)
    twins = read_claims([("s", "o1", "a"), ("s", "o2", "a"), ("s", "o3", "b")], domain="common")
    start = np.array(start_of(EBCC(), twins, 4))
    assert start[0].tolist() == start[1].tolist()


def test_one_subtype_is_ibcc() -> None:
    claims = read_claims(TABLE)
    one, plain = EBCC(n_subtypes=1, n_starts=2).fit(claims), IBCC().fit(claims)
    assert one.truth == pytest.approx(plain.truth, abs=1e-12)
    assert one.source_reliability[:, 0] == pytest.approx(plain.source_reliability[:, 0], abs=1e-12)
    assert one.trace[-1]["bound"] == pytest.approx(plain.trace[-1]["bound"], abs=1e-9)


def test_the_bound_of_ibcc_is_below_the_evidence_and_near_it() -> None:
    """ln p(claims) exactly: a Dirichlet-multinomial for the shares and for each row, summed over all truths."""
    claims = read_claims(TABLE, domain="common")
    said, model = dense(claims), IBCC(tolerance=1e-12)

    def marginal(counts: list[int], prior: list[float]) -> float:
        gains = sum(lgamma(a + c) - lgamma(a) for a, c in zip(prior, counts, strict=True))
        return gains + lgamma(sum(prior)) - lgamma(sum(prior) + sum(counts))

    joint = []
    for truth in product(range(3), repeat=claims.n_objects):
        p = marginal([truth.count(z) for z in range(3)], [model.share_count] * 3)
        for n, z in product(range(claims.n_sources), range(3)):
            answers = [k for t, who in zip(truth, said, strict=True) for s, k in who if s == n and t == z]
            prior = [model.right_count if k == z else model.wrong_count for k in range(3)]
            p += marginal([answers.count(k) for k in range(3)], prior)
        joint.append(p)
    evidence = float(np.logaddexp.reduce(joint))
    bound = model.fit(claims).trace[-1]["bound"]
    assert evidence - 2.0 < bound < evidence


def test_reliability_is_the_mean_probability_of_being_right() -> None:
    """By hand: with the truths known, counts are whole numbers."""
    claims = read_claims(
        [("s", "o1", "a"), ("s", "o2", "a"), ("s", "o3", "b"), ("t", "o3", "b")], domain="common"
    )
    fit = IBCC().fit(claims, known={"o1": "a", "o2": "b", "o3": "b"})
    share_a, share_b = 2 / 5, 3 / 5
    s = share_a * 5 / 6 + share_b * 5 / 7
    t = share_a * 4 / 5 + share_b * 5 / 6
    assert fit.source_reliability[:, 0] == pytest.approx([s, t], abs=1e-12)


def sample(
    n_subtypes: int, n_sources: int, n_objects: int, right: float, wrong: float, seed: int
) -> tuple[Triples, dict[str, str]]:
    """From the model of EBCC, with two labels."""
    rng = np.random.default_rng(seed)
    truth, subtype = rng.integers(2, size=n_objects), rng.integers(n_subtypes, size=n_objects)
    says_truth = rng.beta(right, wrong, size=(n_sources, 2, n_subtypes))
    says = np.where(rng.random((n_sources, n_objects)) < says_truth[:, truth, subtype], truth, 1 - truth)
    triples = [(f"s{n}", f"o{m}", str(says[n, m])) for n in range(n_sources) for m in range(n_objects)]
    return triples, {f"o{m}": str(z) for m, z in enumerate(truth)}


def test_ebcc_is_better_where_sources_err_together() -> None:
    better = []
    for seed in range(4):
        triples, truth = sample(4, 20, 300, 0.6, 0.3, seed)
        claims = read_claims(triples)
        plain, with_subtypes = IBCC().fit(claims), EBCC(n_starts=3).fit(claims)
        assert with_subtypes.trace[-1]["bound"] > plain.trace[-1]["bound"] + 100
        better.append(with_subtypes.score(truth).accuracy - plain.score(truth).accuracy)
    assert np.mean(better) > 0.005


def test_ebcc_needs_one_subtype_where_they_do_not() -> None:
    triples, truth = sample(1, 12, 300, 6.0, 2.0, 0)
    claims = read_claims(triples)
    plain, with_subtypes = IBCC().fit(claims), EBCC(n_starts=3).fit(claims)
    assert all(max(shares) > 0.99 for shares in with_subtypes.learned["subtype"])
    assert with_subtypes.truth == pytest.approx(plain.truth, abs=0.01)
    assert with_subtypes.score(truth).accuracy > 0.95


def test_more_starts_never_lower_the_bound() -> None:
    claims = read_claims(sample(4, 8, 60, 0.6, 0.3, 1)[0])
    bounds = [EBCC(n_starts=n).fit(claims).trace[-1]["bound"] for n in (1, 2, 5)]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]


def test_empirical_shares_come_from_the_votes() -> None:
    triples = [(f"s{n}", f"o{m}", "a" if m else "b") for n in range(3) for m in range(4)]
    known = {f"o{m}": "a" if m else "b" for m in range(4)}
    for empirical, share in ((True, [6 / 8, 2 / 8]), (False, [4 / 6, 2 / 6])):
        fit = EBCC(empirical_shares=empirical, n_starts=1).fit(read_claims(triples), known=known)
        assert fit.learned["share"] == pytest.approx(share, abs=1e-12)


def test_a_source_that_swaps_labels_is_read_backwards() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    triples = [
        (f"s{n}", f"o{m}", str(t)) for m, t in enumerate(truth) for n in range(3) if rng.random() < 0.9
    ]
    triples += [("liar", f"o{m}", str(1 - t)) for m, t in enumerate(truth)]
    triples += [("liar", "alone", "0")]
    for model in (IBCC(), EBCC(n_starts=2)):
        fit = model.fit(read_claims(triples))
        alone = fit.claims.objects.to_pylist().index("alone")
        domain = slice(*fit.claims.first_candidate[alone : alone + 2])
        assert fit.truth[domain][1] > 0.9, model.name
    assert Vote().fit(read_claims(triples)).truth[domain][1] == 0


def test_labels_must_be_common() -> None:
    triples = [("s", f"o{m}", f"v{m}") for m in range(101)]
    for model in (IBCC(), EBCC()):
        with pytest.raises(UnsuitableTableError, match="101 different values"):
            model.fit(read_claims(triples))


@pytest.mark.parametrize("model", [IBCC(), EBCC(), EBCC(empirical_shares=True, n_starts=2)])
def test_the_checks_of_all_models(model: IBCC | EBCC) -> None:
    check_model(model)


@pytest.mark.parametrize(
    "setting",
    [
        {"right_count": 0}, {"wrong_count": -1.0}, {"share_count": "1"}, {"tolerance": 0}, {"max_rounds": 0},
        {"n_subtypes": 0}, {"n_starts": 1.5}, {"subtype_count": float("nan")}, {"empirical_shares": "yes"},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(setting: dict[str, object]) -> None:
    (name,) = setting
    for kind in (IBCC, EBCC):
        if name in kind.__dataclass_fields__:
            with pytest.raises(SettingsError, match=name):
                kind(**setting)  # type: ignore[arg-type]
