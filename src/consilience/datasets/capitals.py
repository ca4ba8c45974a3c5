"""The demonstration: forty travel sites name the capitals of sixty countries; most of them copy one blog."""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from consilience.datasets.simulated import Simulated, erring, name_everything

BLOG = "wandering-postcards"
BLOG_ACCURACY = 0.45
BLOG_COPIES = (
    "backpack-diary",
    "cheap-hops",
    "coast-to-coast-tips",
    "easy-weekends",
    "far-and-wide",
    "fifty-flags",
    "globe-notes",
    "happy-suitcase",
    "holiday-corner",
    "jetlag-journal",
    "maps-and-more",
    "next-stop-anywhere",
    "out-of-office-trips",
    "passport-stories",
    "quick-country-facts",
    "road-and-rail",
    "sunny-side-travel",
    "ten-cities",
    "trip-scrapbook",
    "weekend-wanderer",
    "window-seat-club",
)
ENCYCLOPEDIA = "open-compendium"
ENCYCLOPEDIA_ACCURACY = 0.8
ENCYCLOPEDIA_COPIES = ("country-briefs", "pocket-gazetteer", "quiz-night-answers", "world-in-short")
INDEPENDENT = (
    "atlas-online",
    "border-to-border",
    "capital-watch",
    "classroom-globe",
    "compass-pages",
    "embassy-list",
    "field-geographer",
    "long-way-round",
    "meridian-guide",
    "northern-explorer",
    "old-maps-room",
    "rail-atlas",
    "visa-helper",
)
INDEPENDENT_ACCURACY = (0.7, 0.9)
COPYING = 0.9
"""Probability that a copy repeats what it copies; otherwise it works on its own, as the independent do."""
COVERAGE = (0.6, 0.9)
"""Share of the countries that a site writes about."""


def capitals(seed: int = 0) -> Simulated:
    """Claims of 40 sites about the capitals of 60 countries.

    A careless blog is right on 45 % of the countries. Elsewhere, and always where another city outshines the
    capital (Sydney, Istanbul, Rio de Janeiro), it names the most famous other city; 21 sites copy it. An
    encyclopedia is right on 80 %; four sites copy it. Thirteen sites work on their own, right on 70–90 %, and
    err on any of three cities. If heads count, the blog wins most of the countries that it has wrong.
    """
    rng = np.random.default_rng(seed)
    countries, trap, cities = _countries()
    n_countries, n_cities = len(countries), len(cities[0])
    truth = np.zeros(n_countries, dtype=np.int64)  # the capital stands first

    blog = np.ones(n_countries, dtype=np.int64)  # the most famous wrong city stands second
    blog[rng.permutation(np.flatnonzero(~trap))[: round(BLOG_ACCURACY * n_countries)]] = 0
    encyclopedia = erring(truth, n_cities, ENCYCLOPEDIA_ACCURACY, rng)

    roles = [
        (BLOG, 0, "leader", blog, BLOG_ACCURACY, 1.0),
        *((site, 0, "copier", blog, BLOG_ACCURACY, COPYING) for site in BLOG_COPIES),
        (ENCYCLOPEDIA, 1, "leader", encyclopedia, ENCYCLOPEDIA_ACCURACY, 1.0),
        *((site, 1, "copier", encyclopedia, ENCYCLOPEDIA_ACCURACY, COPYING) for site in ENCYCLOPEDIA_COPIES),
        *((site, group, "independent", truth, 0.0, 0.0) for group, site in enumerate(INDEPENDENT, start=2)),
    ]
    claims, accuracies = [], []
    for index, (_, _, _, copied, copied_accuracy, copying) in enumerate(roles):
        own_accuracy = rng.uniform(*INDEPENDENT_ACCURACY)
        own = erring(truth, n_cities, own_accuracy, rng)
        answers = np.where(rng.random(n_countries) < copying, copied, own)
        covered = np.sort(rng.permutation(n_countries)[: round(rng.uniform(*COVERAGE) * n_countries)])
        city = covered * n_cities + answers[covered]
        claims.append(np.stack([np.full(len(covered), index), covered, city]))
        accuracies.append(copying * copied_accuracy + (1 - copying) * own_accuracy)

    source, object_, value = np.concatenate(claims, axis=1)
    sites, groups, kinds = zip(*(role[:3] for role in roles), strict=True)
    return name_everything(
        pa.array(sites),
        pa.array(countries),
        pa.array([city for row in cities for city in row]),
        (source, object_, value),
        np.arange(n_countries) * n_cities,
        np.array(groups),
        np.array(kinds),
        np.array(accuracies),
    )


def _countries() -> tuple[list[str], NDArray[np.bool_], list[list[str]]]:
    """Countries; whether another city outshines the capital; the capital and others, famous ones first."""
    text = files("consilience.datasets").joinpath("capitals.csv").read_text(encoding="utf-8")
    rows = list(csv.reader(text.splitlines()))[1:]
    return [row[0] for row in rows], np.array([row[1] == "yes" for row in rows]), [row[2:] for row in rows]
