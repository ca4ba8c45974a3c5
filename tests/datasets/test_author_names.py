from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.datasets.author_lexicon import clearly_named
from consilience.datasets.author_names import NameLexicon, Person, normalise_authors
from consilience.datasets.author_words import Mark, words_of

CLEAR = (
    "Winter, Anna",
    "Winter, Anna M.; Berg, Tomas",
    "Berg, Tomas / Lindqvist, Sara",
    "Sara K. Lindqvist, Tomas R. Berg",
    "Okafor, Ngozi",
    "Van der Meer, Johan",
    "Macrae, Ewan",
)
LEXICON = NameLexicon.from_texts(CLEAR)
OF_THE_BOOK = LEXICON.about(CLEAR)

NAMES = st.from_regex(r"([kvz][aou]){2,4}", fullmatch=True)  # no particle, title or organisation among them


@pytest.mark.parametrize(
    ("text", "authors"),
    [
        ("Winter, Anna", "anna winter"),
        ("Anna M. Winter", "anna winter"),
        ("WINTER, ANNA MARIA", "anna winter"),
        ("Winter", "winter"),
        ("Winter, Anna; Berg, Tomas", "anna winter; tomas berg"),
        ("Winter, Anna/ Berg, Tomas", "anna winter; tomas berg"),
        ("Anna Winter &amp; Tomas Berg", "anna winter; tomas berg"),
        ("Anna Winter, Tomas Berg and Sara Lindqvist", "anna winter; sara lindqvist; tomas berg"),
        ("Winter, Anna; Winter, Anna", "anna winter"),
        ("O'Hara, Jos&eacute;", "jose ohara"),
        ("Winter, Anna (Editor)", "anna winter"),
        ("Winter, Anna (University of some", "anna winter"),
        ("Anna Winter, et al.", "anna winter"),
        ("Not Available", "not available"),
        ("0", ""),
        ("", ""),
        ("Winter, Anna, Berg, Tomas", "anna; berg; tomas; winter"),
    ],
)
def test_without_a_lexicon_marks_alone_decide(text: str, authors: str) -> None:
    assert "; ".join(normalise_authors(text)) == authors


@pytest.mark.parametrize(
    "text",
    [
        "Winter, Anna; Berg, Tomas",
        "Winter, Anna, Berg, Tomas",
        "Winter, Anna Berg, Tomas",
        "Winter, AnnaBerg, Tomas",
        "WINTER, ANNABERG, TOMAS",
        "Winter, Anna M.Berg, Tomas",
        "Winter Anna, Berg Tomas",
        "Anna Winter, Tomas Berg",
        "Anna M. Winter Tomas Berg",
        "Winter, Anna and Tomas Berg",
        "Winter, AnnaBRBerg, Tomas",
        "Winter- Anna / Berg- Tomas",
        "By (author) Winter, Anna By (author) Berg, Tomas",
        "Winter, Anna (Author) Berg, Tomas (Joint Author)",
        "Editor: WINTER, ANNA BERG, TOMAS",
        "Winter, Anna; (Berg, Tomas - ed.)",
        "Dr. Anna Winter, Tomas Berg, Ph.D.",
        "Winter, Anna, Ph.D., and Berg, Tomas, Jr.",
        "Anna Winter , University of Somewhere, Tomas Berg",
        "Winter, Anna (Professor, Some College, Some Town) Berg, Tomas",
        "Winter, Anna; Berg, Tomas; Lindqvist, Sara (Foreword by)",
        "Winter, Anna/ Berg, Tomas/ Lindqvist, Sara (FRW)",
        "Winter, Anna; Berg, Tomas; translated by Sara Lindqvist",
        "Winter, Anna; Berg, Tomas; Academic Press",
        "Not Available; Winter, Anna; Berg, Tomas; A",
        "Winter, Anna; Berg, Tomas, et al.",
        "W?nter, Anna; Berg, Tomas",
    ],
)
def test_with_a_lexicon_these_are_the_same_two_people(text: str) -> None:
    assert normalise_authors(text, lexicon=OF_THE_BOOK) == ("anna winter", "tomas berg")


