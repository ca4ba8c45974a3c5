"""Which words are first names and which are last names, learnt from author lists that can be read in one way only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from consilience.datasets.author_words import Mark, Word, passages, pieces, words_of

PARTICLES = frozenset(
    (
        "van",
        "von",
        "der",
        "den",
        "de",
        "del",
        "della",
        "di",
        "da",
        "du",
        "dos",
        "el",
        "la",
        "le",
        "ter",
        "ten",
    )
)
"""Words that belong to the last name after them: van der Linden is vanderlinden."""


class Person(NamedTuple):
    """First name (or initial; empty where there is none) and last name, in plain lower-case letters."""

    given: str
    family: str

    def __str__(self) -> str:
        return f"{self.given} {self.family}".strip()


@dataclass(frozen=True)
class NameLexicon:
    """First and last names with their counts, and the people of one book. An empty one is of use too."""

    given: Mapping[str, int] = field(default_factory=dict)
    """How often each first name was seen."""
    family: Mapping[str, int] = field(default_factory=dict)
    """How often each last name was seen."""
    people: frozenset[Person] = frozenset()
    """Who is named clearly in lists about the book that is being read."""

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> NameLexicon:
        """The names in those author lists that are clear; the others are passed over."""
        given: Counter[str] = Counter()
        family: Counter[str] = Counter()
        for text in texts:
            for person in clearly_named(words_of(text)):
                given[person.given] += 1
                family[person.family] += 1
        return cls(dict(given), dict(family))

    def about(self, texts: Iterable[str]) -> NameLexicon:
        """The same names, with the people of one book: `texts` are its author lists.

        "Russell, Norvig" looks like one person. A first name that is a last name nearly everywhere else is not
        believed: else such a row would prove itself.
        """
        named = {person for text in texts for person in clearly_named(words_of(text))}
        believed = (p for p in named if 2 * self.given.get(p.given, 0) >= self.family.get(p.given, 0))
        return replace(self, people=frozenset(believed))

    @cached_property
    def given_names(self) -> frozenset[str]:
        """First names of the people of the book."""
        return frozenset(person.given for person in self.people)

    @cached_property
    def family_names(self) -> frozenset[str]:
        """Last names of the people of the book."""
        return frozenset(person.family for person in self.people)

    @cached_property
    def initials(self) -> frozenset[tuple[str, str]]:
        """First letter and last name of the people of the book."""
        return frozenset((person.given[:1], person.family) for person in self.people)


def clearly_named(words: Sequence[Word]) -> Iterator[Person]:
    """The people in those passages that can be read in one way only.

    Clear are "Last, First" with initials at most after it, and "First M. Last", alone or in a row with commas: an
    initial in the middle says which end is which. "First Last" is not clear, it could be the other way round.
    """
    for passage in passages(words):
        if any(word.mark is Mark.GLUE or "?" in word.letters for word in passage):
            continue
        names = pieces(passage)
        if len(names) == 2 and _is_last_name(names[0]) and _is_first_name(names[1]):
            yield Person(names[1][0], "".join(names[0]))
        elif all(_has_initial_in_the_middle(piece) for piece in names):
            yield from (Person(piece[0], piece[-1]) for piece in names)


def _is_last_name(piece: Sequence[str]) -> bool:
    return len(piece[-1]) > 1 and PARTICLES.issuperset(piece[:-1])


def _is_first_name(piece: Sequence[str]) -> bool:
    return all(len(word) == 1 for word in piece[1:])


def _has_initial_in_the_middle(piece: Sequence[str]) -> bool:
    return 3 <= len(piece) <= 4 and len(piece[-1]) > 1 and all(len(word) == 1 for word in piece[1:-1])
