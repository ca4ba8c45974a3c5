from __future__ import annotations

import subprocess
import sys

import pytest

import consilience as cs


def test_the_public_names_are_these() -> None:
    assert sorted(cs.__all__) == [
        "Claims",
        "Fit",
        "MSS",
        "Truths",
        "Vote",
        "compare",
        "errors",
        "load",
        "model",
        "models",
        "read_claims",
        "read_truths",
    ]
    assert set(cs.__all__) <= set(dir(cs))


@pytest.mark.parametrize("name", cs.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(cs, name).__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        cs.nonsense  # noqa: B018


@pytest.mark.parametrize(
    "imports",
    [
        "",
        "cs.MSS",
        "import consilience.models",
        "import consilience.models.registry as registry; registry.MODELS",
        "from consilience.models.vote import Vote",
        "from consilience import models; models()",
        "cs.models; cs.Vote; cs.models",
    ],
)
def test_models_can_be_called_whatever_was_imported_before(imports: str) -> None:
    code = f"import consilience as cs; {imports}\nassert cs.models() == cs.models(), 1\nprint(*cs.models())"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert {"mss", "vote"} <= set(done.stdout.split())


def test_models_is_still_the_package() -> None:
    from consilience.models import registry

    assert cs.models() == list(registry.MODELS)
    assert id(sys.modules["consilience.models"]) == id(cs.models)


def test_four_lines_of_python_give_an_answer() -> None:
    claims = cs.read_claims([("a", "x", "1"), ("b", "x", "1"), ("c", "x", "2")])
    fit = cs.MSS(n_starts=1).fit(claims, seed=0)
    assert fit.truths.column_names == ["object", "value", "probability", "runner_up", "margin", "n_claims"]
    assert fit.sources.column_names == ["source", "reliability", "low", "high", "group", "n_claims"]
    assert fit.groups.column_names == ["group", "n_sources", "reliability", "low", "high", "kind", "weight"]
    assert fit.dependence().column_names == ["source_a", "source_b", "probability"]
    assert str(fit.explain("x")).startswith("x: 1")


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_come_back_as_the_kind_that_came_in(kind: str) -> None:
    library = pytest.importorskip(kind)
    frame = library.DataFrame({"task": [1, 1, 2], "worker": [7, 8, 7], "label": ["yes", "no", "yes"]})
    fit = cs.MSS(n_starts=1).fit(cs.read_claims(frame))
    for table in (fit.truths, fit.sources, fit.groups, fit.dependence()):
        assert isinstance(table, library.DataFrame)
    assert list(fit.truths["object"]) == [1, 2]
    assert sorted(fit.sources["source"]) == [7, 8]
