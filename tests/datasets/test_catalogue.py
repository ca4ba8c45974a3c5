from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path

import pytest

from consilience.datasets import catalogue as catalogue_module
from consilience.datasets.catalogue import Columns, Dataset, RawFile, catalogue, find
from consilience.datasets.convert import READERS
from consilience.datasets.fetch import cache_dir, download, fetch, local
from consilience.errors import DatasetError, UnknownNameError

CONTENT = b"item;worker;label\r\n7;1;0\r\n7;2;1\r\n7;1;1\r\n7;1;1\r\n8;1;0\r\n"
GOLD = b"7: 1, 8: 0"
BY_COLUMNS = [name for name, dataset in catalogue().items() if dataset.read_claims is not None]


def raw_file(name: str, content: bytes, url: str) -> RawFile:
    return RawFile(name, hashlib.sha256(content).hexdigest(), url)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Dataset:
    """A catalogue of one small data set, and an empty cache."""
    names = {"0": "no", "1": "yes"}
    dataset = Dataset(
        name="tiny",
        title="A tiny set",
        about="",
        sources=2,
        objects=2,
        claims=3,
        gold=2,
        page="https://example.org/tiny",
        within="",
        licence="",
        citation=(),
        files=(
            raw_file("labels.csv", CONTENT, "https://example.org/raw/labels.csv"),
            raw_file("gold.yaml", GOLD, "https://example.org/raw/gold.yaml"),
        ),
        read_claims=Columns(
            "labels.csv", source=1, object=0, value=2, delimiter=";", skip=1, numbered=True, names=names
        ),
        read_truth=Columns(
            "gold.yaml", object=0, value=1, pattern=r"(\d+): (\d)", numbered=True, names=names
        ),
    )
    monkeypatch.setattr(catalogue_module, "catalogue", lambda: {"tiny": dataset})
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path / "cache"))
    return dataset


def serve(monkeypatch: pytest.MonkeyPatch, answers: Callable[[str], bytes | Exception]) -> list[str]:
    """Make the network answer with bytes, or raise; return the list of addresses asked for."""
    asked: list[str] = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        asked.append(url)
        answer = answers(url)
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return asked


def published(url: str) -> bytes:
    return CONTENT if url.endswith("labels.csv") else GOLD


def files_below(folder: Path) -> list[str]:
    return sorted(path.name for path in Path(folder).rglob("*") if path.is_file())


@pytest.mark.parametrize("name", catalogue())
def test_entries_are_complete(name: str) -> None:
    dataset = find(name)
    assert dataset.name == name
    assert dataset.title
    assert dataset.about.endswith(".")
    assert dataset.licence
    assert dataset.citation
    assert dataset.page.startswith("https://github.com/")
    assert min(dataset.sources, dataset.objects, dataset.claims, dataset.gold) > 0
    assert dataset.claims <= dataset.sources * dataset.objects
    for file in dataset.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert (file.url is None) == bool(dataset.within)
        if file.url is not None:
            assert re.fullmatch(
                r"https://raw\.githubusercontent\.com/[\w.-]+/[\w.-]+/[0-9a-f]{12,40}/[\w./-]+", file.url
            )
    for columns in (dataset.read_claims, dataset.read_truth):
        assert columns is None or columns.file in [file.name for file in dataset.files]
    assert (dataset.read_claims is None) == (dataset.read_truth is None)


def test_flight_has_files_but_no_recipe_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = serve(monkeypatch, lambda url: AssertionError("nothing should be asked for"))
    with pytest.raises(DatasetError, match=r"flight .*no recipe yet.*https://github\.com/"):
        fetch("flight")
    assert len(find("flight").files) == 2
    assert not find("flight").convertible
    assert not asked


def test_readers_of_the_catalogue_exist() -> None:
    named = {dataset.reader for dataset in catalogue().values()} - {None}
    assert named == set(READERS)


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"'flight'.*consilience datasets"):
        find("flights")


