"""User-facing text in the two languages Citu speaks, and the choice between them.

Every sentence that users read is a `Text` beside the code that says it. So no sentence exists in
one language only, and none is put together from translated fragments.
"""

import re
from typing import Literal, NamedTuple

Lang = Literal["zh", "en"]

# Han ideographs of the basic block, extension A and the compatibility block.
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


class Text(NamedTuple):
    """One sentence in Chinese and in English."""

    zh: str
    en: str

    def to(self, lang: Lang) -> str:
        if lang == "zh":
            return self.zh

        return self.en


_BROKEN = re.compile("[\0\ud800-\udfff]")


def is_whole(text: str) -> bool:
    """Tell whether `text` has no NUL, which PostgreSQL refuses, and no half of a character."""
    return not _BROKEN.search(text)


# Words that tell the language of a sentence, because names rarely contain them.
_ENGLISH_FRAME = re.compile(
    r"\b(a|an|the|of|in|on|at|by|for|from|to|with|and|or|is|are|was|were|do|does|did|"
    r"how|what|which|who|where|when|why|each|per|than|list|show|give)\b",
    re.IGNORECASE | re.ASCII,
)
_CHINESE_FRAME = re.compile(
    "[的了吗呢是哪几各每按最请]|多少|什么|怎么|怎样|查询|统计|列出|显示|帮我|一下|为何|排名|排行|对比"
)


def language_of(question: str) -> Lang:
    """Return `zh` for a question with Han characters, unless they are names in an English one."""
    if not _HAN.search(question):
        return "en"
    if _CHINESE_FRAME.search(question):
        return "zh"
    if _ENGLISH_FRAME.search(question):
        return "en"

    return "zh"
