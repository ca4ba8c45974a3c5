from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from consilience.claims.encoding import Int
from consilience.datasets.simulated import Simulated
from consilience.datasets.tagging import TAGS, tagging
from consilience.errors import SettingsError, UnknownNameError
from consilience.evaluate.metrics import precision_recall
from consilience.models.vote import Vote
from tests.datasets.test_synthetic import check_tables, indices, realised_accuracy, right

SMALL = 3_628
"""A tenth of the paper's images."""


@pytest.fixture(scope="module")
def full() -> Simulated:
    return tagging("flower", seed=0)


def column(table: pa.Table, name: str) -> NDArray[Any]:
    """A column as a NumPy array."""
    return np.asarray(table[name].to_numpy())


def of_claims(made: Simulated) -> tuple[Int, Int, NDArray[np.bool_], NDArray[np.bool_]]:
    """(n_claims,) user, image, whether it says yes, whether it is right."""
    user = indices(made.claims["source"], made.groups["source"])
    image = indices(made.claims["object"], made.truth["object"])
    return user, image, column(made.claims, "value") == "yes", right(made)


def test_the_full_size_is_the_papers_and_takes_seconds() -> None:
    started = time.perf_counter()
    made = tagging()
    assert time.perf_counter() - started < 5  # a tenth of that where nothing else runs
    assert (len(made.groups), len(made.truth), len(TAGS)) == (13_528, 36_280, 12)
    assert len(pc.unique(made.claims["source"])) == 13_528
    assert len(pc.unique(made.claims["object"])) == 36_280
    assert 4 < len(made.claims) / 36_280 < 5


def test_tables_are_well_formed(full: Simulated) -> None:
    check_tables(full)
    assert set(full.claims["value"].to_pylist()) == {"yes", "no"}
    assert set(full.groups["kind"].to_pylist()) == {"leader", "friend", "alone"}


def test_the_seed_decides_everything() -> None:
    first, again, other = (tagging(n_images=SMALL, seed=seed) for seed in (3, 3, 4))
    for table in ("claims", "truth", "groups"):
        assert getattr(first, table).equals(getattr(again, table))
        assert not getattr(first, table).equals(getattr(other, table))


def test_tags_share_their_users_and_no_tag_depends_on_those_made_before() -> None:
    forward = {tag: tagging(tag, n_images=500, seed=7) for tag in TAGS}
    backward = {tag: tagging(tag, n_images=500, seed=7) for tag in reversed(TAGS)}
    for place, tag in enumerate(TAGS):
        assert forward[tag].claims.equals(backward[tag].claims)
        assert forward[tag].claims.equals(tagging(place, n_images=500, seed=7).claims)
    who = [made.claims.select(["source", "object"]) for made in forward.values()]
    assert all(each.equals(who[0]) for each in who)
    circles = [made.groups.select(["source", "group", "kind"]) for made in forward.values()]
    assert all(each.equals(circles[0]) for each in circles)
    # One tag says nothing about another: 10 % and 13 % of images meet on 1 %.
    bird, car = (column(tagging(tag, seed=7).truth, "value") == "yes" for tag in ("bird", "car"))
    assert np.mean(bird & car) == pytest.approx(TAGS["bird"] * TAGS["car"], abs=0.003)


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_is_on_its_share_of_images(tag: str) -> None:
    assert np.mean(column(tagging(tag).truth, "value") == "yes") == pytest.approx(TAGS[tag], abs=0.01)


def test_tags_vary_and_most_images_were_found_through_one_of_them() -> None:
    assert min(TAGS.values()) == 0.02
    assert max(TAGS.values()) == 0.2
    assert sum(TAGS.values()) == pytest.approx(1.0, abs=0.03)
    steps = np.diff(np.log(sorted(TAGS.values())))
    assert steps == pytest.approx(np.full(11, np.log(10) / 11), abs=0.03)


def test_few_users_an_image_and_heavy_tails(full: Simulated) -> None:
    user, image, _, _ = of_claims(full)
    users_an_image = np.bincount(image)
    assert users_an_image.min() == 1
    assert np.median(users_an_image) <= 4
    assert np.mean(users_an_image == 1) == pytest.approx(1 / 5, abs=0.01)
    images_a_user = np.sort(np.bincount(user))[::-1]
    assert images_a_user.min() >= 1
    assert images_a_user[:1353].sum() / len(user) > 0.35  # a tenth of the users
    assert images_a_user[0] / len(user) < 0.05
    sizes = np.bincount(column(full.groups, "group"))
    assert sizes[sizes > 1].sum() == pytest.approx(0.75 * 13_528, abs=1)
    assert sizes[sizes > 1].mean() == pytest.approx(15, abs=0.1)
    assert sizes.max() > 60


def test_every_circle_has_one_leader_who_annotates_most(full: Simulated) -> None:
    circle, kind = column(full.groups, "group"), column(full.groups, "kind")
    sizes = np.bincount(circle)
    assert np.array_equal(np.bincount(circle[kind == "leader"], minlength=len(sizes)), sizes > 1)
    assert np.all(sizes[circle[kind == "alone"]] == 1)
    images_a_user = np.bincount(of_claims(full)[0])
    assert images_a_user[kind == "leader"].mean() > 5 * images_a_user[kind == "friend"].mean()


