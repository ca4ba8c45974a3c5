"""The best of all ways to read an author list whose marks do not say where a person ends.

    Earp, RichardBagui, Sikha          Last, First, glued to the next
    Prosise, Chris Mandia, Kevin       Last, First, and the next without any mark
    Ford, Ann, Teorey, Toby            Last, First, and the comma once more between persons
    Abrahams David, Gurtovoy Aleksey   Last First

A reading cuts the list into persons and says for each which word is the first name and which the last. It gains where
its names are known as such and loses for what it has to suppose. The best one is found from left to right: for each
place and each style of the person that ends there, the best reading so far.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from consilience.datasets.author_lexicon import PARTICLES, NameLexicon, Person
from consilience.datasets.author_words import Mark, Word, pieces

# Gains and losses, on the scale of log odds. They were set by hand on the lists of stores; no truth was looked at.
NEXT_PERSON = {Mark.END: 0.0, Mark.COMMA: -0.5, Mark.GLUE: -0.5, Mark.DOT: -1.0, Mark.SPACE: -2.5}
"""A new person begins after this mark."""
OTHER_STYLE = -1.5
"""A person is written in another style than the one before."""
OTHER_STYLE_AFTER_END = -0.5
"""The same after an end mark: cards of libraries turn round the first name of a list only."""
LAST_FIRST = -2.0
"""The last name stands first without a comma."""
LAST_NAME_ALONE = -3.5
LAST_NAME_ALONE_OF_THE_BOOK = -2.0
PERSON_OF_THE_BOOK = 4.0
LAST_NAME_AND_INITIAL_OF_THE_BOOK = 2.0
LAST_NAME_OF_THE_BOOK_AS_FIRST = -3.0
INITIAL_AS_FIRST_NAME = -0.2
INITIAL_AS_LAST_NAME = -5.0
PARTICLE_AS_FIRST_NAME = -4.0
WORD_MORE_IN_LAST_NAME = -2.5
MIDDLE_NAME = -0.5
MIDDLE_NAME_UNKNOWN = -1.0
LAST_NAME_AS_MIDDLE_NAME = -2.0
MIDDLE_NAME_MORE = -1.5
"""A second middle name that is no initial."""

MOST_WORDS = 8
"""Words of the name of one person."""
SHORTEST_GLUED = 6
"""Letters that a word must have to be looked at as two."""


class Style(Enum):
    """How the name of a person is written."""

    FIRST_LAST = "Donald E. Knuth"
    LAST_FIRST = "Knuth Donald E."
    LAST_COMMA_FIRST = "Knuth, Donald E."
    LAST = "Knuth"


@dataclass(frozen=True)
class _Name:
    """One way to read a stretch of words as a person."""

    style: Style
    person: Person
    fit: float


@dataclass(frozen=True)
class _Reading:
    """One way to read the words up to some place: the last person, and the reading before it."""

    fit: float
    style: Style | None = None
    person: Person | None = None
    before: _Reading | None = None

    def people(self) -> Iterator[Person]:
        """Those who are named, the last one first."""
        reading: _Reading | None = self
        while reading is not None:
            if reading.person is not None:
                yield reading.person
            reading = reading.before


def best_reading(words: Sequence[Word], lexicon: NameLexicon) -> set[Person]:
    """The authors, in the reading of these words that fits best; a lone initial is nobody."""
    words = [part for word in words for part in _unglued(_restored(word, lexicon), lexicon)]
    best: list[dict[Style | None, _Reading]] = [{} for _ in range(len(words) + 1)]
    best[0][None] = _Reading(0.0)
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + MOST_WORDS) + 1):
            if end > start + 1 and words[end - 1].mark is Mark.END:
                break
            for name in _names(words[start:end], lexicon):
                reading = _continued(best[start], name, words[start].mark, words[end - 1].helper)
                if name.style not in best[end] or reading.fit > best[end][name.style].fit:
                    best[end][name.style] = reading
    chosen = max(best[-1].values(), key=lambda reading: reading.fit)
    return {person for person in chosen.people() if len(str(person)) > 1}


def _continued(readings: dict[Style | None, _Reading], name: _Name, mark: Mark, helper: bool) -> _Reading:
    """The best of these readings with one more person; one who only helped is read, but not named."""

    def total(reading: _Reading) -> float:
        fit = reading.fit + name.fit + NEXT_PERSON[mark]
        if Style.LAST in (reading.style, name.style) or reading.style in (None, name.style):
            return fit
        return fit + (OTHER_STYLE_AFTER_END if mark is Mark.END else OTHER_STYLE)

    before = max(readings.values(), key=total)
    return _Reading(total(before), name.style, None if helper else name.person, before)


def _names(words: Sequence[Word], lexicon: NameLexicon) -> Iterator[_Name]:
    """Every way to read these words as one person."""
    match pieces(words):
        case [names]:
            if PARTICLES.issuperset(names[:-1]):
                yield _last_name_alone("".join(names), lexicon)
            if len(names) > 1:
                cut = _before_particles(names, len(names) - 1)
                yield _name(Style.FIRST_LAST, names[0], names[1:cut], names[cut:], lexicon)
                cut = next(
                    i for i in range(1, len(names)) if i == len(names) - 1 or names[i - 1] not in PARTICLES
                )
                yield _name(Style.LAST_FIRST, names[cut], names[cut + 1 :], names[:cut], lexicon)
        case [family, given]:
            cut = _before_particles(given, len(given))
            yield _name(Style.LAST_COMMA_FIRST, given[0], given[1:cut], given[cut:] + family, lexicon)


def _before_particles(names: Sequence[str], cut: int) -> int:
    """The place before the particles that end at `cut`; one name at least is left before them."""
    while cut > 1 and names[cut - 1] in PARTICLES:
        cut -= 1
    return cut


def _last_name_alone(family: str, lexicon: NameLexicon) -> _Name:
    known = family in lexicon.family_names
    fit = LAST_NAME_ALONE_OF_THE_BOOK if known else LAST_NAME_ALONE + _fit_of_last(family, lexicon)
    return _Name(Style.LAST, Person("", family), fit)


def _name(
    style: Style, given: str, middle: Sequence[str], family: Sequence[str], lexicon: NameLexicon
) -> _Name:
    person = Person(given, "".join(family))
    fit = _fit_of_first(given, lexicon) + _fit_of_middle(middle, lexicon)
    if person.family in lexicon.family:
        fit += _fit_of_last(person.family, lexicon)
    else:
        parts = [word for word in family[:-1] if word not in PARTICLES]
        fit += sum(WORD_MORE_IN_LAST_NAME + _fit_of_last(word, lexicon) for word in parts)
        fit += _fit_of_last(family[-1], lexicon)
    if person in lexicon.people:
        fit += PERSON_OF_THE_BOOK
    elif (given[:1], person.family) in lexicon.initials:
        fit += LAST_NAME_AND_INITIAL_OF_THE_BOOK
    return _Name(style, person, fit + (LAST_FIRST if style is Style.LAST_FIRST else 0.0))


def _fit_of_first(word: str, lexicon: NameLexicon) -> float:
    if len(word) == 1:
        return INITIAL_AS_FIRST_NAME
    fit = PARTICLE_AS_FIRST_NAME if word in PARTICLES else 0.0
    if word in lexicon.family_names and word not in lexicon.given_names:
        fit += LAST_NAME_OF_THE_BOOK_AS_FIRST
    return fit + _log_share(lexicon.given.get(word, 0), lexicon.family.get(word, 0))


def _fit_of_last(word: str, lexicon: NameLexicon) -> float:
    if len(word) == 1:
        return INITIAL_AS_LAST_NAME
    return _log_share(lexicon.family.get(word, 0), lexicon.given.get(word, 0))


def _fit_of_middle(words: Sequence[str], lexicon: NameLexicon) -> float:
    fit, full = 0.0, [word for word in words if len(word) > 1]
    for word in full:
        n_given, n_family = lexicon.given.get(word, 0), lexicon.family.get(word, 0)
        if n_given > n_family:
            fit += MIDDLE_NAME
        else:
            fit += LAST_NAME_AS_MIDDLE_NAME if n_family else MIDDLE_NAME_UNKNOWN
    return fit + MIDDLE_NAME_MORE * max(0, len(full) - 1)


def _log_share(n_so: int, n_otherwise: int) -> float:
    """About 0 for a name always seen so, -1.6 for one never seen, the lower the oftener it was seen otherwise."""
    return math.log((n_so + 0.1) / (n_so + n_otherwise + 0.5))


def _restored(word: Word, lexicon: NameLexicon) -> Word:
    """The name of the book that a word with lost letters may be; without one, the letters that are left."""
    if "?" not in word.letters:
        return word
    pattern = re.compile(word.letters.replace("?", "[a-z]?"))
    fitting = filter(pattern.fullmatch, lexicon.given_names | lexicon.family_names)
    letters = max(
        fitting,
        key=lambda name: (len(name), lexicon.given.get(name, 0) + lexicon.family.get(name, 0), name),
        default=word.letters.replace("?", ""),
    )
    return replace(word, letters=letters)


def _unglued(word: Word, lexicon: NameLexicon) -> list[Word]:
    """A word that nobody knows, cut where a known first name ends and a known last name begins: AMITABHWATSON."""
    letters = word.letters
    if len(letters) < SHORTEST_GLUED or letters in lexicon.given or letters in lexicon.family:
        return [word]
    cuts = [
        cut
        for cut in range(2, len(letters) - 1)
        if letters[:cut] in lexicon.given and letters[cut:] in lexicon.family
    ]
    if not cuts:
        return [word]
    cut = max(
        cuts, key=lambda c: ((letters[:c] in lexicon.given_names) + (letters[c:] in lexicon.family_names), c)
    )
    return [
        replace(word, letters=letters[:cut], helper=False),
        replace(word, letters=letters[cut:], mark=Mark.GLUE),
    ]