@pytest.mark.parametrize("name", BY_COLUMNS)
def test_recipes_reproduce_the_converted_tables(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    try:
        expected = local(name)
    except DatasetError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path))
    raw = tmp_path / name / "raw"
    raw.mkdir(parents=True)
    for file in find(name).files:
        original = expected.truth.parent / "raw" / file.name
        if original.exists():
            content = original.read_bytes()
        else:
            content = gzip.decompress(original.with_name(f"{file.name}.gz").read_bytes())
        (raw / file.name).write_bytes(content)
    asked = serve(monkeypatch, lambda url: AssertionError("all files are there"))

    made = fetch(name)

    def rows(path: Path) -> list[list[str]]:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
            return list(csv.reader(file))

    claims = rows(made.claims)
    assert claims == rows(expected.claims)
    assert rows(made.truth) == rows(expected.truth)
    dataset = find(name)
    sources, objects, _ = (set(column) for column in zip(*claims[1:], strict=True))
    assert (len(sources), len(objects), len(claims) - 1) == (dataset.sources, dataset.objects, dataset.claims)
    assert not asked


def test_local_looks_where_told_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match="CONSILIENCE_DATA") as caught:
        local("dog")
    assert str(tmp_path / "dog" / "claims.csv.gz") in str(caught.value)
    (tmp_path / "dog").mkdir()
    for name in ("claims.csv.gz", "truth.csv"):
        (tmp_path / "dog" / name).touch()
    assert local("dog").truth == tmp_path / "dog" / "truth.csv"


def test_fetch_downloads_checks_and_converts(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = serve(monkeypatch, published)
    tables = fetch("tiny")
    with tables.claims.open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["source", "object", "value"],
            ["w1", "i7", "yes"],
            ["w2", "i7", "yes"],
            ["w1", "i8", "no"],
        ]
    with tables.truth.open(newline="") as file:
        assert list(csv.reader(file)) == [["object", "value"], ["i7", "yes"], ["i8", "no"]]
    assert len(asked) == 2
    assert fetch("tiny") == tables
    assert len(asked) == 2, "what is in the cache is not downloaded again"
    assert files_below(cache_dir()) == ["claims.csv", "gold.yaml", "labels.csv", "truth.csv"]


@pytest.mark.parametrize(
    "failure",
    [urllib.error.URLError("Name or service not known"), TimeoutError("timed out"), ConnectionResetError()],
)
def test_without_network_the_message_names_address_and_place(
    tiny: Dataset, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    serve(monkeypatch, lambda url: failure)
    with pytest.raises(DatasetError) as caught:
        fetch("tiny")
    message = str(caught.value)
    assert "Is there a network?" in message
    assert "https://example.org/raw/labels.csv" in message
    assert str(cache_dir() / "tiny" / "raw" / "labels.csv") in message
    assert files_below(cache_dir()) == []


def test_a_file_that_moved_is_reported_with_the_answer(
    tiny: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, lambda url: urllib.error.HTTPError(url, 404, "Not Found", Message(), None))
    with pytest.raises(DatasetError, match=r"404 Not Found .*https://example\.org/tiny"):
        download("tiny")
    assert files_below(cache_dir()) == []


def test_a_download_with_another_sha_is_refused_and_not_kept(
    tiny: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, lambda url: b"something else")
    with pytest.raises(DatasetError, match=tiny.files[0].sha256):
        fetch("tiny")
    assert files_below(cache_dir()) == []


def test_a_wrong_file_in_the_cache_is_refused_but_left_to_its_owner(
    tiny: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, published)
    path = cache_dir() / "tiny" / "raw" / "labels.csv"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"by hand, but wrong")
    with pytest.raises(DatasetError, match="Remove"):
        fetch("tiny")
    assert path.read_bytes() == b"by hand, but wrong"
    path.write_bytes(CONTENT)
    assert fetch("tiny").claims.exists()


def test_files_inside_an_archive_are_asked_for_by_hand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path))
    with pytest.raises(DatasetError, match=r"datasets\.zip.*folder 'd_Duck Identification'") as caught:
        fetch("bluebirds")
    assert str(tmp_path / "bluebirds" / "raw" / "answer.csv") in str(caught.value)


def test_a_set_without_single_files_points_to_its_page() -> None:
    with pytest.raises(DatasetError, match=r"no single files.*https://github\.com/"):
        download("weather")


@pytest.mark.parametrize(
    ("platform", "variable", "below"),
    [("linux", "XDG_CACHE_HOME", ""), ("win32", "LOCALAPPDATA", ""), ("darwin", "HOME", "Library/Caches")],
)
def test_the_cache_follows_the_platform(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, variable: str, below: str
) -> None:
    monkeypatch.delenv("CONSILIENCE_CACHE", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("sys.platform", platform)
    assert cache_dir() == tmp_path / below / "consilience"
