"""Telling questions about an answer ("why is the first one so high?") from questions about the data."""

import re
from typing import Literal

Doubt = Literal["why", "meaning", "reliability"]

_DOUBTS: tuple[tuple[Doubt, re.Pattern[str]], ...] = (
    (
        "why",
        re.compile(r"\bwhy\b|\bhow come\b|\breasons?\b|为什么|为何|怎么会|为啥|原因|怎么回事|咋回事", re.IGNORECASE),
    ),
    (
        "reliability",
        re.compile(
            r"\b(reliable|accurate|correct|trust(worthy)?|sure|certain|believe|wrong|mistakes?|errors?)\b|\bright\?|"
            r"可靠|准确|靠谱|可信|正确|对吗|对不对|真的吗|没错吧|有没有错|错了|准吗|算错|弄错|可能吗",
            re.IGNORECASE,
        ),
    ),
    (
        "meaning",
        re.compile(
            r"\b(explain|interpret|analy[sz]e|comment on|elaborate|insights?|conclusions?)\b|"
            r"\bwhat (does|do|did) (this|that|it|these|those|they) (mean|tell|say|show)|"
            r"\bsumm(arize|arise|ary|ing up)\b|"
            r"解释|说明(了|一下)|说明什么|意味着|什么意思|怎么理解|怎么看待|解读|分析一下|总结一下|点评|结论",
            re.IGNORECASE,
        ),
    ),
)
# What points at an answer rather than at the data.
_POINTS = re.compile(
    r"\b(so|such|this|that|these|those|it|its|they|them|the (first|second|third|last|top|other) (one|two|three|few)?|"
    r"(first|second|third|last|top) (one|row|place)|results?|answers?|numbers?|figures?|you)\b|"
    r"这|那么|如此|它|第[一二三四五六七八九十\d]+(名|个|位|行|家)?|首位|榜首|结果|上述|上面|刚才|数字|数据|答案|前面|你",
    re.IGNORECASE,
)


def kind_of_doubt(question: str) -> Doubt | None:
    """What a question about an answer asks of it; None when it asks something else."""
    for doubt, pattern in _DOUBTS:
        match = pattern.search(question)
        if match:
            rest = re.sub(r"[\W_]+", "", question[: match.start()] + question[match.end() :])
            return doubt if _POINTS.search(question) or len(rest) <= 2 else None
    return None