@pytest.mark.parametrize(
    ("text", "authors"),
    [
        ("Winter, Berg", "berg; winter"),
        ("Winter & Berg", "berg; winter"),
        ("Meer, Johan van der", "johan vandermeer"),
        ("Johan van der Meer, Anna Winter", "anna winter; johan vandermeer"),
        ("Van Der Meer", "vandermeer"),
        ("MacRae, Ewan", "ewan macrae"),
        ("A. Winter", "a winter"),
        ("W. Anna Winter", "w winter"),
        ("Anya Winter", "anya winter"),
        ("Sara Lindqvist (Translator)", ""),
        ("Addison-Wesley (Manufactured by)", ""),
        ("N/A", ""),
        ("None", ""),
        ("McGraw-Hill", ""),
        ("0", ""),
        ("", ""),
    ],
)
def test_with_a_lexicon_nothing_is_made_up(text: str, authors: str) -> None:
    assert "; ".join(normalise_authors(text, lexicon=OF_THE_BOOK)) == authors


def test_an_empty_lexicon_reads_what_marks_settle() -> None:
    assert normalise_authors("Winter, Anna M.; Van der Meer, Johan", lexicon=NameLexicon()) == (
        "anna winter",
        "johan vandermeer",
    )


def test_the_same_list_may_be_read_otherwise_for_another_book() -> None:
    lexicon = NameLexicon.from_texts(["Thomas, Kelly", "Kelly, Thomas"])
    text = "Thomas Kelly"
    assert normalise_authors(text, lexicon=lexicon.about(["Kelly, Thomas"])) == ("thomas kelly",)
    assert normalise_authors(text, lexicon=lexicon.about(["Thomas, Kelly"])) == ("kelly thomas",)


def test_only_clear_lists_enter_the_lexicon() -> None:
    for text in ("Anna Winter", "Winter, Anna, Berg, Tomas", "Winter, Anna Berg, Tomas", "Winter, AnnaBerg"):
        assert not list(clearly_named(words_of(text))), text
    assert list(clearly_named(words_of("Winter, Anna M.; Tomas R. Berg"))) == [
        Person("anna", "winter"),
        Person("tomas", "berg"),
    ]
    assert LEXICON.given == {"anna": 2, "tomas": 3, "sara": 2, "ngozi": 1, "johan": 1, "ewan": 1}
    assert LEXICON.family["vandermeer"] == 1


def test_two_last_names_are_not_believed_to_be_one_person() -> None:
    texts = [*CLEAR, "Winter, Berg"]
    lexicon = NameLexicon.from_texts(texts)
    assert Person("berg", "winter") not in lexicon.about(texts).people
    assert Person("anna", "winter") in lexicon.about(texts).people


def test_words_know_what_stood_before_them_and_who_only_helped() -> None:
    words = words_of("Winter, Anna K.Berg (Foreword); MacRae, Ewan")
    assert [(word.letters, word.mark) for word in words] == [
        ("winter", Mark.END),
        ("anna", Mark.COMMA),
        ("k", Mark.SPACE),
        ("berg", Mark.DOT),
        ("mac", Mark.END),
        ("rae", Mark.GLUE),
        ("ewan", Mark.COMMA),
    ]
    assert [word.letters for word in words if word.helper] == ["berg"]


@pytest.mark.parametrize("lexicon", [None, NameLexicon(), OF_THE_BOOK])
@given(text=st.text(max_size=60) | st.text(alphabet="AbcdWinterAnna,.;/&()?' -", max_size=60))
def test_any_text_gives_a_sorted_set_of_at_most_two_words_each(
    lexicon: NameLexicon | None, text: str
) -> None:
    authors = normalise_authors(text, lexicon=lexicon)
    assert list(authors) == sorted(set(authors))
    for author in authors:
        assert re.fullmatch(r"[a-z]+( [a-z]+)?", author)


@pytest.mark.parametrize("lexicon", [None, NameLexicon()])
@given(people=st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=5, unique=True))
def test_order_and_turning_round_do_not_matter(
    lexicon: NameLexicon | None, people: list[tuple[str, str]]
) -> None:
    turned = "; ".join(f"{last.title()}, {first.title()} Q." for first, last in people)
    straight = " / ".join(f"{first.upper()} Q. {last.upper()}" for first, last in reversed(people))
    expected = tuple(sorted({f"{first} {last}" for first, last in people}))
    assert normalise_authors(turned, lexicon=lexicon) == expected
    assert normalise_authors(straight, lexicon=lexicon) == expected
