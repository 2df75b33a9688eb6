"""Whether a stored name in a Chinese question is the whole name that was said.

Chinese has no blanks, so 冯晨 can be read out of 冯晨明, who is somebody else. What directly follows a name must be a
word that may follow one; else it belongs to the name, and nobody of that longer name is stored.
"""

from collections.abc import Sequence

from agent.skills.offline.atoms import listed
from agent.skills.offline.marks import Mark
from agent.skills.offline.naming import has_han

_ENDS = frozenset("的呢吗吧啊呀么嘛了哈")  # may follow a name whatever comes next
_JOINS = frozenset("和与及跟同或")  # only before another thing: 冯晨和李娜, but 冯晨和的订单
# Only before what they govern. Those that also end given names are left out: 来 进 花 中 里 之 为 会 能 应 将 于 用 全.
_GOVERNS = frozenset("在被把给对已曾还都共所是有各每前后从到自至最不没未这那总比占")
_VERBS_IN_NAMES = frozenset("来进花")  # with 了 behind them they are other words
_PLACES = frozenset("中里内上下")  # words for places, which do not follow a person's name
_ADVERBS = frozenset("是已曾还都共各每最不没未总")  # may come before 有 and 在
_MOST_ADDED = 2
_COUNTING = ("unit", "date_part")
_TITLES = frozenset(listed("先生 女士 小姐 同学 老师 医生 师傅 经理 主任 教授"))


def longer_name(marks: Sequence[Mark], place: int, is_named: Sequence[bool]) -> str | None:
    """The longer name that the one at `place` is only the beginning of; None when it is all of it.

    `is_named` says of each mark whether it names something of the database.
    """
    mark, after = marks[place], place + 1
    if not has_han(mark.text[-1]) or mark.literal is not None or after >= len(marks):
        return None
    following = marks[after]
    if following.start != mark.end or not has_han(following.text[:1]) or _is_explained(marks, after, is_named):
        return None
    added = following.text[:1] if following.means("like", "noise") else following.text
    return mark.text + added if len(added) <= _MOST_ADDED else None


def _is_explained(marks: Sequence[Mark], place: int, is_named: Sequence[bool]) -> bool:
    mark, text = marks[place], marks[place].text
    beyond = place + 1 if place + 1 < len(marks) and marks[place + 1].start == mark.end else None
    if mark.is_unknown:
        return text in _TITLES
    if len(text) > 1:
        return not (mark.means("like", "noise") and text[0] in _PLACES)
    if text in _ENDS or is_named[place]:
        return True
    if text in _JOINS:
        return beyond is not None and is_named[beyond]
    if mark.number is not None:
        return beyond is not None and marks[beyond].means(*_COUNTING)
    if mark.means("verb") and text not in _VERBS_IN_NAMES:
        return True
    if text not in _GOVERNS or place + 1 == len(marks):
        return False
    return beyond is None or not (
        marks[beyond].means("of") or (text not in _ADVERBS and marks[beyond].text.startswith(("有", "在")))
    )
