"""A scripted model in a process of its own, so that it does not share the processor's time."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer, Request

_START_S = 30.0
_END_S = 20.0


@contextmanager
def model_process(script: Callable[[Request], Reply], address: str = "127.0.0.1") -> Iterator[str]:
    """Run the model; give its base URL."""
    context = multiprocessing.get_context("fork")
    mail: Any = context.Queue()
    process = context.Process(target=_serve, args=(mail, script, address), daemon=True)
    process.start()
    try:
        yield mail.get(timeout=_START_S)
    finally:
        process.terminate()
        process.join(_END_S)


def _serve(mail: Any, script: Callable[[Request], Reply], address: str) -> None:
    with OpenAiServer(script, address=address) as server:
        mail.put(server.url)
        time.sleep(3600)
