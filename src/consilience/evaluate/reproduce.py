"""The paper's tables and its figure from our code, each beside what the paper printed.

"Learning from Collective Intelligence in Groups" (ICML 2013): Table 1 compares methods, Table 2 ranks book stores,
Table 3 has rounds and seconds, Figure 4 the accuracy against κ. The book data are public and cleaned as the paper says,
as far as it says; its tagging data are not, so tags are simulated in their shape (`datasets/tagging.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from consilience.claims.encoding import Claims, Float
from consilience.claims.reading import Truths, align_truths, read_claims, read_truths
from consilience.datasets.books import read_books, read_gold
from consilience.datasets.tagging import N_IMAGES, TAGS, tagging
from consilience.evaluate.compare import warm_up
from consilience.evaluate.metrics import precision_recall
from consilience.evaluate.provenance import provenance
from consilience.models.base import Model
from consilience.models.mss.model import MSS
from consilience.models.registry import model
from consilience.results.fit import Fit

PARTS = ("table1", "table2", "table3", "figure4")
PAPER_MSS, OUR_MSS = "MSS, as the paper ran it", "MSS, our default"
OUR_ACCU = "Accu, our default"
PAPER: Mapping[str, Mapping[str, float]] = {
    "Voting": {"accuracy": 0.71, "precision": 0.8499, "recall": 0.8511, "book_rounds": 1, "book_seconds": 0.2,
               "tagging_rounds": 1, "tagging_seconds": 0.5},
    "2-Estimates": {"accuracy": 0.73, "precision": 0.8545, "recall": 0.8602, "book_rounds": 29, "book_seconds": 21.2,
                    "tagging_rounds": 32, "tagging_seconds": 628.1},
    "TruthFinder": {"accuracy": 0.83, "precision": 0.8637, "recall": 0.8649, "book_rounds": 8, "book_seconds": 11.6,
                    "tagging_rounds": 11, "tagging_seconds": 435.0},
    "Accu": {"accuracy": 0.87, "precision": 0.8731, "recall": 0.8743, "book_rounds": 22, "book_seconds": 185.8,
             "tagging_rounds": 23, "tagging_seconds": 3339.7},
    "SSTF": {"accuracy": 0.91},
    PAPER_MSS: {"accuracy": 0.95, "precision": 0.9176, "recall": 0.9212, "book_rounds": 9, "book_seconds": 10.3,
                "tagging_rounds": 12, "tagging_seconds": 366.2},
}  # fmt: skip
"""As printed. SSTF's figure is in the text; it had training data, and the paper does not say how much."""
PAPER_TOP = (1.0, 1.0, 0.9375, 0.875, 1.0, 0.8462, 1.0, 0.8667, 0.8158, 0.8214)
PAPER_BOTTOM = (0.0476, 0.225, 0.3333, 0.2308, 0.3846, 0.4615, 0.0, 0.3043, 0.3896, 0.4444)
PAPER_PEAK = 5.0
"""κ at which the paper's accuracy is highest; it draws the curve and prints no other number of it."""
KAPPAS = (1e-300, 1e-100, 1e-30, 1e-10, 1e-3, 0.1, 1.0, 5.0, 10.0, 1e3, 1e5, 1e30, 1e100, 1e300)
QUICK_KAPPAS = (1e-300, 1e-30, 1e-3, 5.0, 1e3, 1e300)
QUICK_IMAGES = 600
STOPPED = 1e-4
"""When MSS as the paper ran it stops: at a rise of the bound by this share of it. At a tenth of this, the library's own
tolerance, it takes about twice as many rounds and is as accurate."""
KNOWN = 0.2
"""Share of the gold that SSTF is given; it is scored on the rest."""
LEAST_GOLD = 5
"""Gold books that a store of Table 2 must have listed: the accuracy of one with fewer says little."""
RANKED = 10

