"""Asks two hosts behind nginx while one is restarted, cut off or killed, or their store is killed:
is any answer lost or doubled, and how long do clients hear nothing?

Each host is a network namespace with two workers of its own; nginx, Redis, a scripted model that
writes a word every quarter of a second, and the clients are on a third. Each client asks one
question after the other, in a conversation of its own, for as long as the trial takes, and does
what docs/deployment.md says clients should (`persistent_client.py`). An answer is lost when a
client gives up on it or gets another text, and doubled when its conversation has it twice.
"""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from benchmarks.host_network import CENTRE, BenchHost, host, in_own_network, join_hosts, missing
from benchmarks.model_process import model_process
from benchmarks.persistent_client import ClientReply, PersistentClient
from tests.support.openai_server import Reply, Request

BAR_S = 2.0
_PING_S = 0.3
_LEASE_S = 1.2
_SETTLED_S = 3.0  # before and after what happens
_OFF_S = 10.0
_HANG_S = 5.0
_PATIENCE_S = 60.0
_START_S = 60.0
_LOOK_S = 0.1
_PORT, _PROXY_PORT, _STORE_PORT = 8084, 8080, 6380
_ROOT = f"http://{CENTRE}:{_PROXY_PORT}"
_WORDS = tuple(f"word{number} " for number in range(12))
_WORD_S = 0.25
_ANSWER = "".join(_WORDS).strip()
_OK = 200
_PROXY = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log crit;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream citu {{
        {servers}
    }}
    server {{
        listen {listen};
        location / {{
            proxy_pass http://citu;
            proxy_http_version 1.1;
            proxy_connect_timeout 300ms;
            proxy_next_upstream error timeout http_503 non_idempotent;
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }}
    }}
}}
"""


@dataclass
class HostTrial:
    """What all clients were told while one thing happened.

    Attributes:
        doubled: answers that a conversation has more than once.
        missing: answers that a client got and its conversation has not.
    """

    name: str
    told: list[ClientReply] = field(default_factory=list)
    doubled: int = 0
    missing: int = 0

    @property
    def lost(self) -> int:
        """Return how many questions have no answer, or not the whole one."""
        return sum(one.ends != ["completed"] or one.text.strip() != _ANSWER for one in self.told)

    @property
    def gap_s(self) -> float:
        """Return the longest time without an event."""
        return max(one.gap_s for one in self.told)

    def line(self) -> str:
        """Return the findings as a person reads them."""
        gaps = sorted(one.gap_s for one in self.told)
        broken = sum(bool(one.resumed or one.repeated) for one in self.told)
        reasons = Counter(reason for one in self.told for reason in one.errors)
        again = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        disorder = sum(one.disorder for one in self.told)
        return (
            f"{self.name}: {len(self.told)} questions, {self.lost} lost, {self.doubled} doubled,"
            f" {self.missing} not kept, {disorder} events out of order; {broken} broke off"
            f" (asked again: {again or 'none'}); without an event for at most {self.gap_s:.2f} s"
            f" (bar {BAR_S:g}), median {gaps[len(gaps) // 2]:.2f} s"
        )


def run(database_url: str, folder: Path, *, streams: int = 64) -> None:
    """Print what happened, in a network of its own."""
    reason = missing("nginx", "redis-server")
    if reason:
        print(f"hosts: left out, {reason}")
        return
    in_own_network("benchmarks.hosts", database_url, str(folder), str(streams))


class _Service:
    """Two hosts, their store and their proxy."""

    def __init__(self, folder: Path, settings: dict[str, str], hosts: list[BenchHost]) -> None:
        self._folder = folder
        self._settings = settings
        self.hosts = hosts
        self._store: subprocess.Popen[bytes] | None = None

    async def start_all(self) -> None:
        self.start_store()
        for one in self.hosts:
            self.start(one)
        for one in self.hosts:
            await self.ready(one)

    def start(self, one: BenchHost) -> None:
        own = self._folder / one.address
        own.mkdir(exist_ok=True)
        mine = {"HOST": one.address, "DATA_DIR": str(own)}
        words = [sys.executable, "-m", "gunicorn", "--preload"]
        words += ["--workers", "2", "unified_api:app"]
        with (own / "log").open("ab") as log:
            one.start(words, {**self._settings, **mine}, log)

    async def ready(self, one: BenchHost) -> None:
        """Wait until the host answers."""
        address = f"http://{one.address}:{_PORT}/ready"
        async with asyncio.timeout(_START_S), aiohttp.ClientSession() as session:
            is_ready = False
            while not is_ready:
                await asyncio.sleep(_LOOK_S)
                is_ready = await _is_ready(session, address)

    def start_store(self) -> None:
        folder = self._folder / "redis"
        folder.mkdir(exist_ok=True)
        options = {"port": _STORE_PORT, "bind": CENTRE, "dir": folder, "save": ""}
        options |= {"appendonly": "yes", "protected-mode": "no"}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        quiet = subprocess.DEVNULL
        self._store = subprocess.Popen(["redis-server", *words], stdout=quiet, stderr=quiet)

    def kill_store(self) -> None:
        if self._store is not None:
            self._store.kill()
            self._store.wait()

    # --------------------------------------------------------------------------
    # what happens

    async def restart_each(self) -> None:
        for one in self.hosts:
            await asyncio.to_thread(one.stop)
            self.start(one)
            await self.ready(one)

    async def cut_off(self) -> None:
        self.hosts[0].pull_cable()
        await asyncio.sleep(_OFF_S)
        self.hosts[0].plug_cable()

    async def hang(self) -> None:
        self.hosts[0].suspend()
        await asyncio.sleep(_HANG_S)
        self.hosts[0].go_on()

    async def kill_host(self) -> None:
        self.hosts[0].kill()
        await asyncio.sleep(_SETTLED_S)
        self.start(self.hosts[0])
        await self.ready(self.hosts[0])

    async def restart_killed_store(self) -> None:
        self.kill_store()
        self.start_store()

    async def nothing(self) -> None:
        await asyncio.sleep(_OFF_S)


async def _is_ready(session: aiohttp.ClientSession, address: str) -> bool:
    try:
        async with session.get(address, timeout=aiohttp.ClientTimeout(total=2)) as response:
            return response.status == _OK
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


class _Clients:
    """Clients that ask until they are stopped."""

    def __init__(self, session: aiohttp.ClientSession, name: str, count: int) -> None:
        self._session = session
        self._name = name
        self._count = count
        self._is_over = False

    async def ask_while(self, happening: Callable[[], Awaitable[None]]) -> HostTrial:
        trial = HostTrial(self._name)
        asking = [asyncio.create_task(self._ask_on(trial, n)) for n in range(self._count)]
        await asyncio.sleep(_SETTLED_S)
        await happening()
        await asyncio.sleep(_SETTLED_S)
        self._is_over = True
        await asyncio.gather(*asking)
        return trial

    async def _ask_on(self, trial: HostTrial, number: int) -> None:
        user = f"{self._name}-{number}".replace(" ", "-")
        client = PersistentClient(
            self._session, _ROOT, silence_s=3 * _PING_S, patience_s=_PATIENCE_S
        )
        answered: list[str] = []
        while not self._is_over:
            question = f"hello {len(answered)}"
            body = {"question": question, "user_id": user, "conversation_id": user}
            body |= {"routing_mode": "chat_direct", "on_disconnect": "continue"}
            trial.told.append(await client.ask(body))
            answered.append(question)
        kept = await self._kept(user)
        trial.doubled += sum(kept[question] > 1 for question in answered)
        trial.missing += sum(not kept[question] for question in answered)

    async def _kept(self, user: str) -> Counter[str]:
        """Return how often each question was answered in the user's conversation."""
        path = f"{_ROOT}/api/v0/conversations/{user}?user_id={user}&limit=100"
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                async with self._session.get(path) as response:
                    data = (await response.json())["data"]

                if response.status == _OK:
                    return Counter(
                        turn["question"] for turn in data["turns"] if turn["response"] == _ANSWER
                    )

                await asyncio.sleep(data["retry_after_s"])


