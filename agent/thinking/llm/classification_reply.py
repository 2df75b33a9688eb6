"""Reads from a model's reply what kind of question it was asked, in whatever form the reply is."""

import json
import re
from typing import Any

from agent.thinking.llm.reasoning import without_reasoning
from common.text import Lang, Text
from common.values import ANALYSIS_KINDS, AnalysisKind, Classification, QuestionType
from knowledge.safe_text import one_line

_KINDS: dict[str, QuestionType] = {"DATABASE": "DATABASE", "CHAT": "CHAT"}
_KIND_KEYS = ("type", "question_type", "classification", "category")
_UNSURE = 0.3  # confidence of a verdict that could not be read
_WORD_ONLY = 0.6  # confidence of a verdict that is a bare word
_JUDGED = Text("由大模型判断。", "Judged by the model.")
_UNREADABLE = Text(
    "大模型的分类结果无法识别，按数据问题处理。", "The model's verdict was unreadable; treated as a data question."
)


def classification_of(reply: str, lang: Lang) -> tuple[Classification, tuple[str, ...]]:
    """The verdict. An unreadable one counts as a question about the data, with a warning: users notice that mistake,
    while a model that chats about data would invent some."""
    text = without_reasoning(reply)
    verdict = _object(text)
    word = next((str(verdict[key]) for key in _KIND_KEYS if key in verdict), text)
    named = {kind for kind in _KINDS if re.search(rf"\b{kind}\b", word, re.IGNORECASE)}
    if len(named) != 1:
        warning = _UNREADABLE.to(lang)
        return Classification("DATABASE", _UNSURE, "llm", warning), (warning,)
    reason = verdict.get("reason")
    shown = one_line(reason, 200) if isinstance(reason, str) and reason.strip() else _JUDGED.to(lang)
    confidence = _confidence(verdict.get("confidence"))
    return Classification(_KINDS[named.pop()], confidence, "llm", shown, _analysis(verdict.get("analysis"))), ()


def _analysis(value: Any) -> tuple[AnalysisKind, ...]:
    asked = value if isinstance(value, list) else [value]
    return tuple(what for what in ANALYSIS_KINDS if what in asked)


def _object(text: str) -> dict[str, Any]:
    """The JSON object in `text`, or an empty one."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        value = json.loads(found[0], strict=False) if found else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _confidence(value: Any) -> float:
    try:
        number = float(str(value).strip().rstrip("%"))
    except ValueError:
        return _WORD_ONLY
    number = number / 100 if number > 1 else number
    return number if 0 <= number <= 1 else _WORD_ONLY
