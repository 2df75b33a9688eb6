"""Tasks in the background of an event loop."""

import asyncio
from typing import Any


def is_running_here(task: asyncio.Task[Any]) -> bool:
    """Tell whether a task is not done yet, and belongs to the running event loop."""
    return not task.done() and task.get_loop() is asyncio.get_running_loop()
