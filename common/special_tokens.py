"""Breaks up texts that models may read as control tokens: roles, ends of turns, calls of tools.

Tokenizers know them by their exact spelling, so one changed character is enough, and the text stays
readable. They are told by their shape, because every family of models has its own:

    <|im_start|> <｜User｜>        a bracket at a bar, also full-width
    <s> </think> <function=sum>    a tag, as in HTML
    [INST] [/TOOL_CALLS]           capitals in square brackets
    <<SYS>> <</SYS>>               capitals in two angle brackets
"""

import re

PROMPT_TAGS = frozenset(
    ("schema", "values", "question", "rows", "sql", "error", "tables")
    + ("history", "examples", "lessons", "notes")
    + ("known", "answers", "intent", "plan", "findings", "databases")
)
"""The tags by which Citu's own prompts set data apart."""

_THOUGHTS = ("think", "thinking", "thought", "reasoning")
OPENING_THOUGHTS = (*(f"<{tag}>" for tag in _THOUGHTS), "◁think▷")
CLOSING_THOUGHTS = (*(f"</{tag}>" for tag in _THOUGHTS), "◁/think▷")
"""The tags between which models write what they think."""

# Operators of PostgreSQL's that hold a bar and a bracket (`<<|`, `&<|`, `|>>`, `|&>`) stay, where
# no word stands at the bar.
_TOKEN = re.compile(
    r"(?P<left>[<＜](?=[|｜]\w)|(?<![<&])[<＜](?=[|｜]))"
    r"|(?P<right>(?<=\w[|｜])[>＞]|(?<=[|｜])[>＞](?!>))"
    r"|(?P<double><)(?=</?[A-Z_]{2,40}>>)"
    r"|(?P<tag>[<＜])(?=/?(?P<name>(?:[A-Za-z_]|0x)[\w.:-]{0,60})"
    r"(?:=[\w.:\"'-]{0,60})?[ \t]{0,4}/?[>＞])"
    r"|(?P<square>\[)(?=/?[a-z]{0,2}[A-Z][A-Z_]{1,40}\d{0,6}\])"
)
_INSTEAD = {"left": "‹", "right": "›", "double": "‹", "tag": "‹", "square": "［"}


def broken_up(text: str, kept: frozenset[str] = frozenset()) -> str:
    """Return `text` with everything broken up that has a control token's shape.

    Args:
        kept: names of tags that stay as they are.
    """

    def replaced(match: re.Match[str]) -> str:
        if match["tag"] is None:
            return _INSTEAD[str(match.lastgroup)]
        if match["name"] in kept:
            return match[0]

        return _INSTEAD["tag"]

    return _TOKEN.sub(replaced, text)
