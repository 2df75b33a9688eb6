"""User-facing text in the two languages Citu speaks, and the choice between them.

Every sentence a user can read is a `Text` written beside the code that says it, so that no sentence can exist in one
language only and none is assembled from translated fragments.
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
        """The sentence in `lang`."""
        return self.zh if lang == "zh" else self.en


def language_of(question: str) -> Lang:
    """`zh` when the question holds any Han character (mixed questions are asked by Chinese readers), else `en`."""
    return "zh" if _HAN.search(question) else "en"
