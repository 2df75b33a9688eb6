"""Pages hold frames of any content, in a fraction of their space when they are alike."""

from hypothesis import given
from hypothesis import strategies as st

from store import EventFrame
from store.postgres_values import pack, unpack

FRAMES = st.lists(
    st.builds(EventFrame, st.integers(1, 2**31 - 1), st.binary(max_size=200)), max_size=6
)


@given(FRAMES, st.sampled_from([0, 100_000]))
def test_what_is_packed_is_unpacked(frames: list[EventFrame], more: int) -> None:
    frames = [EventFrame(frame.seq, frame.data + b"x" * more) for frame in frames]
    assert list(unpack(pack(frames))) == frames


def test_frames_that_are_alike_take_little_space() -> None:
    frames = [
        EventFrame(n, f'{{"type": "progress", "node": "{n}", "sql": "{"SELECT " * 50}"}}'.encode())
        for n in range(9)
    ]
    assert len(pack(frames)) < sum(len(frame.data) for frame in frames) / 5
