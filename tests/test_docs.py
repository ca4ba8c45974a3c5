"""The pages are true: their code runs and prints what they show, references match the code, links lead somewhere."""

from __future__ import annotations

import json
import re
import runpy
from dataclasses import fields
from pathlib import Path

import pytest

from consilience.cli.main import VERBS
from consilience.models.registry import MODELS

ROOT = Path(__file__).resolve().parent.parent
RUNNING = runpy.run_path(str(ROOT / "docs" / "pages.py"))
GENERATING = runpy.run_path(str(ROOT / "docs" / "generate.py"))
PAGES: dict[str, Path] = {path.relative_to(ROOT).as_posix(): path for path in RUNNING["pages"]()}
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ABSOLUTE_PATH = re.compile(r"(?:^|[\s\"'`(=])(?:/(?:[\w.-]+/)+[\w.-]*|[A-Z]:\\\w|~/\w)", re.MULTILINE)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory, and no terminal width from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("CONSILIENCE_DEBUG", raising=False)


def test_figures_of_the_readme_are_those_on_record() -> None:
    recorded = {}
    for part in ("planted", "sets"):
        for line in (ROOT / "benchmarks/search/records" / f"{part}.jsonl").read_text("utf-8").splitlines():
            record = json.loads(line)
            if record["seed"] == 0:
                recorded[record["data"]] = record["accuracy"]
    rows = re.findall(
        r"^\| `([\w-]+)` \| \.\d+ \| (\.\d+) \|$", (ROOT / "README.md").read_text("utf-8"), re.M
    )
    assert len(rows) > 10
    for name, shown in rows:
        assert f"{recorded[name]:.{len(shown) - 1}f}" == f"0{shown}", name


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_prints_what_the_page_shows(page: str) -> None:
    text = PAGES[page].read_text("utf-8")
    now = RUNNING["refreshed"](text)
    assert now.splitlines() == text.splitlines(), "run `python docs/pages.py` and look at what changed"


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```python\n1 / 0\n```\n", "division by zero"),
        ("```console\n$ consilience fit missing.csv\n```\n", "ended with 2"),
        ("```console\n$ consilience --version\nconsilience 99\n```\n", "does not print this line"),
    ],
)
def test_code_that_fails_is_noticed(page: str, complaint: str) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError), match=complaint):
        RUNNING["refreshed"](page)


@pytest.mark.usefixtures("elsewhere")
def test_other_output_is_noticed() -> None:
    wrong = "```python\nprint(1)\n```\n\n```text\n2\n```\n\nprose\n"
    assert RUNNING["refreshed"](wrong) == wrong.replace("2\n", "1\n")
    hidden = "```python\nx = 1\nprint(x)\n```\n"
    assert RUNNING["refreshed"](hidden) == hidden + "\n```text\n1\n```\n"


def test_generated_pages_are_up_to_date() -> None:
    for page, text in GENERATING["generated"]().items():
        assert page.read_text("utf-8") == text, f"{page.name}: run `make docs`"


@pytest.mark.parametrize("name", MODELS)
def test_every_model_and_setting_is_documented(name: str) -> None:
    page = PAGES["docs/reference/settings.md"].read_text("utf-8")
    assert f"## {name}: {MODELS[name].__name__}\n" in page
    assert MODELS[name].__doc__
    without = {field.name for field in fields(MODELS[name])} - set(GENERATING["docstrings"](MODELS[name]))
    assert not without, f"{name}: settings without a docstring below them: {', '.join(sorted(without))}"


def test_every_command_is_documented() -> None:
    page = PAGES["docs/reference/cli.md"].read_text("utf-8")
    assert [verb.__name__ for verb in VERBS] == re.findall(r"^## (\w+)$", page, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = CODE.sub("", PAGES[page].read_text("utf-8"))
    for link in LINK.findall(text):
        if link.startswith(("http://", "https://")):
            continue
        target, _, section = link.partition("#")
        path = (PAGES[page].parent / target).resolve() if target else PAGES[page]
        assert path.is_file(), f"{link} does not exist"
        if section:
            assert section in anchors(path), f"{link}: there is no such section"


def anchors(path: Path) -> set[str]:
    """The names that a page's headings have in links."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_can_be_reached_from_the_index() -> None:
    indexes = [path for name, path in PAGES.items() if name.endswith("index.md")]
    linked = {
        (index.parent / link).resolve()
        for index in indexes
        for link in LINK.findall(index.read_text("utf-8"))
    }
    unlinked = {name for name, path in PAGES.items() if path.resolve() not in linked} - {"docs/index.md"}
    assert not unlinked


@pytest.mark.parametrize("page", PAGES)
def test_no_page_names_a_path_of_a_machine(page: str) -> None:
    assert not ABSOLUTE_PATH.findall(PAGES[page].read_text("utf-8"))


def test_paths_of_a_machine_are_recognised() -> None:
    for text in ("see /opt/data/x.csv", "`/a/b`", "(~/work)", "C:\\data"):
        assert ABSOLUTE_PATH.search(text), text
    for text in (
        "1 / (1 + κ)",
        "src/consilience",
        "https://example.org/a/b",
        "Python/NumPy",
        "../shared/data",
    ):
        assert not ABSOLUTE_PATH.search(text), text


def test_functions_and_tests_that_the_theory_names_exist() -> None:
    """The theory says which function does what and which test checks it: `path::name`, relative to the checkout."""
    named = [
        (page, path, name)
        for page in PAGES
        for path, name in re.findall(r"`([\w/]+\.py)::(\w+)`", PAGES[page].read_text("utf-8"))
    ]
    assert len(named) > 20
    for page, path, name in named:
        source = (ROOT / path).read_text("utf-8")
        assert re.search(rf"^(def|class) {name}\b|^{name}\b", source, re.MULTILINE), f"{page}: {path}::{name}"
