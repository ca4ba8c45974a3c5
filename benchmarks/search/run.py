"""How good the default is: planted cases, the bloc, real data sets and pieces of them, tables by other stories, κ, an
ablation and times. Appends records.

    .venv/bin/python benchmarks/search/run.py planted sets --seeds 0 1 2 3 4
    .venv/bin/python benchmarks/search/render.py        # writes docs/results/search.md

Real data are looked for in $CONSILIENCE_DATA. Gold only scores: no model sees it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from foreign import KINDS as FOREIGN
from scipy.optimize import minimize

import consilience as cs
from consilience.datasets import synthetic
from consilience.evaluate.provenance import provenance
from consilience.kernels import numba_
from consilience.kernels.state import Prior
from consilience.models.mss.bound import bound_terms
from consilience.models.mss.search import Search
from consilience.models.mss.starts import random_start
from consilience.models.mss.table import Table, with_domains
from consilience.runners.inline import Inline

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DATA = Path(os.environ.get("CONSILIENCE_DATA", ROOT.parent / "shared" / "data"))
PLANTED = ("copied-leader", "six-groups", "malicious-bloc", "good-leader", "independent", "guessers")
LEFT_OUT = ("n_emotion", "weather")  # numbers, and a gold that is weak
RIVALS = ("vote", "one-coin", "dawid-skene", "ibcc", "ebcc")  # the last three for labels
TABLES, PIECES = 40, 10
"""Of each kind that other stories draw, and of each data set."""
KAPPAS = (1e-300, 1e-100, 1e-30, 1e-10, 1e-3, 1e-1, 1e1, 1e3, 1e5, 1e10, 1e30, 1e100, 1e300)
GRID = [
    Prior(np.array([1.0, eta]), np.array([1.0, 1.0]), np.array([1.0, b]), kappa)
    for eta in (2.0, 5.0, 10.0) for b in (1.0, 4.0) for kappa in (1.0, 10.0)
]  # fmt: skip
CLIMBS, CLIMB_STEPS, LONGEST = 3, 80, 60
"""Where older inferences learn their settings: rounds, steps of the simplex in each, and sweeps of an ascent."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=sorted(PARTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--only", nargs="+", help="data sets or cases, where not all are wanted")
    given = parser.parse_args()
    provenance()  # of the code that runs, before it can change
    for part in given.parts:
        for record in PARTS[part](given.seeds, given.only):
            record = {"part": part, **record, "provenance": provenance()}
            with (HERE / "records" / f"{part}.jsonl").open("a", encoding="utf-8") as records:
                records.write(json.dumps(record) + "\n")
            print({key: value for key, value in record.items() if key != "provenance"}, flush=True)


def planted(seeds: list[int], only: list[str] | None) -> Iterator[dict[str, Any]]:
    """Each case, the data of five seeds: ours, voting's, and what the planted groups themselves give."""
    for case in only or PLANTED:
        for seed in seeds:
            made = synthetic.planted(case, seed=seed)
            claims, truth = cs.read_claims(made.claims), made.truth
            planted_group = groups_of(made, claims)
            story = search_of(claims).start_from(planted_group)
            fit, seconds = timed(lambda claims=claims, seed=seed: cs.MSS().fit(claims, seed=seed))
            yield {
                "data": case, "seed": seed, "seconds": seconds, "n_groups": fit.n_groups,
                "accuracy": fit.score(truth).accuracy,
                "vote": cs.Vote().fit(claims, seed=seed).score(truth).accuracy,
                "planted": accuracy_of(story.truth, claims, truth),
                "rand": adjusted_rand(planted_group, fit.groups_found.group[:, 0]),
                "bound": fit.bound, "planted_bound": story.bound,
            }  # fmt: skip


