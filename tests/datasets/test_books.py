from __future__ import annotations

import csv
import gzip
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import consilience as cs
from consilience.datasets import catalogue as catalogue_module
from consilience.datasets.books import BookCounts, Cleaning, book_counts, read_books, read_gold
from consilience.datasets.catalogue import RawFile, find
from consilience.datasets.fetch import cache_dir, fetch
from consilience.errors import DatasetError, SettingsError

DATA = Path(os.environ.get("CONSILIENCE_DATA") or Path("..", "shared", "data")) / "book"
RAW, GOLD = DATA / "raw" / "book.txt.gz", DATA / "raw" / "book_golden.txt"
needs_the_original = pytest.mark.skipif(
    not (RAW.is_file() and GOLD.is_file()), reason=f"{RAW} and {GOLD.name} not found: set CONSILIENCE_DATA"
)

OFFERS = (
    ("North Books", "111", "Winter, Anna; Berg, Tomas"),
    ("Paper Mill", "111", "Winter, AnnaBerg, Tomas"),
    ("Old Corner", "111", "Anna Winter (Author) Tomas Berg (Joint Author)"),
    ("Old Corner", "111", "Winter"),
    ("Old Corner", "111", "Berg, Tomas/ Winter, Anna"),
    ("South Books", "111", ""),
    ("South Books", "222", "0"),
    ("Paper Mill", "222", "Lindqvist, Sara K."),
    ("Paper Mill", "222", "Lindqvist"),
    ("North Books", "333", " "),
)
GOLDEN = "111\twinter, anna m.;  berg, tomas ;  \n\n222\tlindqvist, sara ;\n"
BOTH = "anna winter; tomas berg"


@pytest.fixture(params=["book.txt", "book.txt.gz"])
def offers(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    content = as_published(OFFERS)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def as_published(offers: tuple[tuple[str, str, str], ...]) -> bytes:
    return "\r\n".join(f"{store}\t{isbn}\tA title\t{authors}" for store, isbn, authors in offers).encode()


def values_of(claims: pa.Table) -> dict[tuple[str, str], str]:
    source, object_, value = (claims[name].to_pylist() for name in ("source", "object", "value"))
    return dict(zip(zip(source, object_, strict=True), value, strict=True))


def test_careful_claims_see_that_stores_agree(offers: Path) -> None:
    claims = read_books(offers)
    assert claims.column_names == ["source", "object", "value"]
    assert set(claims.schema.types) == {pa.string()}
    assert values_of(claims) == {
        ("North Books", "111"): BOTH,
        ("Paper Mill", "111"): BOTH,
        ("Old Corner", "111"): BOTH,
        ("Paper Mill", "222"): "sara lindqvist",
    }


def test_claims_of_the_paper_go_by_marks(offers: Path) -> None:
    assert values_of(read_books(offers, cleaning="paper")) == {
        ("North Books", "111"): BOTH,
        ("Paper Mill", "111"): "annaberg; tomas; winter",
        ("Old Corner", "111"): "anna berg",
        ("Paper Mill", "222"): "sara lindqvist",
    }


@pytest.mark.parametrize("cleaning", ["careful", "paper"])
def test_gold_has_the_form_of_the_claims(cleaning: Cleaning, tmp_path: Path) -> None:
    path = tmp_path / "book_golden.txt"
    path.write_text(GOLDEN)
    assert read_gold(path, cleaning=cleaning).to_pylist() == [
        {"object": "111", "value": BOTH},
        {"object": "222", "value": "sara lindqvist"},
    ]


def test_counts_are_those_of_rows_with_an_author_field(offers: Path) -> None:
    assert book_counts(offers) == BookCounts(stores=4, books=2, listings=5)


def test_a_file_without_authors_gives_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_bytes(as_published((("North Books", "111", ""),)))
    assert read_books(path).num_rows == 0
    assert book_counts(path) == BookCounts(0, 0, 0)


def test_another_file_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_bytes(as_published(OFFERS) + b"\r\n111\tWinter, Anna\r\n")
    with pytest.raises(DatasetError, match=r"book\.txt, line 11: 2 cells between tabs, expected 4"):
        read_books(path)


def test_an_unknown_cleaning_is_refused(offers: Path) -> None:
    for read in (read_books, read_gold):
        with pytest.raises(SettingsError, match=r"'cleaning' must be 'careful' or 'paper'. Got 'thorough'"):
            read(offers, cleaning="thorough")


def test_the_catalogue_converts_with_the_careful_cleaning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path))
    contents = {"book.txt": as_published(OFFERS), "book_golden.txt": GOLDEN.encode()}
    files = tuple(RawFile(name, hashlib.sha256(text).hexdigest(), None) for name, text in contents.items())
    book = replace(find("book"), files=files)
    monkeypatch.setattr(catalogue_module, "catalogue", lambda: {"book": book})
    folder = cache_dir() / "book" / "raw"
    folder.mkdir(parents=True)
    for name, text in contents.items():
        (folder / name).write_bytes(text)
    made = fetch("book")
    assert cs.read_claims(made.claims).n_claims == 4
    assert cs.Vote().fit(cs.read_claims(made.claims)).score(made.truth).accuracy == 1.0


@needs_the_original
def test_the_counts_of_the_paper_come_out() -> None:
    assert book_counts(RAW) == BookCounts(stores=877, books=1263, listings=24364)


@needs_the_original
@pytest.mark.parametrize(
    ("cleaning", "suffix", "least"), [("careful", "", 0.985), ("paper", "_simple", 0.985)]
)
def test_cleanings_agree_with_tables_that_were_made_otherwise(
    cleaning: Cleaning, suffix: str, least: float
) -> None:
    """Agreement over all pairs that either side has; the converted tables beside the original are another's work."""
    table = DATA / f"claims{suffix}.csv.gz"
    if not table.is_file():
        pytest.skip(f"{table} not found: set CONSILIENCE_DATA")
    with gzip.open(table, "rt", encoding="utf-8", newline="") as file:
        others = {(source, object_): value for source, object_, value in list(csv.reader(file))[1:]}
    claims = read_books(RAW, cleaning=cleaning)
    ours = values_of(claims)
    same = sum(ours.get(pair) == value for pair, value in others.items())
    assert same / len(ours.keys() | others.keys()) >= least

    truth = read_gold(GOLD, cleaning=cleaning)
    assert truth.num_rows == 100
    assert set(truth["object"].to_pylist()) <= {isbn for _, isbn in ours}
    if cleaning == "careful":
        book = find("book")
        assert (len({store for store, _ in ours}), len({isbn for _, isbn in ours}), len(ours)) == (
            book.sources,
            book.objects,
            book.claims,
        )
