"""The reader of Server-Sent Events, in the browser it runs in: streams may be cut at any byte."""

from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page

from tests.support.effort import tries

_READ_IN_PIECES = """async ([bytes, cuts]) => {
    const { readEvents } = await import('/static/sse.js');
    const edges = [0, ...cuts, bytes.length];
    const body = new ReadableStream({
        start(controller) {
            edges.slice(1).forEach((end, index) =>
                controller.enqueue(new Uint8Array(bytes.slice(edges[index], end))));
            controller.close();
        },
    });
    const events = [];
    for await (const event of readEvents(body, () => {})) events.push([event.id, event.data]);
    return events;
}"""

_LINE = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=12)


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[list[str]]]:
    """Bytes of a stream, and the [id, data] of the events in it."""
    # A lone CR may not be followed by a lone LF: the two would be one line break.
    end = st.sampled_from(draw(st.sampled_from([["\n", "\r\n"], ["\r"]])))
    text, events, last_id = draw(st.sampled_from(["", "\ufeff"])), [], ""
    for _ in range(draw(st.integers(0, 5))):
        lines = draw(st.lists(_LINE, min_size=1, max_size=3))
        if draw(st.booleans()):
            last_id = draw(_LINE)
            text += f"id: {last_id}" + draw(end)
        for line in lines:
            text += draw(
                st.sampled_from(["", ": ping{}", "retry: 10{}", "event: x{}", "other{}"])
            ).format(draw(end))
            text += f"data: {line}" + draw(end)
        text += draw(end)
        if (data := "\n".join(lines)) != "":
            events.append([last_id, data])
    return (text + draw(st.sampled_from(["", "data: unfinished", ": ping\n"]))).encode(), events


@settings(max_examples=tries(30), deadline=None)
@given(data=st.data())
def _check_any_split(page: Page, data: st.DataObject) -> None:
    stream, events = data.draw(streams())
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=30).map(sorted))
    assert page.evaluate(_READ_IN_PIECES, [list(stream), cuts]) == events


def test_frames_split_at_any_byte(page: Page) -> None:
    _check_any_split(page)


def test_frames_split_at_every_byte(page: Page) -> None:
    stream = (
        "retry: 1\r\n\r\n: ping\r\n\r\nid: 1\r\ndata: 一\r\ndata:二🤔\r\n\r\ndata\n\nid\n"
        "data:  x\n\n"
    ).encode()
    cuts = list(range(len(stream)))
    assert page.evaluate(_READ_IN_PIECES, [list(stream), cuts]) == [["1", "一\n二🤔"], ["", " x"]]
