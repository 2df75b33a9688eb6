"""Events as bytes: the sync answer is made from the stream's without rendering the long part again."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.events import Event, stored_event, with_warning
from common.envelope import to_bytes

TEXT = st.text(st.characters(codec=None))  # also halves of characters
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
CONTENT = st.dictionaries(TEXT, JSON, max_size=4)


@given(CONTENT, TEXT)
def test_an_event_is_rendered_as_its_envelope(content: dict[str, Any], message: str) -> None:
    answer = {**content, "response_type": "CHAT"}
    for event in (
        Event("progress", message, lambda: content),
        Event("error", message, lambda: {**content, "type": "error"}, 403),
        Event("completed", message, lambda: answer),
        Event("token", message, dict),
    ):
        assert event.rendered == to_bytes(event.envelope())
        assert event.sync_rendered() == to_bytes(event.sync_envelope())


def test_a_stored_event_and_one_with_a_warning_are_rendered_anew() -> None:
    event = Event("completed", "Done", lambda: {"response_type": "DATABASE", "n": Decimal("1.50"), "warnings": []})
    assert stored_event(event.rendered).rendered == event.rendered
    assert with_warning(event, "mind").sync_envelope()["data"] == {
        "type": "DATABASE",
        "response_type": "DATABASE",
        "n": Decimal("1.50"),
        "warnings": ["mind"],
    }
    assert b'"mind"' in with_warning(event, "mind").rendered