def bloc(seeds: list[int], only: list[str] | None) -> Iterator[dict[str, Any]]:
    """400 of 1,000 sources repeat one leader."""
    for n_objects in map(int, only or ("10000", "100000")):
        for seed in seeds if n_objects <= 10_000 else seeds[:1]:
            made = synthetic.bloc(n_objects=n_objects, seed=seed)
            claims = cs.read_claims(made.claims)
            fit, seconds = timed(lambda claims=claims, seed=seed: cs.MSS().fit(claims, seed=seed))
            right = (
                np.asarray(made.claims["value"])
                == np.asarray(made.truth["value"])[
                    np.searchsorted(np.asarray(made.truth["object"]), np.asarray(made.claims["object"]))
                ]
            )
            source = np.searchsorted(np.asarray(claims.sources), np.asarray(made.claims["source"]))
            true_accuracy = np.bincount(source, right) / np.bincount(source)
            yield {
                "data": f"bloc, {n_objects:,} objects", "seed": seed, "seconds": seconds, "n_groups": fit.n_groups,
                "accuracy": fit.score(made.truth).accuracy,
                "vote": cs.Vote().fit(claims, seed=seed).score(made.truth).accuracy,
                "correlation": float(np.corrcoef(true_accuracy, fit.source_reliability[:, 0])[0, 1]),
                "rand": adjusted_rand(groups_of(made, claims), fit.groups_found.group[:, 0]),
            }  # fmt: skip


def sets(seeds: list[int], only: list[str] | None) -> Iterator[dict[str, Any]]:
    """Every categorical data set with gold, and the simple cleaning of book."""
    for name, claims, gold in data_sets(only):
        votes = [cs.Vote().fit(claims, seed=seed).score(gold).accuracy for seed in range(10)]
        for seed in seeds:
            fit, seconds = timed(lambda claims=claims, seed=seed: cs.MSS().fit(claims, seed=seed))
            yield {
                "data": name, "seed": seed, "seconds": seconds, "vote": float(np.mean(votes)),
                "accuracy": fit.score(gold).accuracy, "n_groups": fit.n_groups, "n_sources": claims.n_sources,
                "bound": fit.bound, "starts": fit.starts, "warnings": fit.warnings, "domain": claims.domain,
            }  # fmt: skip


def pieces(seeds: list[int], only: list[str] | None) -> Iterator[dict[str, Any]]:
    """Some of the sources and objects of every data set: other tables of the same kinds, beside rivals."""
    for name, claims, gold in data_sets(only):
        has_gold = np.isin(np.asarray(claims.objects), np.asarray(cs.read_truths(gold).objects))
        for seed in range(PIECES):
            piece = cs.read_claims(piece_of(claims, has_gold, [seed, len(name)]), domain=claims.domain)
            rivals = RIVALS[:-1] if claims.domain == "common" else RIVALS[:2]
            yield {"data": name, "seed": seed, **beside_rivals(piece, gold, rivals)}


def piece_of(claims: cs.Claims, has_gold: Any, seed: list[int]) -> pa.Table:
    """A quarter to nine tenths of the sources, but four or more, and a fifth or more of the objects; those with gold
    stay where they are few."""
    rng = np.random.default_rng(seed)
    n_sources = max(4, round(claims.n_sources * rng.uniform(0.25, 0.9)))
    sources = rng.permutation(claims.n_sources) < n_sources
    objects = rng.random(claims.n_objects) < rng.uniform(0.2, 1.0)
    if has_gold.mean() < 0.3:
        objects |= has_gold
    source, object_ = claims.claim_source, claims.claim_object()
    kept = np.flatnonzero(sources[source] & objects[object_])
    value = claims.candidate_value[claims.claim_candidate]
    names = {"source": claims.sources, "object": claims.objects, "value": claims.values}
    return pa.table(
        {
            key: names[key].take(pa.array(of[kept]))
            for key, of in zip(names, (source, object_, value), strict=True)
        }
    )


def foreign(seeds: list[int], only: list[str] | None) -> Iterator[dict[str, Any]]:
    """Tables drawn by other stories than the model's, each by a seed of its own, beside rivals."""
    for kind in only or FOREIGN:
        for seed in range(TABLES):
            made = FOREIGN[kind](np.random.default_rng([seed, len(kind)]))
            claims = cs.read_claims(made.claims, domain=made.domain)
            rivals = RIVALS if made.domain == "common" else RIVALS[:2]
            yield {"data": kind, "seed": seed, **beside_rivals(claims, made.truth, rivals)}


def beside_rivals(claims: cs.Claims, gold: Any, rivals: tuple[str, ...]) -> dict[str, Any]:
    """The accuracy of the default and of rivals, and whether the default warns of another story."""
    fit = cs.MSS().fit(claims)
    return {
        "accuracy": fit.score(gold).accuracy,
        **{name: cs.model(name).fit(claims).score(gold).accuracy for name in rivals},
        "n_sources": claims.n_sources, "n_objects": claims.n_objects, "n_groups": fit.n_groups,
        "warned": any(warning.kind == "another-story" for warning in fit.warnings),
    }  # fmt: skip


