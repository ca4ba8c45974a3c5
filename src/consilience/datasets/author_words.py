"""An author field as it was typed, taken apart into words and the marks between them.

Nothing here knows a name. Escapes are undone, letters folded to plain ones, and what names no author goes: roles,
titles, degrees, affiliations, publishers. Whose name a word belongs to is decided in `author_names.py`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass
from enum import Enum


class Mark(Enum):
    """What stands between a word and the one before it."""

    SPACE = "space"
    DOT = "dot"
    """An initial and no space, as in W.Richard or J.Poupyrev: the same person or the next."""
    COMMA = "comma"
    GLUE = "glue"
    """Nothing but a change of case, as in LaViola or ErnstLaViola: one word, or two of two persons."""
    END = "end"
    """Here a person ends: a semicolon, a slash, an ampersand, "and", a role."""


@dataclass(frozen=True)
class Word:
    """A word of an author field, in lower case; a question mark in it stands for a letter that was lost."""

    letters: str
    mark: Mark
    helper: bool = False
    """It ends the name of somebody who only helped: the foreword, the pictures, the translation."""


_NOBODY = re.compile(r"\s*(?:not available|n\s?/\s?a|none|unknown|various|anonymous|eds?|no authors?)[\s.]*", re.I)
_LETTERS_WITHOUT_DECOMPOSITION = str.maketrans({"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "ß": "ss", "æ": "ae", "Æ": "Ae"})
_BRACKET = re.compile(r"[(\[{]([^()\[\]{}]*)(?:[)\]}]|$)")
_HELPER = re.compile(
    r"\s*(?:fore?word|frw|pref|intro|afterword|contrib|con\b|cor\b|illus|ilt\b|trans|trn\b|manufactured|creator)", re.I
)
_EDITOR_IN_BRACKETS = re.compile(r"(.*,.*)-\s*eds?\.?\s*", re.I)
_HELPER_BEFORE = re.compile(
    r"\b(?:foreword|preface|introduction|illustrated|translated|contributions?)\s+by\b[^;/|&]*", re.I
)
_ROLE = re.compile(r"\b(?:(?:edited|written|compiled)\s+)?by\b|\b(?:joint\s+)?(?:editors?|authors?)\b\s*[:-]?", re.I)
_AND_MORE = re.compile(r"\bet\b\.?(?:\s*al\b\.?)?|\betc\b\.?|\band\s+others\b", re.I)
_CONJUNCTION = re.compile(r"&|\b(?:and|und|with)\b", re.I)
_TITLE = re.compile(
    r"\b(?:ph\.?\s?d|dr|prof|professor|mr|mrs|ms|jr|sr|ii|iii|iv|m\.\s?sc|mba|cissp|cism|cisa|mcse)\b\.?", re.I
)
_PUBLISHER = re.compile(
    r"\b(?:academic press|addison.?wesley|mcgraw.?hill|prentice.?hall|morgan kaufmann|pearson)\b", re.I
)
_ORGANISATION = re.compile(
    r"[^,;/|&]*\b(?:universit\w*|institute|college|school|department|inc|corp|corporation|staff|committee|team|press"
    r"|publishing|publishers?|microsystems)\b[^,;/|&]*",
    re.I,
)
_NOT_A_NAME = re.compile(r"\b(?:associates|the|of|www\.\S+)(?!\S)", re.I)
_QUOTED = re.compile(r'"[^"]*"|\'[^\' ]*\'(?!\w)')
_DASH = re.compile(r"(?<=\w)-\s+|\s+-+\s*")
_WORD = re.compile(r"[A-Za-z?][A-Za-z?'`*_-]*|\^")
_CHANGE_OF_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_HELPED = " ^;"


def words_of(text: str) -> list[Word]:
    """The words of an author field that may belong to names of authors."""
    text = plain_letters(text)
    if _NOBODY.fullmatch(text):
        return []
    return _words(_without_what_is_no_name(text))


def plain_letters(text: str) -> str:
    """ASCII letters, upper and lower case as they were; escapes undone, also repeated or garbled ones."""
    text = text.replace("andamp;", "&")
    while (unescaped := html.unescape(text)) != text:
        text = unescaped
    text = _decoded_once_more(text).translate(_LETTERS_WITHOUT_DECOMPOSITION).replace("\x92", "'")
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


def _decoded_once_more(text: str) -> str:
    """Text that was UTF-8 but was read as Latin 1; other text as it is."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def _without_what_is_no_name(text: str) -> str:
    text = _BRACKET.sub(lambda bracket: _instead_of_bracket(bracket[1]), _QUOTED.sub(" ", text))
    for no_name, instead in (
        (_HELPER_BEFORE, ";"),
        (_ROLE, ";"),
        (_AND_MORE, ";"),
        (_CONJUNCTION, ";"),
        (_TITLE, ","),
        (_PUBLISHER, " "),
        (_ORGANISATION, ";"),
        (_NOT_A_NAME, " "),
        (_DASH, ","),
    ):
        text = no_name.sub(instead, text)
    return text


def _instead_of_bracket(content: str) -> str:
    """A bracket holds a role or an affiliation; both end a name. Sometimes it holds an editor."""
    if editor := _EDITOR_IN_BRACKETS.fullmatch(content):
        return f";{editor[1]};"
    return _HELPED if _HELPER.match(content) else ";"


def _words(text: str) -> list[Word]:
    words: list[Word] = []
    end = 0
    for match in _WORD.finditer(text):
        between, end = text[end : match.start()], match.end()
        if match[0] == "^":
            if words:
                words[-1] = Word(words[-1].letters, words[-1].mark, helper=True)
            continue
        mark = _mark(between) if words else Mark.END
        for part in _CHANGE_OF_CASE.split(match[0]):
            if letters := re.sub(r"[^a-z?]", "", part.lower()).removeprefix("?"):
                words.append(Word(letters, mark))
                mark = Mark.GLUE
    return words


def _mark(between: str) -> Mark:
    if re.search(r"[;/|]", between):
        return Mark.END
    if "," in between:
        return Mark.COMMA
    return Mark.DOT if between == "." else Mark.SPACE