async def _measure(service: _Service, streams: int) -> None:
    trials: dict[str, Callable[[], Awaitable[None]]] = {
        "nothing happens": service.nothing,
        "rolling restart": service.restart_each,
        f"a host without network for {_OFF_S:g} s": service.cut_off,
        f"a host hangs for {_HANG_S:g} s": service.hang,
        "kill -9 of a host": service.kill_host,
        "kill -9 of Redis": service.restart_killed_store,
    }
    await service.start_all()
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        for name, happening in trials.items():
            begun = time.monotonic()
            trial = await _Clients(session, name, streams).ask_while(happening)
            print(f"{trial.line()} [{time.monotonic() - begun:.0f} s]", flush=True)


@contextmanager
def _proxy(folder: Path, hosts: list[BenchHost]) -> Iterator[None]:
    servers = "\n        ".join(f"server {one.address}:{_PORT} max_fails=0;" for one in hosts)
    text = _PROXY.format(folder=folder, servers=servers, listen=f"{CENTRE}:{_PROXY_PORT}")
    (folder / "nginx.conf").write_text(text)
    command = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    process = subprocess.Popen([*command, "-e", str(folder / "nginx.log")])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _script(_request: Request) -> Reply:
    return Reply(pieces=[piece for word in _WORDS for piece in (_WORD_S, word)])


def main(database_url: str, folder: str, streams: str) -> None:
    """Run all trials in this process's network."""
    join_hosts()
    data = Path(folder)
    with ExitStack() as stack:
        hosts = [stack.enter_context(host(number)) for number in (2, 3)]
        settings = {
            "DATABASE_URL": database_url,
            "REDIS_URL": f"redis://{CENTRE}:{_STORE_PORT}/0",
            "PORT": str(_PORT),
            "OPENAI_API_KEY": "bench",
            "OPENAI_BASE_URL": stack.enter_context(model_process(_script, CENTRE)),
            "OPENAI_MODEL": "scripted",
            "ALLOW_ANONYMOUS": "true",
            "TRUSTED_PROXIES": "1",
            "MAX_STREAMS": "256",
            "CALLER_SHARE": "1",
            "MAX_CONNECTIONS_PER_ADDRESS": "1000",
            "PING_INTERVAL_S": str(_PING_S),
            "RUN_LEASE_S": str(_LEASE_S),
        }
        stack.enter_context(_proxy(data, hosts))
        service = _Service(data, settings, hosts)
        stack.callback(service.kill_store)
        asyncio.run(_measure(service, int(streams)))


if __name__ == "__main__":
    main(*sys.argv[1:])
