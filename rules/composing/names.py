"""Refuses a word that is only a part of a stored name, or has one as a part: it names somebody else."""

from common.text import Text
from knowledge.naming import has_han
from rules.composing.asked import Asked
from rules.linking.longer_names import longer_name, longer_title, longer_word
from rules.query.refusals import nobody_called, unknown_words
from rules.schema.links import Link

_WHOLE_VALUE = 0.8


def notes_on_values(asked: Asked) -> tuple[Text, ...]:
    """What the answer says of words of which a part was taken for the whole of a stored value.

    Raises:
        Refusal: nothing has this name; the similar one is offered.
    """
    notes = []
    for place, link in asked.parts.said:
        _refuse_others_name(asked, place, link)
        if link.quality < _WHOLE_VALUE:
            _refuse_torn(asked, place)
            said = asked.question.words[place].mark.text
            notes.append(Text(f"“{said}”按“{link.value}”查询。", f'"{said}" was taken to mean "{link.value}".'))
    return tuple(notes)


def _refuse_others_name(asked: Asked, place: int, link: Link) -> None:
    words = asked.question.words
    marks = [word.mark for word in words]
    if link.is_exact and link.quality < _WHOLE_VALUE:
        _refuse_torn(asked, place)
        raise nobody_called(marks[place].text, [str(link.value)])
    is_whole = link.quality >= _WHOLE_VALUE
    longer = longer_word(marks, place) or longer_title(marks, place, is_whole=is_whole)
    is_named = [word.noun is not None for word in words]
    longer = longer or longer_name(marks, place, is_named, of_person=link.is_exact)
    if longer is not None:
        raise nobody_called(longer, [str(link.value)])
    if link.is_exact:
        _refuse_torn(asked, place)


def _refuse_torn(asked: Asked, place: int) -> None:
    """Refuses a part of a stored name after a character that may be a surname, such as 张: it is another person."""
    marks = [word.mark for word in asked.question.words]
    before = marks[place - 1] if place and marks[place].glued else None
    counted = place > 1 and marks[place - 2].number is not None
    if before is not None and before.means("unit") and not counted and has_han(before.text):
        raise unknown_words([before.text + marks[place].text], asked.question.lexicon)