REPEATS, SHORT = 4, 2.0
"""Fits to the books that are timed besides the first, where that took fewer seconds than this."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Contender:
    """A row of the tables."""

    name: str
    model: Model
    helped: bool = False
    """Whether it is given some of the truths."""


def contenders(*, quick: bool) -> list[Contender]:
    """Those of the paper, and MSS as we default to.

    The paper picked its settings from a grid by the bound; `quick` takes some from within the grid. It says neither at
    how many groups it truncated nor when it stopped: ten groups have a higher bound on books than thirty for most
    seeds; and with its nine rounds it cannot have waited for the last digits, so it stops at STOPPED.
    """
    as_printed = MSS(
        inference="mean-field",
        n_starts=1,
        max_groups=10,
        tolerance=STOPPED,
        select=None if quick else "grid",
    )
    return [
        Contender("Voting", model("vote")),
        Contender("2-Estimates", model("2-estimates")),
        Contender("TruthFinder", model("truthfinder")),
        Contender("Accu", model("accu", order="dependence", from_start=True)),
        Contender(OUR_ACCU, model("accu")),
        Contender("SSTF", model("sstf"), helped=True),
        Contender(PAPER_MSS, as_printed),
        Contender(OUR_MSS, MSS()),
    ]


def reproduce(
    parts: Sequence[str],
    books: Path,
    gold: Path,
    *,
    quick: bool = False,
    seed: int = 0,
    say: Say = lambda text: None,
) -> dict[str, Any]:
    """Everything asked for, ours beside the paper's, ready for JSON.

    books, gold : the original `book.txt` and `book_golden.txt`
    """
    claims = read_claims(read_books(books, cleaning="paper"))
    truth = read_truths(read_gold(gold, cleaning="paper"))
    n_images = QUICK_IMAGES if quick else N_IMAGES
    found: dict[str, Any] = {"quick": quick, "seed": seed, "data": _sizes(claims, truth, n_images)}
    found["provenance"] = provenance()
    rows = contenders(quick=quick)
    fits: dict[str, Fit] = {}
    if {"table1", "table2", "table3"} & set(parts):
        for row in rows:
            say(f"books: {row.name}")
            fits[row.name] = _timed(row, claims, truth, seed)
    tags: dict[str, dict[str, float]] = {}
    if {"table1", "table3"} & set(parts):
        tags = _tags(rows, n_images, seed, say)
    if "table1" in parts:
        found["table1"] = [
            {
                "model": row.name,
                "ours": {
                    "accuracy": fits[row.name].score(truth).accuracy,
                    **_only(tags[row.name], "precision", "recall"),
                },
                "paper": _printed(row.name, "accuracy", "precision", "recall"),
            }
            for row in rows
        ]
    if "table2" in parts:
        found["table2"] = _stores(fits[OUR_MSS], truth)
    if "table3" in parts:
        found["table3"] = [
            {
                "model": row.name,
                "ours": {
                    "book_rounds": fits[row.name].sweeps,
                    "book_seconds": fits[row.name].seconds,
                    **_only(tags[row.name], "tagging_rounds", "tagging_seconds"),
                },
                "paper": _printed(
                    row.name, "book_rounds", "book_seconds", "tagging_rounds", "tagging_seconds"
                ),
            }
            for row in rows
        ]
    if "figure4" in parts:
        found["figure4"] = {"paper": {"peak": PAPER_PEAK}, "ours": _curve(claims, truth, quick, seed, say)}
    return found


def _timed(row: Contender, claims: Claims, truth: Truths, seed: int) -> Fit:
    """The fastest of several fits, if they are short; what a model loads and compiles at first is not counted."""
    warm_up(row.model)
    known = _some(truth, seed) if row.helped else None
    first = row.model.fit(claims, known=known, seed=seed)
    again = REPEATS if first.seconds < SHORT else 0
    fits = [first, *(row.model.fit(claims, known=known, seed=seed) for _ in range(again))]
    return min(fits, key=lambda fit: fit.seconds)


def _sizes(claims: Claims, truth: Truths, n_images: int) -> dict[str, int]:
    return {
        "stores": claims.n_sources, "books": claims.n_objects, "listings": claims.n_claims,
        "gold": len(truth.objects), "images": n_images, "tags": len(TAGS),
    }  # fmt: skip


def _some(truth: Truths, seed: int) -> dict[Any, Any]:
    """A share of the gold, drawn by the seed."""
    pairs = list(zip(list(truth.objects), list(truth.values), strict=True))
    chosen = np.random.default_rng(seed).permutation(len(pairs))[: int(KNOWN * len(pairs))]
    return {str(pairs[i][0]): str(pairs[i][1]) for i in chosen}


def _tags(rows: Sequence[Contender], n_images: int, seed: int, say: Say) -> dict[str, dict[str, float]]:
    """Means over the tags, run one by one; a tag's known truths are drawn like the books'."""
    sums: dict[str, list[tuple[float, ...]]] = {row.name: [] for row in rows}
    for tag in TAGS:
        say(f"tags: {tag}")
        made = tagging(tag, n_images=n_images, seed=seed)
        claims, truth = read_claims(made.claims), read_truths(made.truth)
        for row in rows:
            fit = row.model.fit(claims, known=_some(truth, seed) if row.helped else None, seed=seed)
            right = precision_recall(fit, truth)
            found = [np.nan if x is None else x for x in (right.precision, right.recall)]
            sums[row.name].append((*found, fit.sweeps, fit.seconds))
    names = ("precision", "recall", "tagging_rounds", "tagging_seconds")
    return {
        name: dict(zip(names, np.nanmean(figures, axis=0).tolist(), strict=True))
        for name, figures in sums.items()
    }


def _stores(fit: Fit, truth: Truths) -> dict[str, Any]:
    """Stores by reliability, with their accuracy on the gold books that they list."""
    claims = fit.claims
    gold = align_truths(truth, claims)
    has_gold = gold[claims.claim_object()] != -1
    right = claims.claim_candidate == gold[claims.claim_object()]
    n_gold = np.bincount(claims.claim_source, has_gold, minlength=claims.n_sources)
    accuracy = np.bincount(claims.claim_source, has_gold & right, minlength=claims.n_sources) / np.maximum(
        n_gold, 1
    )
    reliability = fit.source_reliability[:, 0]
    listed = np.flatnonzero(n_gold > 0)
    ranked = np.flatnonzero(n_gold >= LEAST_GOLD)
    ranked = ranked[np.lexsort((ranked, -n_gold[ranked], -reliability[ranked]))]

    def rows(stores: Any) -> list[dict[str, Any]]:
        return [
            {
                "store": str(claims.sources[int(n)]), "reliability": float(reliability[n]),
                "accuracy": float(accuracy[n]), "n_gold": int(n_gold[n]),
            }
            for n in stores
        ]  # fmt: skip

    top, bottom = ranked[:RANKED], ranked[::-1][:RANKED]
    return {
        "least_gold": LEAST_GOLD,
        "top": rows(top),
        "bottom": rows(bottom),
        "ours": {"top": _mean(accuracy[top]), "bottom": _mean(accuracy[bottom])},
        "paper": {"top": float(np.mean(PAPER_TOP)), "bottom": float(np.mean(PAPER_BOTTOM))},
        "rank_correlation": _correlation(reliability[listed], accuracy[listed]),
        "n_stores_with_gold": len(listed),
    }


def _mean(x: Float) -> float | None:
    return float(x.mean()) if len(x) else None


def _correlation(x: Float, y: Float) -> float | None:
    """None where one of them is the same for all."""
    if len(np.unique(x)) < 2 or len(np.unique(y)) < 2:
        return None
    return float(spearmanr(x, y).statistic)


def _curve(claims: Claims, truth: Truths, quick: bool, seed: int, say: Say) -> list[dict[str, Any]]:
    rows = []
    for kappa in QUICK_KAPPAS if quick else KAPPAS:
        say(f"figure 4: κ = {kappa:g}")
        fit = MSS(concentration=kappa).fit(claims, seed=seed)
        rows.append({"kappa": kappa, "accuracy": fit.score(truth).accuracy, "n_groups": fit.n_groups})
    return rows


def _printed(name: str, *columns: str) -> dict[str, float | None]:
    return {column: PAPER.get(name, {}).get(column) for column in columns}


def _only(figures: Mapping[str, float], *columns: str) -> dict[str, float]:
    return {column: figures[column] for column in columns}