def pairs_on_an_image(made: Simulated) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Neighbouring claims on one image: whether from one circle, whether the first is wrong, and the second."""
    user, image, _, is_right = of_claims(made)
    circle = column(made.groups, "group")[user]
    order = np.lexsort((circle, image))
    meet = np.flatnonzero(image[order][1:] == image[order][:-1])
    a, b = order[meet], order[meet + 1]
    return circle[a] == circle[b], ~is_right[a], ~is_right[b]


def test_circles_share_their_mistakes_and_others_do_not(full: Simulated) -> None:
    together, a, b = pairs_on_an_image(full)
    within, across = np.mean(b[together & a]), np.mean(b[~together & a])
    assert within > 0.5
    # Not zero: where the tag is there, everybody may miss it.
    assert across < 0.2
    together, a, b = pairs_on_an_image(tagging("flower", copying=0.0))
    assert np.mean(b[together & a]) < 0.2


def test_copies_are_as_frequent_as_asked_and_only_where_the_leader_is() -> None:
    guessing: dict[str, Any] = {"sensitivity": 0.5, "specificity": 0.5, "evenness": 1e4}
    made = tagging(n_images=20_000, n_users=1000, home=0.3, copying=0.6, **guessing)
    user, image, says_yes, _ = of_claims(made)
    circle, kind = column(made.groups, "group")[user], column(made.groups, "kind")[user]
    key = image.astype(np.int64) * len(made.groups) + circle
    leads = np.flatnonzero(kind == "leader")
    order = leads[np.argsort(key[leads])]
    place = np.minimum(np.searchsorted(key[order], key), len(order) - 1)
    led = (key[order][place] == key) & (kind == "friend")
    same = says_yes == says_yes[order[place]]
    # Half of those who guess agree all the same.
    assert same[led].mean() == pytest.approx(0.6 + 0.4 / 2, abs=0.01)
    unled = np.flatnonzero((kind == "friend") & ~led)
    unled = unled[np.argsort(key[unled])]
    meet = key[unled][1:] == key[unled][:-1]
    assert meet.sum() > 500
    assert np.mean(says_yes[unled][1:][meet] == says_yes[unled][:-1][meet]) == pytest.approx(0.5, abs=0.06)


def test_users_are_as_accurate_as_the_groups_say() -> None:
    made = tagging("dog", n_users=300, n_images=40_000, users_per_image=8.0)
    n_annotated = np.bincount(of_claims(made)[0], minlength=300)
    busy = n_annotated > 1000
    assert busy.sum() > 20
    planted = column(made.groups, "accuracy")
    assert realised_accuracy(made)[busy] == pytest.approx(planted[busy], abs=0.04)


def test_sensitivity_and_specificity_are_those_of_users_who_look() -> None:
    made = tagging("flower", circled=0.0, evenness=50.0)
    _, image, says_yes, _ = of_claims(made)
    there = column(made.truth, "value")[image] == "yes"
    assert says_yes[there].mean() == pytest.approx(0.82, abs=0.02)
    assert says_yes[~there].mean() == pytest.approx(1 - 0.988, abs=0.004)
    assert set(made.groups["kind"].to_pylist()) == {"alone"}


def test_voting_is_as_good_as_the_paper_says_and_copying_is_half_of_what_it_gets_wrong() -> None:
    figures = []
    for tag in TAGS:
        made, without = (tagging(tag, copying=copying) for copying in (0.8, 0.0))
        assert made.truth.equals(without.truth)
        voted, unled = (Vote().fit(each.claims) for each in (made, without))
        found = precision_recall(voted, made.truth)
        truth = column(made.truth, "value")
        wrong = column(voted.truths, "value") != truth
        misled = wrong & (column(unled.truths, "value") == truth)
        assert found.precision is not None
        assert found.recall is not None
        figures.append(
            (found.precision, found.recall, misled.sum() / wrong.sum(), misled[truth == "yes"].mean())
        )
    precision, recall, of_wrong, of_tagged = np.mean(figures, axis=0)
    assert precision == pytest.approx(0.8499, abs=0.03)
    assert recall == pytest.approx(0.8511, abs=0.02)
    assert of_wrong == pytest.approx(0.5, abs=0.06)
    assert of_tagged > 0.05


def test_names_do_not_give_the_circles_away() -> None:
    circle = column(tagging(n_images=SMALL).groups, "group")
    assert abs(np.corrcoef(np.arange(len(circle)), circle)[0, 1]) < 0.1


@given(
    n_images=st.integers(1, 40),
    n_users=st.none() | st.integers(1, 30),
    users_per_image=st.floats(1, 20),
    activity_tail=st.floats(0.1, 10),
    circled=st.floats(0, 1),
    circle_size=st.floats(2, 40),
    home=st.floats(0, 1),
    copying=st.floats(0, 1),
    evenness=st.floats(0.01, 1e6),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=80, deadline=None)
def test_any_settings_give_tables(**given_settings: Any) -> None:
    made = tagging("flower", **given_settings)
    check_tables(made)
    assert len(made.truth) == given_settings["n_images"]
    assert set(made.claims["object"].to_pylist()) == set(made.truth["object"].to_pylist())


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_images", 0),
        ("n_users", 0),
        ("users_per_image", 0.5),
        ("activity_tail", 0.0),
        ("circled", 1.1),
        ("circle_size", 1.0),
        ("home", -0.1),
        ("copying", float("nan")),
        ("share", 0.0),
        ("sensitivity", 1.0),
        ("specificity", 0.0),
        ("evenness", 0.0),
        ("tag", 12),
        ("tag", -1),
    ],
)
def test_settings_out_of_range_are_refused(setting: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"'{setting}' must be"):
        tagging(**{setting: value})


def test_an_unknown_tag_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="'snow leopard'"):
        tagging("snow-leopard")