def kappa(seeds: list[int], only: list[str] | None) -> Iterator[dict[str, Any]]:
    """Figure 4 of the paper: accuracy on book where κ is fixed and all else learned."""
    for name, claims, gold in data_sets(only or ["book", "book/simple"]):
        for value in KAPPAS:
            for seed in seeds:
                fit = cs.MSS(concentration=value).fit(claims, seed=seed)
                yield {
                    "data": name, "seed": seed, "kappa": value, "accuracy": fit.score(gold).accuracy,
                    "n_groups": fit.n_groups, "bound": fit.bound,
                }  # fmt: skip


def ablation(seeds: list[int], only: list[str] | None) -> Iterator[dict[str, Any]]:
    """Inference × settings × starts."""
    tables = [*data_sets(["book", "flight", "llm_mmlu_pro_a"])]
    for case in PLANTED:
        made = synthetic.planted(case, seed=0)
        tables.append((case, cs.read_claims(made.claims), made.truth))
    for name, claims, gold in tables:
        if only and name not in only:
            continue
        for seed in seeds[:1]:
            for label, fit in variants(claims, seed):
                yield {
                    "data": name,
                    "seed": seed,
                    "variant": label,
                    "accuracy": accuracy_of(fit(), claims, gold),
                }


def variants(claims: cs.Claims, seed: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is compared, as functions that give the truth's probabilities."""

    def story(j: int, counts: bool) -> Any:
        search, rng = search_of(claims), np.random.default_rng([seed, j])
        return search.story_from(j, rng, counts=counts).truth

    for inference in ("mean-field", "structured"):
        for n_starts in (1, 3):
            starts = "random start" if n_starts == 1 else f"best of {n_starts} random starts"

            def fit(prior: Prior, inference: str = inference, n_starts: int = n_starts) -> cs.Fit:
                return with_settings(inference, prior, n_starts).fit(claims, seed=seed)

            yield (
                f"{inference}, paper's grid ({len(GRID)} of its settings), {starts}",
                lambda fit=fit: max(map(fit, GRID), key=lambda each: each.bound).truth,
            )
            yield (
                f"{inference}, learned, {starts}",
                lambda fit=fit, inference=inference: learned(claims, inference, fit).truth,
            )
    yield "partition, counts fixed, random start", lambda: story(2, counts=False)
    yield "partition, counts fixed, start by agreement", lambda: story(1, counts=False)
    yield "partition, learned, random start", lambda: story(2, counts=True)
    yield "partition, learned, sources alone", lambda: story(0, counts=True)
    yield "partition, learned, start by agreement", lambda: story(1, counts=True)
    yield "partition, learned, search (the default)", lambda: cs.MSS().fit(claims, seed=seed).truth


def times(seeds: list[int], only: list[str] | None) -> Iterator[dict[str, Any]]:
    """Whole fits against one structured sweep with 30 groups, the same claims, the same run."""
    for name, claims, _ in data_sets(only or ["book", "flight", "llm_mmlu_pro_a"]):
        model = cs.MSS(inference="structured", max_sweeps=1)
        log_truth = -np.log(
            np.repeat(np.diff(claims.first_candidate), np.diff(claims.first_candidate)).astype(float)
        )
        start = random_start(claims, model._prior(), 30, np.random.default_rng(0), tail=False)
        (shard,) = claims.shards(1, log_truth)
        numba_.structured(shard, start, model._prior())
        sweep = min(timed(lambda: numba_.structured(shard, start, model._prior()))[1] for _ in range(5))  # noqa: B023
        cs.MSS(max_sweeps=1).fit(claims)  # compiled before the clock runs
        for seed in seeds:
            fit, seconds = timed(lambda claims=claims, seed=seed: cs.MSS().fit(claims, seed=seed))
            yield {
                "data": name, "seed": seed, "seconds": seconds, "sweep": sweep, "ratio": seconds / sweep,
                "allowed": 60 * claims.n_sources / 1000, "n_sources": claims.n_sources, "sweeps": fit.sweeps,
            }  # fmt: skip


def with_settings(inference: str, prior: Prior, n_starts: int) -> cs.MSS:
    return cs.MSS(
        inference=inference, true_count=tuple(prior.true_count), false_count=tuple(prior.false_count),
        reliability=tuple(prior.reliability), concentration=prior.concentration, n_starts=n_starts,
        max_sweeps=LONGEST,
    )  # fmt: skip


def learned(claims: cs.Claims, inference: str, fit: Callable[[Prior], cs.Fit]) -> cs.Fit:
    """The fit with the highest bound where settings climb it in turn with the ascent: η⁰ = θ⁰, θ¹ < η¹, b and κ."""

    def settings(x: Any) -> Prior:
        same, theta, above, b0, b1, kappa = np.exp(np.clip(x, -7, 7))
        return Prior(
            np.array([same, theta + above]), np.array([same, theta]), np.array([b0, b1]), float(kappa)
        )

    sizes = np.diff(claims.first_candidate)
    (shard,) = claims.shards(1, -np.log(np.repeat(sizes, sizes).astype(float)))
    step = numba_.mean_field if inference == "mean-field" else numba_.structured
    x, best = np.log([0.1, 0.5, 9.5, 1.0, 2.0, 5.0]), None
    for _ in range(CLIMBS):
        found = fit(settings(x))
        if best is None or found.bound > best.bound:
            best = found
        given = found.groups_found

        def less(x: Any, given: Any = given) -> float:
            _, stats = step(shard, given, settings(x))
            return -sum(bound_terms(stats, given, settings(x)).values())

        x = minimize(less, x, method="Nelder-Mead", options={"maxfev": CLIMB_STEPS}).x
    return best


PARTS = {
    "planted": planted, "bloc": bloc, "sets": sets, "pieces": pieces, "foreign": foreign, "kappa": kappa,
    "ablation": ablation, "times": times,
}  # fmt: skip


class Bench(Search):
    """The search with doors for single starts and given groups."""

    def start_from(self, group: Any) -> Any:
        """The story of given groups, nobody moved."""
        return self.converge(self._fresh(group, 0.95))

    def story_from(self, j: int, rng: np.random.Generator, *, counts: bool) -> Any:
        """One start, its counts learned or left as they begin."""
        if counts:
            return self.start(j, rng)
        story = self._by_agreement() if j == 1 else self._at_random(rng)
        return self.settle(story or self._at_random(rng), rng, counts=False)


def search_of(claims: cs.Claims) -> Bench:
    sizes = np.diff(claims.first_candidate)
    log_truth = -np.log(np.repeat(sizes, sizes).astype(float))
    table = Table.of(*with_domains(claims, log_truth, None), Inline(1, 1), 1)
    return Bench(table, numba_, None, 300, 1e-5)  # type: ignore[arg-type]


def data_sets(only: list[str] | None) -> Iterator[tuple[str, cs.Claims, Path]]:
    if not DATA.is_dir():
        raise SystemExit(f"No data sets in {DATA}: set CONSILIENCE_DATA.")
    names = [path.name for path in sorted(DATA.iterdir()) if (path / "claims.csv.gz").exists()]
    for name in [*names, "book/simple"]:
        if (only is None and name in LEFT_OUT) or (only is not None and name not in only):
            continue
        folder, _, variant = name.partition("/")
        end = f"_{variant}" if variant else ""
        yield name, cs.read_claims(DATA / folder / f"claims{end}.csv.gz"), DATA / folder / f"truth{end}.csv"


def groups_of(made: Any, claims: cs.Claims) -> Any:
    """(n_sources,) the planted group of each source."""
    group = dict(zip(made.groups["source"].to_pylist(), made.groups["group"].to_pylist(), strict=True))
    return np.unique([str(group[source]) for source in claims.sources.to_pylist()], return_inverse=True)[1]


def accuracy_of(truth: Any, claims: cs.Claims, gold: Any) -> float:
    from dataclasses import replace

    from consilience.results.decide import decide

    decision, _ = decide(truth, claims.first_candidate, 0)
    return replace(cs.Vote().fit(claims), truth=truth, decision=decision).score(gold).accuracy


def adjusted_rand(a: Any, b: Any) -> float:
    """Agreement of two partitions beyond chance (Hubert and Arabie, 1985)."""
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    pairs = [
        np.sum(n * (n - 1) / 2) for n in (table, table.sum(axis=0), table.sum(axis=1), np.array([len(a)]))
    ]
    expected = pairs[1] * pairs[2] / pairs[3]
    most = (pairs[1] + pairs[2]) / 2
    return 1.0 if most == expected else float((pairs[0] - expected) / (most - expected))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    done = work()
    return done, time.perf_counter() - started


if __name__ == "__main__":
    main()
