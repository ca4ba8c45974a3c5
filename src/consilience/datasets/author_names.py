"""Author lists as book stores type them, brought to one form: a set of people, first and last name of each.

    Knuth, Donald E.                 →  donald knuth
    Aho, Alfred V.; Ullman, Jeffrey  →  alfred aho, jeffrey ullman
    Jeffrey D. Ullman, Alfred Aho    →  alfred aho, jeffrey ullman

Two spellings of one list become equal, so that stores who say the same are seen to. Nicknames, initials and
misspellings stay what they are: "d knuth" is not "donald knuth".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from consilience.datasets.author_lexicon import NameLexicon, Person
from consilience.datasets.author_readings import best_reading
from consilience.datasets.author_words import plain_letters, words_of

__all__ = ["NameLexicon", "Person", "normalise_authors"]


def normalise_authors(text: str, *, lexicon: NameLexicon | None = None) -> tuple[str, ...]:
    """The authors named in a list, as "first last", sorted, each once; empty where nobody is named.

    Letters are folded to a-z, first names and initials after the first are dropped. A last name alone stays alone.

    Without a lexicon only marks are looked at. A person ends at ; / | & and "and". In between, one comma after a
    single word turns "Last, First" round; other commas end a person. What stands in brackets goes out. Whatever is
    left is taken for a name: "Not Available" too, and of a list "Last, First, Last, First" every word.

    With a lexicon roles, titles and affiliations go out, helpers (foreword, pictures, translation) with their role,
    and a list is read in every way that its marks allow; the reading that fits the known names best is kept.
    """
    if lexicon is None:
        return tuple(sorted(set(_plain_names(text))))
    return tuple(sorted({str(person) for person in best_reading(words_of(text), lexicon)}))


def _plain_names(text: str) -> Iterator[str]:
    text = re.sub(r"\([^)]*(?:\)|$)|\{[^}]*(?:\}|$)", " ", plain_letters(text).lower())
    text = re.sub(r"\bet\.? al\b|\betc\b", " ", text)
    for part in re.split(r"[;/|&]|\band\b", text):
        pieces = [words for piece in part.split(",") if (words := re.sub(r"[^a-z\s]", "", piece).split())]
        if len(pieces) == 2 and len(pieces[0]) == 1:
            pieces = [pieces[1] + pieces[0]]
        for words in pieces:
            yield " ".join(words if len(words) == 1 else (words[0], words[-1]))
