"""The book data: what book stores gave in 2007 as the authors of books on computers, and the truth about 100 of them.

The original is two text files. `book.txt` has a row for each offer: store, ISBN, title, author list, between tabs;
`book_golden.txt` has an ISBN and the authors on the cover. Author lists are typed as every store likes, so claims can
only be compared after cleaning, and the cleaning decides how well every method does. There are two:

    paper    first and last name of each author, by marks alone, as far as the paper's cleaning is known
    careful  the same form, each list read in the way that fits best to the names in clear lists of the same file

Neither looks at the truth. Compare methods on one cleaning only.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import pyarrow as pa

from consilience.datasets.author_names import NameLexicon, normalise_authors
from consilience.datasets.tables import most_frequent, text_table
from consilience.errors import DatasetError, SettingsError

Cleaning = Literal["careful", "paper"]
SEPARATOR = "; "
"""Between the authors of a value."""
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class BookCounts:
    """What the rows with an author field amount to. In the original: 877 stores, 1,263 books, 24,364 listings."""

    stores: int
    books: int
    listings: int
    """Pairs of store and book; a store can offer a book several times."""


class _Offer(NamedTuple):
    """One row that has something in its author field."""

    store: str
    isbn: str
    authors: str


def read_books(path: str | Path, *, cleaning: Cleaning = "careful") -> pa.Table:
    """Claims (source, object, value) from `book.txt`, gzipped or not: store, ISBN, authors in sorted order.

    One claim for each store and book. Where a store offers a book several times, the author list that it gives most
    often counts, of equally frequent ones the first; lists are counted after cleaning, so two spellings of one list
    support each other. Offers that name nobody ("0", an empty field) make no claim.
    """
    offers = list(_offers(path))
    authors = _cleaned(offers, _checked(cleaning))
    claims = [
        (offer.store, offer.isbn, value) for offer in offers if (value := authors[offer.isbn, offer.authors])
    ]
    return text_table(("source", "object", "value"), most_frequent(claims, n_keys=2))


def read_gold(path: str | Path, *, cleaning: Cleaning = "careful") -> pa.Table:
    """Truths (object, value) from `book_golden.txt`, in the form of the claims.

    The authors stand there as "Last, First; Last, First": the careful reading needs no lexicon to see that.
    """
    lexicon = NameLexicon() if _checked(cleaning) == "careful" else None
    rows = [(isbn, _value(authors, lexicon)) for isbn, authors in _rows(path, n_columns=2)]
    return text_table(("object", "value"), most_frequent(rows, n_keys=1))


def book_counts(path: str | Path) -> BookCounts:
    """Stores, books and listings in `book.txt`, over the rows whose author field is not empty."""
    offers = list(_offers(path))
    return BookCounts(
        stores=len({offer.store for offer in offers}),
        books=len({offer.isbn for offer in offers}),
        listings=len({(offer.store, offer.isbn) for offer in offers}),
    )


def convert_books(folder: Path) -> tuple[pa.Table, pa.Table]:
    """Claims and truth from the original files in `folder`, with the careful cleaning."""
    return read_books(folder / "book.txt"), read_gold(folder / "book_golden.txt")


def _cleaned(offers: Iterable[_Offer], cleaning: Cleaning) -> dict[tuple[str, str], str]:
    """The value of each author list, by ISBN and list: the same list may be read otherwise for another book."""
    lists: dict[str, dict[str, None]] = {}  # by ISBN, each list once, in the order of the file
    for offer in offers:
        lists.setdefault(offer.isbn, {})[offer.authors] = None
    if cleaning == "paper":
        return {(isbn, text): _value(text, None) for isbn, texts in lists.items() for text in texts}
    lexicon = NameLexicon.from_texts(text for texts in lists.values() for text in texts)
    values = {}
    for isbn, texts in lists.items():
        of_the_book = lexicon.about(texts)
        values.update({(isbn, text): _value(text, of_the_book) for text in texts})
    return values


def _value(authors: str, lexicon: NameLexicon | None) -> str:
    return SEPARATOR.join(normalise_authors(authors, lexicon=lexicon))


def _checked(cleaning: Cleaning) -> Cleaning:
    if cleaning not in get_args(Cleaning):
        raise SettingsError("cleaning", " or ".join(map(repr, get_args(Cleaning))), cleaning)
    return cleaning


def _offers(path: str | Path) -> Iterator[_Offer]:
    for store, isbn, _, authors in _rows(path, n_columns=4):
        if authors:
            yield _Offer(store, isbn, authors)


def _rows(path: str | Path, n_columns: int) -> Iterator[list[str]]:
    """The cells of each line that is not empty, without spaces around them."""
    content = Path(path).read_bytes()
    if content.startswith(GZIP):
        content = gzip.decompress(content)
    for number, line in enumerate(content.decode("utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != n_columns:
            raise DatasetError(
                f"{path}, line {number}: {len(cells)} cells between tabs, expected {n_columns}. Is it the file as "
                f"it was published? `consilience datasets book` gets it and checks it."
            )
        yield cells
