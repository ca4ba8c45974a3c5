"""An author field as it was typed, taken apart into words and the marks between them.

Nothing here knows a name. Escapes are undone, letters folded to plain ones, and what names no author goes out: roles,
titles, degrees, affiliations, publishers. Which words make up a person is decided in `author_readings.py`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum


class Mark(Enum):
    """What stands between a word and the one before it."""

    SPACE = "space"
    DOT = "dot"
    """An initial and no space, as in W.Richard or J.Poupyrev: the same person or the next."""
    COMMA = "comma"
    GLUE = "glue"
    """Nothing but a change of case, as in LaViola or ErnstLaViola: one word, or the last of a person and the next."""
    END = "end"
    """Here a person ends: a semicolon, a slash, an ampersand, "and", a role. The first word has it too."""


@dataclass(frozen=True)
class Word:
    """A word of an author field, in lower case; a question mark in it stands for a letter that was lost."""

    letters: str
    mark: Mark
    helper: bool = False
    """The last word of somebody who only helped: with the foreword, the pictures, the translation."""


_UNDECOMPOSABLE = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "ß": "ss", "æ": "ae", "Æ": "Ae", "\x92": "'", "’": "'"}
)
_GARBLED_ESCAPE = re.compile(r"and(amp|apos|quot)\b;?", re.I)
_GARBLED_LINE_BREAK = re.compile(r"(?<=[a-z.])BR(?=[A-Z])")
_NOBODY = re.compile(r"\bnot available\b|\bn/a\b|^\s*(?:none|unknown|various|anonymous|eds)[\s.]*$", re.I)
_QUOTED = re.compile(r'"[^"]*"')
_BRACKET = re.compile(r"[(\[{]([^()\[\]{}]*)(?:[)\]}]|$)")
_EDITOR_IN_BRACKETS = re.compile(r"(.*,.*)-\s*eds?\.?\s*", re.I)
_HELPER = re.compile(
    r"\s*(?:foreword|frw|pref|intro|afterword|contrib|con\b|illus|ilt\b|trans|trn\b|manufactured)", re.I
)
_HELPERS = re.compile(
    r"\b(?:foreword|preface|introduction|illustrated|translated|contributions?) by\b[^;/|&]*", re.I
)
_ROLE = re.compile(
    r"\b(?:(?:edited|written|compiled) )?by\b|\b(?:joint )?(?:editors?|authors?)\b\s*[:-]?|,\s*(?:eds\b|ed\.)",
    re.I,
)
_AND_MORE = re.compile(r"\bet\b\.?(?:\s*al\b\.?)?|\betc\b\.?|\band others\b", re.I)
_CONJUNCTION = re.compile(r"&|\b(?:and|und|with)\b", re.I)
_TITLE = re.compile(
    r"\b(?:ph\.?\s?d|dr|prof|professor|sir|mr|mrs|ms|jr|sr|ii|iii|iv|m\.\s?sc|mba|cissp|cism|cisa|mcse)\b\.?",
    re.I,
)
_PUBLISHER = re.compile(
    r"\b(?:academic press|addison.?wesley|mcgraw.?hill|prentice.?hall|morgan kaufmann|pearson)\b", re.I
)
_ORGANISATION = re.compile(
    r"\b(?:universit\w*|institute|college|school|department|inc|corp|corporation|staff|committee|press|publishing"
    r"|publishers?|microsystems)\b",
    re.I,
)
_TEAM = re.compile(r"(?:\w+\s+)?\bteam\b", re.I)
_NO_NAME = re.compile(r"\bwww\.\S+|\b(?:associates|assoc|the|of)\b", re.I)
_DASH = re.compile(r"(?<=\w)-\s+|\s+-+\s*")
_HELPED = "\x01"
"""Stands in the text for a role of helpers, until it is cut into words."""
_WORD = re.compile(r"[A-Za-z?][A-Za-z?'`*_-]*|\x01")
_CHANGE_OF_CASE = re.compile(r"(?<=[a-z])(?<!\bMc)(?=[A-Z])")

_INSTEAD = (
    (_GARBLED_LINE_BREAK, ";"),
    (_HELPERS, ";"),
    (_ROLE, ";"),
    (_AND_MORE, ";"),
    (_CONJUNCTION, ";"),
    (_TITLE, ","),
    (_PUBLISHER, ";"),
    (_TEAM, ";"),
    (_NO_NAME, " "),
    (_DASH, ","),
)
"""What is no name, in the order in which it goes out, and the mark that it leaves."""


def words_of(text: str) -> list[Word]:
    """The words of an author field that may belong to names of authors."""
    text = _NOBODY.sub(" ", _QUOTED.sub(" ", " ".join(plain_letters(text).split())))
    text = _BRACKET.sub(lambda bracket: _instead_of_bracket(bracket[1]), text)
    for no_name, mark in _INSTEAD:
        text = no_name.sub(mark, text)
    return _words("".join(_without_organisations(text)))


def passages(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The words from one end mark to the next: whole persons, nobody in two of them."""
    start = 0
    for end in range(1, len(words) + 1):
        if end == len(words) or words[end].mark is Mark.END:
            yield words[start:end]
            start = end


def pieces(words: Sequence[Word]) -> list[list[str]]:
    """The words between commas; what is glued counts as one word."""
    found: list[list[str]] = []
    for index, word in enumerate(words):
        if index == 0 or word.mark is Mark.COMMA:
            found.append([word.letters])
        elif word.mark is Mark.GLUE:
            found[-1][-1] += word.letters
        else:
            found[-1].append(word.letters)
    return found


def plain_letters(text: str) -> str:
    """ASCII, upper and lower case as they were; escapes are undone, also repeated and garbled ones."""
    text = _GARBLED_ESCAPE.sub(lambda escape: f"&{escape[1].lower()};", text)
    while (unescaped := html.unescape(text)) != text:
        text = unescaped
    text = _decoded_again(text).translate(_UNDECOMPOSABLE)
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


def _decoded_again(text: str) -> str:
    """Text that was UTF-8 and was read as Latin 1, as it was meant; any other text as it is."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def _instead_of_bracket(content: str) -> str:
    """A bracket holds a role or an affiliation, and a name ends there; now and then it holds an editor."""
    if editor := _EDITOR_IN_BRACKETS.fullmatch(content):
        return f";{editor[1]};"
    return f"{_HELPED};" if _HELPER.match(content) else ";"


def _without_organisations(text: str) -> Iterator[str]:
    """What stands between two marks goes out whole where it speaks of a university, a company or the like."""
    for piece in re.split(r"([,;/|])", text):
        yield ";" if _ORGANISATION.search(piece) else piece


def _words(text: str) -> list[Word]:
    words: list[Word] = []
    end = 0
    for match in _WORD.finditer(text):
        mark, end = _mark(text[end : match.start()]), match.end()
        if match[0] == _HELPED:
            if words and mark is not Mark.END:
                words[-1] = replace(words[-1], helper=True)
            continue
        for part in _CHANGE_OF_CASE.split(match[0]):
            letters = re.sub(r"[^a-z?]", "", part.lower())
            if letters.strip("?"):
                words.append(Word(letters, mark if words else Mark.END))
                mark = Mark.GLUE
    return words


def _mark(between: str) -> Mark:
    if re.search(r"[;/|]", between):
        return Mark.END
    if "," in between:
        return Mark.COMMA
    return Mark.DOT if between == "." else Mark.SPACE
