"""Agreement with Crowd-Kit, installed from PyPI into an environment of its own (`make peers`)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

import consilience as cs
from consilience.datasets.synthetic import planted
from consilience.evaluate.peers import CrowdKit

pytestmark = pytest.mark.peers

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
DATA = Path(os.environ.get("CONSILIENCE_DATA", ROOT.parent / "shared" / "data"))
TABLES = ("six-groups", "independent", "guessers", "rte", "dog", "bluebirds", "temp")
MODELS = ("vote", "dawid-skene", "one-coin", "glad", "mace")
SAME = 0.99
TIED = 0.01
"""Margins below this are ties: which label comes first is nobody's opinion."""


@pytest.fixture(scope="module", autouse=True)
def peers() -> None:
    if not PYTHON.exists():
        if os.environ.get("CI"):
            pytest.fail("the peers' environment is missing: run `make peers`")
        pytest.skip("the peers' environment is missing: run `make peers`")


@pytest.fixture(scope="module", params=TABLES)
def table(request, tmp_path_factory):
    """Claims with a common label set, and what the peer makes of them."""
    name = request.param
    if name in ("six-groups", "independent", "guessers"):
        claims = planted(name, n_objects=300, seed=0).claims
    elif (DATA / name).is_dir():
        claims = DATA / name / "claims.csv.gz"
    else:
        pytest.skip(f"no data set {name} in $CONSILIENCE_DATA")
    encoded = cs.read_claims(claims, domain="common")
    path = tmp_path_factory.mktemp("peers") / f"{name}.csv"
    said = encoded.candidate_value[encoded.claim_candidate]
    rows = {
        "source": in_order_of_appearance("s", encoded.claim_source),
        "object": in_order_of_appearance("o", encoded.claim_object()),
        "value": in_order_of_appearance("v", said),
    }
    pyarrow.csv.write_csv(pyarrow.table(rows), path)
    found = CrowdKit.of(PYTHON).run(path, {name: {} for name in MODELS})
    label = dict(zip(said.tolist(), rows["value"], strict=True))
    object_ = dict(zip(encoded.claim_object().tolist(), rows["object"], strict=True))

    def dense(model: str) -> np.ndarray:
        """(n_objects, n_labels) the peer's probabilities in our order."""
        place = [found[model]["labels"].index(label[v]) for v in range(encoded.n_values)]
        probability = found[model]["probability"]
        return np.array([probability[object_[m]] for m in range(encoded.n_objects)])[:, place]

    source = dict(zip(encoded.claim_source.tolist(), rows["source"], strict=True))
    skills = (
        np.array([found["glad"]["ability"][source[n]] for n in range(encoded.n_sources)]),
        np.array([found["glad"]["log_easiness"][object_[m]] for m in range(encoded.n_objects)]),
    )
    return encoded, {model: dense(model) for model in MODELS}, skills


def in_order_of_appearance(letter: str, index: np.ndarray) -> list[str]:
    """Names that sort in the order in which they first appear: Crowd-Kit's MACE mixes up sources whose names do not."""
    _, first, inverse = np.unique(index, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return [f"{letter}{i:06}" for i in rank[inverse]]


@pytest.mark.parametrize("model", MODELS)
def test_the_same_labels(table, model):
    claims, peer, _ = table
    theirs = peer[model]
    ours = cs.model(model).fit(claims).truth.reshape(claims.n_objects, claims.n_values)
    ranked = [np.sort(each, axis=1) for each in (ours, theirs)]
    clear = np.all([each[:, -1] - each[:, -2] > TIED for each in ranked], axis=0)
    same = (ours.argmax(axis=1) == theirs.argmax(axis=1))[clear]
    assert clear.sum() > 0.6 * claims.n_objects
    assert same.mean() >= SAME, f"{same.mean():.4f} of {clear.sum()}"


@pytest.mark.parametrize("model", ["dawid-skene", "one-coin"])
def test_the_likelihood_is_not_lower(table, model):
    claims, peer, _ = table
    theirs = peer[model]
    ours = cs.model(model).fit(claims).truth.reshape(claims.n_objects, claims.n_values)
    likelihood = {"dawid-skene": confusion_likelihood, "one-coin": coin_likelihood}[model]
    mine, other = (likelihood(claims, each) for each in (ours, theirs))
    assert mine >= other - 1e-4 * abs(other), f"{mine} against {other}"


def test_the_posterior_of_glads_skills_is_not_lower(table):
    claims, _, (ability, log_easiness) = table
    theirs = skills_posterior(claims, ability, log_easiness)
    ours = cs.model("glad").fit(claims).bound
    assert ours >= theirs - 1e-4 * abs(theirs), f"{ours} against {theirs}"


def skills_posterior(claims: cs.Claims, ability: np.ndarray, log_easiness: np.ndarray) -> float:
    """ln p(claims, abilities, difficulties) with normal priors of mean and variance one."""
    said = claims.candidate_value[claims.claim_candidate]
    joint = np.full((claims.n_objects, claims.n_values), -np.log(claims.n_values))
    for n, m, v in zip(claims.claim_source, claims.claim_object(), said, strict=True):
        right = 1 / (1 + np.exp(-ability[n] * np.exp(log_easiness[m])))
        right = min(max(right, 1e-12), 1 - 1e-12)
        joint[m] += np.log((1 - right) / (claims.n_values - 1))
        joint[m, v] += np.log(right) - np.log((1 - right) / (claims.n_values - 1))
    skills = np.concatenate([ability, log_easiness])
    prior = -0.5 * np.sum((skills - 1) ** 2) - 0.5 * len(skills) * np.log(2 * np.pi)
    return float(np.logaddexp.reduce(joint, axis=1).sum() + prior)


def confusion_likelihood(claims: cs.Claims, truth: np.ndarray) -> float:
    """ln p(claims) under the confusion matrices and shares that these truths give; loops, no cleverness."""
    said = claims.candidate_value[claims.claim_candidate]
    source, object_ = claims.claim_source, claims.claim_object()
    counts = np.full((claims.n_sources, claims.n_values, claims.n_values), 1e-12)
    for n, m, v in zip(source, object_, said, strict=True):
        counts[n, :, v] += truth[m]
    confusion = counts / counts.sum(axis=2, keepdims=True)
    joint = np.log(np.tile(truth.mean(axis=0) + 1e-12, (claims.n_objects, 1)))
    for n, m, v in zip(source, object_, said, strict=True):
        joint[m] += np.log(confusion[n, :, v])
    return float(np.logaddexp.reduce(joint, axis=1).sum())


def coin_likelihood(claims: cs.Claims, truth: np.ndarray) -> float:
    """Likewise with one probability of being right a source."""
    said = claims.candidate_value[claims.claim_candidate]
    source, object_ = claims.claim_source, claims.claim_object()
    right = np.zeros(claims.n_sources)
    for n, m, v in zip(source, object_, said, strict=True):
        right[n] += truth[m, v]
    right = np.clip(right / np.bincount(source), 1e-12, 1 - 1e-12)
    joint = np.log(np.tile(truth.mean(axis=0) + 1e-12, (claims.n_objects, 1)))
    for n, m, v in zip(source, object_, said, strict=True):
        for z in range(claims.n_values):
            joint[m, z] += np.log(right[n] if z == v else (1 - right[n]) / (claims.n_values - 1))
    return float(np.logaddexp.reduce(joint, axis=1).sum())
