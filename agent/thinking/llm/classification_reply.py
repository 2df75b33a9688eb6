"""Reads from a model's reply what kind of question it was asked, in whatever form the reply is."""

import re
from typing import Any

from agent.thinking.llm.reasoning import without_reasoning
from common.text import Lang, Text
from common.values import ANALYSIS_KINDS, AnalysisKind, Classification, QuestionType
from knowledge.language.safe_text import one_line
from llm.loose_fields import object_in

_KINDS: dict[str, QuestionType] = {"DATABASE": "DATABASE", "CHAT": "CHAT"}
_KIND_KEYS = ("type", "question_type", "classification", "category")
_UNSURE = 0.3  # confidence of a verdict that could not be read
_WORD_ONLY = 0.6  # confidence of a verdict that is a bare word
_JUDGED = Text("由大模型判断。", "Judged by the model.")
_UNREADABLE = Text(
    "大模型的分类结果无法识别，按数据问题处理。",
    "The model's verdict was unreadable; treated as a data question.",
)


def classification_of(reply: str, lang: Lang) -> tuple[Classification, tuple[str, ...]]:
    """Return the verdict, and warnings.

    An unreadable verdict counts as a question about the data: users notice that mistake, while a
    model that chats about data would invent some.
    """
    text = without_reasoning(reply)
    verdict = object_in(text)
    word = next((str(verdict[key]) for key in _KIND_KEYS if key in verdict), text)
    kinds = [kind for kind in _KINDS if re.search(rf"\b{kind}\b", word, re.IGNORECASE)]
    if len(kinds) != 1:
        warning = _UNREADABLE.to(lang)
        return Classification("DATABASE", _UNSURE, "llm", warning), (warning,)

    classification = Classification(
        _KINDS[kinds[0]],
        _confidence(verdict.get("confidence")),
        "llm",
        _reason(verdict.get("reason"), lang),
        _analysis(verdict.get("analysis")),
    )
    return classification, ()


def _reason(value: Any, lang: Lang) -> str:
    if not isinstance(value, str) or not value.strip():
        return _JUDGED.to(lang)

    return one_line(value, 200)


def _analysis(value: Any) -> tuple[AnalysisKind, ...]:
    kinds = value if isinstance(value, list) else [value]
    return tuple(kind for kind in ANALYSIS_KINDS if kind in kinds)


def _confidence(value: Any) -> float:
    try:
        number = float(str(value).strip().rstrip("%"))
    except ValueError:
        return _WORD_ONLY

    if number > 1:
        number /= 100

    return number if 0 <= number <= 1 else _WORD_ONLY
