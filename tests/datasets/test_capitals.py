from __future__ import annotations

import csv
from collections import Counter, defaultdict
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from consilience.datasets.capitals import BLOG, ENCYCLOPEDIA, capitals
from consilience.datasets.simulated import Simulated

Rows = list[tuple[Any, ...]]


def rows_of(table: pa.Table) -> Rows:
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def vote(claims: Rows) -> dict[str, str]:
    """What most sites say of each country; of equals, the first said."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for _, country, city in claims:
        counts[country][city] += 1
    return {country: counter.most_common(1)[0][0] for country, counter in counts.items()}


def one_voice_a_group(simulated: Simulated) -> Rows:
    """Each group says of a country what most of its members say."""
    group = {source: g for source, g, _, _ in rows_of(simulated.groups)}
    by_group: defaultdict[int, Rows] = defaultdict(list)
    for source, country, city in rows_of(simulated.claims):
        by_group[group[source]].append((source, country, city))
    return [(g, *answer) for g, claims in by_group.items() for answer in vote(claims).items()]


def accuracy(answers: dict[str, str], simulated: Simulated) -> float:
    return float(np.mean([answers[country] == city for country, city in rows_of(simulated.truth)]))


def test_the_countries_are_sound() -> None:
    text = files("consilience.datasets").joinpath("capitals.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    countries = [row["country"] for row in rows]
    assert len(countries) == len(set(countries)) == 60
    assert countries == sorted(countries)
    for row in rows:
        cities = [row[name] for name in ("capital", "wrong_1", "wrong_2", "wrong_3")]
        assert len({city for city in cities if city.strip()}) == 4, row
        assert row["trap"] in ("yes", "no")
    truth = {row["country"]: row["capital"] for row in rows}
    assert truth["Australia"] == "Canberra"
    assert truth["Turkey"] == "Ankara"
    assert truth["Kazakhstan"] == "Astana"


def test_sites_cover_part_of_the_countries_and_copies_share_a_group() -> None:
    simulated = capitals()
    groups = rows_of(simulated.groups)
    assert len(groups) == 40
    assert Counter(kind for _, _, kind, _ in groups) == {"copier": 25, "independent": 13, "leader": 2}
    sizes = sorted(Counter(group for _, group, _, _ in groups).values(), reverse=True)
    assert sizes == [22, 5] + [1] * 13
    covered = Counter(simulated.claims["source"].to_pylist())
    assert set(covered) == {source for source, _, _, _ in groups}
    assert all(0.6 * 60 <= n <= 0.9 * 60 for n in covered.values())


def test_the_blog_is_careless_and_falls_for_famous_cities() -> None:
    truth: dict[str, str] = dict(rows_of(capitals().truth))
    shares = []
    for seed in range(10):
        said = {country: city for site, country, city in rows_of(capitals(seed).claims) if site == BLOG}
        assert said.get("Australia", "Sydney") == "Sydney"
        assert said.get("Turkey", "Istanbul") == "Istanbul"
        shares.append(np.mean([truth[country] == city for country, city in said.items()]))
    assert np.mean(shares) == pytest.approx(0.45, abs=0.05)


def test_copies_repeat_what_they_copy() -> None:
    simulated = capitals(seed=2)
    group = {source: g for source, g, _, _ in rows_of(simulated.groups)}
    said: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for site, country, city in rows_of(simulated.claims):
        said[site][country] = city
    for leader in (BLOG, ENCYCLOPEDIA):
        for site in (s for s in said if s != leader and group[s] == group[leader]):
            shared = said[site].keys() & said[leader].keys()
            assert np.mean([said[site][c] == said[leader][c] for c in shared]) > 0.7


def test_voting_fails_and_one_voice_a_group_does_not() -> None:
    voted, known = [], []
    for seed in range(10):
        simulated = capitals(seed)
        voted.append(accuracy(vote(rows_of(simulated.claims)), simulated))
        known.append(accuracy(vote(one_voice_a_group(simulated)), simulated))
    assert np.mean(voted) == pytest.approx(0.55, abs=0.05)
    assert max(voted) < 0.7
    assert min(known) >= 0.9


def test_the_default_says_sydney_if_heads_count() -> None:
    assert vote(rows_of(capitals().claims))["Australia"] == "Sydney"
