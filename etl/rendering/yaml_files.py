"""YAML files, as the safe dumper writes them.

Files of a draft hold thousands of scalars, most of them names and values that stand there many
times. What the safe representer makes of each is found once, and handed to the emitter.
"""

from collections.abc import Callable, Mapping
from typing import Any

import yaml
from yaml.representer import SafeRepresenter
from yaml.resolver import Resolver

_TEXT_TAG = "tag:yaml.org,2002:str"
# libyaml's, where PyYAML has it, takes a tenth of the time.
_EMITTER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_BEGIN = (yaml.StreamStartEvent(), yaml.DocumentStartEvent(explicit=False))
_END = (yaml.DocumentEndEvent(explicit=False), yaml.StreamEndEvent())
_MAPPING = yaml.MappingStartEvent(None, None, implicit=True, flow_style=False)
_MAPPING_END = yaml.MappingEndEvent()
_SEQUENCE = yaml.SequenceStartEvent(None, None, implicit=True, flow_style=False)
_SEQUENCE_END = yaml.SequenceEndEvent()


class YamlFiles:
    """Writes files of dictionaries, lists and scalars."""

    def __init__(self) -> None:
        self._scalars = _Scalars()

    def text(self, content: Mapping[str, Any]) -> str:
        """Return the text of a file."""
        text: str = yaml.emit(self._events(content), Dumper=_EMITTER, allow_unicode=True, width=100)
        return text

    def _events(self, content: Mapping[str, Any]) -> list[yaml.Event]:
        events: list[yaml.Event] = [*_BEGIN]
        self._add(dict(content), events.append)
        events += _END
        return events

    def _add(self, content: Any, add: Callable[[yaml.Event], None]) -> None:
        if isinstance(content, dict):
            add(_MAPPING)
            for key, value in content.items():
                add(self._scalars.event(key))
                self._add(value, add)

            add(_MAPPING_END)
        elif isinstance(content, list):
            add(_SEQUENCE)
            for value in content:
                self._add(value, add)

            add(_SEQUENCE_END)
        else:
            add(self._scalars.event(content))


class _Scalars(SafeRepresenter, Resolver):
    """The events of scalars.

    Texts of several lines stand as blocks: in quotes, an empty line would follow each line.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[type, Any], yaml.ScalarEvent] = {}

    def event(self, value: Any) -> yaml.ScalarEvent:
        """Return how a value is written."""
        key = (type(value), value)  # 1 and True are equal
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._scalar_event(value)

        return found

    def _scalar_event(self, value: Any) -> yaml.ScalarEvent:
        node: Any = self.represent_data(value)
        plain = self._is_read_as(node, (True, False))
        in_quotes = self._is_read_as(node, (False, True))
        return yaml.ScalarEvent(None, node.tag, (plain, in_quotes), node.value, style=node.style)

    def _is_read_as(self, node: yaml.ScalarNode, implicit: tuple[bool, bool]) -> bool:
        """Tell whether the text alone, plain or in quotes, says what type of value it is."""
        read = self.resolve(yaml.ScalarNode, node.value, implicit)  # type: ignore[no-untyped-call]
        return bool(read == node.tag)


def _represented_text(representer: SafeRepresenter, text: str) -> yaml.ScalarNode:
    # A block would lose other line ends than \n, and can't hold control characters.
    is_plain = text.replace("\n", "").isprintable()
    style = "|" if is_plain and "\n" in text else None
    return representer.represent_scalar(_TEXT_TAG, text, style=style)


_Scalars.add_representer(str, _represented_text)
