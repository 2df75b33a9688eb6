"""Runs an older version of Citu and this one side by side on one store, under load.

    python -m benchmarks.two_versions REVISION [--minutes M]

REVISION is the older version, of which a work tree is made. It makes the tables and answers alone
first; then this version starts, which applies its migrations under the older one's feet; both
answer for so long; then this version is stopped, as by who goes back, and the older one answers
alone. Each conversation goes on at either of them, and each stream is read once more from the other
one, byte by byte. An answer is lost when it is no answer, when the other version tells the run
otherwise, or when its conversation does not have it exactly once.
"""

import argparse
import asyncio
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from benchmarks.counted_questions import STREAM, question_of, scripted_kinds
from benchmarks.gunicorn_service import GunicornService, gunicorn_service
from benchmarks.model_process import model_process
from databases.source import database_sources
from tests.support.live import ROOT

_WORKERS = 2
_CLIENTS = 6
_ALONE_S = 15.0
_QUESTIONS_EACH = 12  # of a conversation; fewer than the turns that are kept
_OK = 200


@dataclass
class VersionResults:
    """What clients were told.

    Attributes:
        asked: by phase.
        lost: what was wrong, with the phase.
        conversations: that were read at the end by each version that ran then.
    """

    asked: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    compared: int = 0
    conversations: int = 0

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        phases = ", ".join(f"{count} {phase}" for phase, count in self.asked.items())
        return [
            f"{self.asked.total()} questions: {phases}",
            f"streams read from the other version, byte by byte: {self.compared}",
            f"conversations read again: {self.conversations}",
            f"lost or told otherwise: {len(self.lost)} (bar 0)",
            *self.lost[:10],
        ]


class _Clients:
    """Clients that ask whichever services run."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._random = random.Random(31)  # noqa: S311 - chooses services, keeps no secret
        self._number = 0
        self._asked_by: Counter[int] = Counter()
        self._answered: dict[tuple[str, str], list[str]] = {}
        self.found = VersionResults()

    async def ask_for(self, seconds: float, phase: str, services: list[GunicornService]) -> None:
        until = time.monotonic() + seconds
        clients = (self._ask_until(until, n, phase, services) for n in range(_CLIENTS))
        await asyncio.gather(*clients)

    async def _ask_until(
        self, until: float, client: int, phase: str, services: list[GunicornService]
    ) -> None:
        while time.monotonic() < until:
            self._number += 1
            body = question_of(self._number, client)
            self._asked_by[client] += 1
            conversation = self._asked_by[client] // _QUESTIONS_EACH
            body["conversation_id"] = f"{client}-{conversation}"
            await self._ask(body, phase, self._random.sample(services, len(services)))

    async def _ask(self, body: dict[str, str], phase: str, services: list[GunicornService]) -> None:
        self.found.asked[phase] += 1
        asked, *others = services
        try:
            told = await self._read("POST", asked, STREAM, body)
            last = told[-1] if told else b"nothing"
            if b'"completed"' not in last and b'"forbidden_keywords"' not in last:
                raise ValueError(f"ended by {last[-300:]!r}")
            key = body["user_id"], body["conversation_id"]
            self._answered.setdefault(key, []).append(body["question"])
            for other in others:
                await self._compare(other, body["user_id"], told)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as problem:
            self.found.lost.append(f"{phase}: {body['question']}: {problem!r}")

    async def _compare(self, other: GunicornService, user: str, told: list[bytes]) -> None:
        run_id = told[0].partition(b":")[0].decode()
        path = f"/api/v0/runs/{run_id}/events?user_id={user}"
        again = await self._read("GET", other, path)
        self.found.compared += 1
        if again != told:
            raise ValueError(f"{len(told)} frames, and {len(again)} others from the other version")

    async def _read(
        self, method: str, service: GunicornService, path: str, body: object = None
    ) -> list[bytes]:
        """Return the frames of a stream: id and data, without comments."""
        frames, number = [], b""
        url = f"http://127.0.0.1:{service.port}{path}"
        async with self._session.request(method, url, json=body) as response:
            if response.status != _OK:
                raise ValueError(f"status {response.status}: {(await response.read())[:200]!r}")
            async for line in response.content:
                if line.startswith(b"id: "):
                    number = line.removeprefix(b"id: ").strip()
                if line.startswith(b"data: "):
                    frames.append(number + b" " + line)
        return frames

    async def read_conversations(self, services: list[GunicornService]) -> None:
        """Look whether each service has every answer once."""
        for service in services:
            for (user, conversation), asked in self._answered.items():
                root = f"http://127.0.0.1:{service.port}/api/v0/conversations"
                url = f"{root}/{conversation}?user_id={user}&limit=100"
                async with self._session.get(url) as response:
                    turns = (await response.json())["data"]["turns"]
                self.found.conversations += 1
                kept = Counter(turn["question"] for turn in turns)
                wrong = [f"{one}: kept {kept[one]} times" for one in asked if kept[one] != 1]
                self.found.lost += wrong


def run(older: Path, folder: Path, seconds: float) -> VersionResults:
    """Run both versions; `older` is the folder of the other one."""
    sources = database_sources("", "", folder)
    settings = {
        "DATABASE_URL": sources.asked(),
        "APP_DATABASE_URL": sources.app(),
        "OPENAI_API_KEY": "bench",
        "OPENAI_MODEL": "scripted",
        "CALLER_SHARE": "1",
        "ENABLE_RESULT_SUMMARY": "false",
    }
    try:
        with model_process(scripted_kinds) as model_url:
            settings["OPENAI_BASE_URL"] = model_url
            return asyncio.run(_phases(older, folder, settings, seconds))
    finally:
        sources.hold.release()


async def _phases(
    older: Path, folder: Path, settings: dict[str, str], seconds: float
) -> VersionResults:
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))
    async with session:
        clients = _Clients(session)
        with (
            gunicorn_service(folder / "older", settings, workers=_WORKERS, root=older) as old,
            ExitStack() as stack,
        ):
            await clients.ask_for(_ALONE_S, "older alone", [old])
            newer = gunicorn_service(folder / "newer", settings, workers=_WORKERS)
            starting = asyncio.to_thread(stack.enter_context, newer)
            asking = clients.ask_for(_ALONE_S, "while this one starts", [old])
            new, _ = await asyncio.gather(starting, asking)
            await clients.ask_for(seconds, "side by side", [old, new])
            await clients.read_conversations([old, new])
            await asyncio.to_thread(stack.close)
            await clients.ask_for(_ALONE_S, "older alone again", [old])
            await clients.read_conversations([old])
    return clients.found


@contextmanager
def _work_tree(revision: str, folder: Path) -> Iterator[Path]:
    """Give a folder with the project at that revision, and with this one's environment."""
    place = folder / "revision"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(place), revision], check=True)
    try:
        yield place
    finally:
        subprocess.run([*git, "remove", "--force", str(place)], check=True)


def main() -> None:
    """Run both versions on one store, and print what clients met."""
    parser = argparse.ArgumentParser(description="Two versions of Citu on one store")
    parser.add_argument("revision", help="of the older version, as git names it")
    parser.add_argument("--minutes", type=float, default=3.0, help="side by side (default 3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="citu-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # as root, the embedded server runs as another user
        with _work_tree(options.revision, folder) as older:
            print("\n".join(run(older, folder, options.minutes * 60).lines()))


if __name__ == "__main__":
    main()
