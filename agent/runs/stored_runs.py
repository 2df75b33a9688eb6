"""Reads what the store has of a run."""

from agent.runs.events import Event, stored_event
from store import EventFrame, RunRecord, Runs

PAGE = 200  # frames read at once


async def last_event(runs: Runs, record: RunRecord) -> Event | None:
    """Return the run's last event; None when it has not come yet, or is lost."""
    if record.state == "running":
        return None

    head = record.head
    frames = await runs.frames(head.user_id, head.run_id, record.last_seq - 1, 1)
    return stored_event(frames[-1].data) if frames else None


async def all_frames(runs: Runs, record: RunRecord) -> list[EventFrame]:
    """Return the frames up to the record's last one, or up to the first that is lost."""
    frames: list[EventFrame] = []
    while len(frames) < record.last_seq:
        page = await runs.frames(record.head.user_id, record.head.run_id, len(frames), PAGE)
        if not page:
            break

        frames += page

    return frames
