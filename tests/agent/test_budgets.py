"""Budgets of models: what the file may say, who is charged, what is refused and when it renews."""

import asyncio
import os
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.budgets.budgets_file import BudgetPlan, BudgetsFileError, read_budgets
from agent.budgets.charged_model import ChargedModel
from agent.budgets.daily_budget import DailyBudget, OpenBudget, open_budget
from agent.extensions.loading import ExtensionError
from agent.question import Question
from app_config import ConfigurationError, Settings
from common.actor import Actor
from common.errors import BudgetExhausted, LlmUnavailable
from common.values import Usage
from llm import (
    AnyMessage,
    ChatModel,
    Completion,
    Endpoint,
    Message,
    OnToken,
    OpenAiChat,
    WrappedModel,
)
from store import Store
from store.spending import Expense, Spending
from tests.support.asking import Asking
from tests.support.openai_server import Gate, OpenAiServer, Reply, openai_server
from tests.support.store_servers import StoreServer, play, until

__all__ = ["openai_server"]

BODY = {"question": "Tell me a joke", "routing_mode": "chat_direct"}
USAGE = Usage(1, 600, 400)
TOKENS = 1000

MISTAKES = {
    "": "1: the file allows nothing",
    "each_user: {}": "1: each_user: .*needs 'tokens', 'money' or both",
    "each_user: {tokens: 0}": "1: each_user.tokens: ",
    "each_user: {money: .inf}": "1: each_user.money: ",
    "each_user: {tokens: 5}\nusers:\n  ann: {token: 5}": "3: users.ann.token: ",
    "each_user: {tokens: 5}\ntime_zone: Mars/Base": "2: time_zone: .*no time zone",
    "each_user: {tokens: 5}\nprices:\n  m: {input: 1}": "3: prices.m.output: ",
    "each_user: {tokens: 5}\ncurrency: dollars": "2: currency: ",
    "- 1": "1: the file: ",
    "a: [": "1: not YAML",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_named_with_their_lines(tmp_path: Path, text: str) -> None:
    path = tmp_path / "budgets.yaml"
    path.write_text(text)
    with pytest.raises(BudgetsFileError, match=f"budgets.yaml:{MISTAKES[text]}"):
        read_budgets(path)


@pytest.fixture(scope="module")
def demo(demo_url: str) -> Settings:
    return Settings(database_url=demo_url, app_database_url=os.environ["APP_DATABASE_URL"])


@pytest.fixture
def budget_file(tmp_path: Path) -> Callable[[str], str]:
    """Write a file of budgets; return its path."""

    def write(text: str) -> str:
        path = tmp_path / "budgets.yaml"
        path.write_text(text)
        return str(path)

    return write


def test_workers_count_together_and_answers_tell_what_is_left(
    demo: Settings, openai_server: OpenAiServer, budget_file: Callable[[str], str]
) -> None:
    openai_server.default = lambda _: Reply("Ha.")
    budgets = budget_file("each_user: {tokens: 1}\nusers:\n  rich: {tokens: 1_000_000}")
    names = {name: f"{name} {uuid.uuid4().hex}" for name in ("ann", "ben")}
    with (
        Asking(demo, openai_server, budgets_file=budgets) as one,
        Asking(demo, openai_server, budgets_file=budgets) as another,
    ):
        first = one.sync({**BODY, "user_id": names["ann"]})
        refused = another.sync({**BODY, "user_id": names["ann"], "lang": "en"})
        streamed = another.stream({**BODY, "user_id": names["ann"]})[-1]
        ben = another.sync({**BODY, "user_id": names["ben"]})
    left = first[1]["data"]["usage"]["budget"]
    assert (first[0], refused[0], ben[0]) == (200, 429, 200)
    assert left["tokens_left"] == 0
    assert left["money_left"] is None
    data = refused[1]["data"]
    assert data["error_type"] == streamed["data"]["error_type"] == "budget_exhausted"
    assert data["renews_at"] == left["renews_at"]
    assert "Your budget for models today is spent" in data["error"]
    assert 0 < data["retry_after_s"] <= 86_400


def test_without_budgets_answers_tell_none(demo: Settings, openai_server: OpenAiServer) -> None:
    openai_server.default = lambda _: Reply("Ha.")
    with Asking(demo, openai_server) as asking:
        assert "budget" not in asking.sync(BODY)[1]["data"]["usage"]


def test_money_needs_the_price_of_each_model(
    demo: Settings, openai_server: OpenAiServer, budget_file: Callable[[str], str]
) -> None:
    budgets = budget_file("each_user: {money: 1}\nprices:\n  scripted: {input: 1, output: 2}")
    with pytest.raises(ConfigurationError, match="no price of the model other"):
        Asking(demo, openai_server, budgets_file=budgets, openai_model="other")
    with pytest.raises(ExtensionError, match="no price of the model spare"):
        Asking(demo, openai_server, budgets_file=budgets, second_model="spare")


# ------------------------------------------------------------------------------
# accounts and days, in each store

PLAN = """
time_zone: Asia/Shanghai
currency: CNY
prices: {model: {input: 2, output: 8}}
each_user: {tokens: 2500}
groups: {team: {money: 0.01}}
everybody: {tokens: 1_000_000}
"""


class Clock:
    """Says the time that a test sets."""

    def __init__(self) -> None:
        # A day that no other test has, in the evening: in Shanghai the next one has begun.
        self.now = datetime(2100, 1, 1, 17, tzinfo=UTC) + timedelta(days=uuid.uuid4().int % 10**6)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def plan(budget_file: Callable[[str], str]) -> BudgetPlan:
    return read_budgets(Path(budget_file(PLAN)))


def asked_by(user: str, *groups: str) -> Question:
    return Question("q", actor=Actor(user, groups))


def left_of(budget: OpenBudget) -> dict[str, Any]:
    left = budget.left()
    assert left is not None
    return left


async def begun(budget: DailyBudget, question: Question) -> OpenBudget:
    await budget.begin(question)
    opened = open_budget()
    assert opened is not None
    return opened


def test_whoever_has_least_left_decides_until_the_next_day(
    place: StoreServer, plan: BudgetPlan
) -> None:
    clock = Clock()

    async def scenario(store: Store) -> None:
        budget = DailyBudget(plan, store.spending, clock)
        ann = await begun(budget, asked_by("ann", "team", "others"))
        await ann.charge("model", USAGE)  # 600 × 2 + 400 × 8 millionths
        left = left_of(ann)
        assert (left["tokens_left"], left["money_left"]) == (1500, 0.0056)
        assert left["currency"] == "CNY"

        # Another member of the group spends the rest of the group's money, and of no one's tokens.
        ben = await begun(budget, asked_by("ben", "team"))
        await asyncio.gather(*(ben.charge("model", Usage(1, 0, 350)) for _ in range(2)))
        assert left_of(ben)["money_left"] == 0
        with pytest.raises(BudgetExhausted, match="of your group today is spent") as refused:
            await budget.begin(asked_by("ann", "team"))
        assert open_budget() is None
        assert refused.value.renews_at == left["renews_at"]
        assert left["renews_at"].endswith("T00:00:00+08:00")
        assert refused.value.retry_after_s == 23 * 3600

        outside = await begun(budget, asked_by("ann"))
        await outside.charge("model without a price", Usage(1, 2_000, 0))
        with pytest.raises(BudgetExhausted, match="Your budget for models today is spent"):
            await budget.begin(asked_by("ann"))

        clock.now += timedelta(seconds=refused.value.retry_after_s)
        assert left_of(await begun(budget, asked_by("ann", "team")))["tokens_left"] == 2500

    play(scenario, place.open())


class LateAnswers:
    """A store's spending whose first addition is answered after the second."""

    def __init__(self, spending: Spending) -> None:
        self._spending = spending
        self._added_twice = asyncio.Event()
        self._additions = 0

    async def add(self, day: date, accounts: Sequence[str], spent: Expense) -> Sequence[Expense]:
        self._additions += 1
        is_first = self._additions == 1
        sums = await self._spending.add(day, accounts, spent)
        if is_first:
            await self._added_twice.wait()
        self._added_twice.set()
        return sums

    async def sums(self, day: date, accounts: Sequence[str]) -> Sequence[Expense]:
        return await self._spending.sums(day, accounts)


def test_what_is_left_never_grows_by_an_answer_that_comes_late(
    place: StoreServer, plan: BudgetPlan
) -> None:
    async def scenario(store: Store) -> None:
        budget = DailyBudget(plan, LateAnswers(store.spending), Clock())
        ann = await begun(budget, asked_by("ann"))
        first = asyncio.create_task(ann.charge("model", USAGE))
        await asyncio.sleep(0)  # the first has begun
        await ann.charge("model", USAGE)
        await first
        assert left_of(ann)["tokens_left"] == 500

    play(scenario, place.open())


# Replies whose tokens the endpoint tells too late or not at all.
UNTOLD = {
    "broken off": Reply(pieces=["word " * 40], ending="disconnect"),
    "untold": Reply("word " * 40, usage=False),
    "exhausted": Reply("", finish_reason="length"),
}


class WatchedModel(WrappedModel):
    """Tells when a piece of a reply has arrived, and streams all of them for that."""

    def __init__(self, inner: ChatModel) -> None:
        super().__init__(inner)
        self.has_begun = asyncio.Event()

    async def complete(
        self, messages: Sequence[AnyMessage], *, on_token: OnToken | None = None, **options: Any
    ) -> Completion:
        def note(piece: str) -> None:
            if on_token is not None:
                on_token(piece)
            self.has_begun.set()

        return await super().complete(messages, on_token=note, **options)


def test_calls_of_which_no_tokens_are_told_are_charged_too(
    place: StoreServer, plan: BudgetPlan, openai_server: OpenAiServer
) -> None:
    async def scenario(store: Store) -> None:
        budget = DailyBudget(plan, store.spending, Clock())
        endpoint = Endpoint("openai", "model", openai_server.url, "test")
        watched = WatchedModel(OpenAiChat(endpoint, timeout_s=30, max_retries=0, max_tokens=500))
        model = ChargedModel(watched)
        prompt: Message = {"role": "user", "content": "好" * 50}
        left = 2500

        async def charged(of: OpenBudget) -> int:
            nonlocal left
            await budget.aclose()
            before, left = left, int(left_of(of)["tokens_left"])
            return before - left

        ann = await begun(budget, asked_by("ann"))
        openai_server.replies(Reply(status=401))
        with suppress(LlmUnavailable):
            await model.complete([prompt])
        assert await charged(ann) == 0

        for name, reply in UNTOLD.items():
            openai_server.replies(reply)
            with suppress(LlmUnavailable):
                await model.complete([prompt], on_token=lambda _: None)
            assert await charged(ann) > 50, name

        on_tokens: dict[str, OnToken | None] = {"streamed": lambda _: None, "whole": None}
        for name, on_token in on_tokens.items():
            watched.has_begun.clear()
            openai_server.replies(Reply(pieces=["word " * 40, Gate()]))
            call = asyncio.create_task(model.complete([prompt], on_token=on_token))
            async with asyncio.timeout(30):
                await watched.has_begun.wait()
            call.cancel()
            await asyncio.wait([call])
            assert call.cancelled()
            assert await charged(ann) > 100, name
        await model.aclose()

    play(scenario, place.open())


def test_two_hosts_lose_nothing_of_what_is_charged_at_once(place: StoreServer) -> None:
    day = Clock().now.date()
    accounts = ["b", "a", "c"]

    async def scenario(one: Store, another: Store) -> None:
        charges = [
            store.spending.add(day, order, Expense(3, 7))
            for store in (one, another)
            for order in (accounts, accounts[::-1])
            for _ in range(10)
        ]
        await asyncio.gather(*charges)
        sums = await one.spending.sums(day, [*accounts, "d"])
        assert sums == [*[Expense(120, 280)] * 3, Expense()]
        assert await one.spending.sums(day + timedelta(days=1), ["a"]) == [Expense()]

    play(scenario, place.open(), place.open())


def test_while_the_store_is_away_nothing_is_refused_and_charged_when_it_is_back(
    place: StoreServer, plan: BudgetPlan
) -> None:
    async def scenario(hasty: Store, store: Store) -> None:
        clock = Clock()
        budget = DailyBudget(plan, hasty.spending, clock, late_pauses_s=(0.05,))
        ann = await begun(budget, asked_by("ann"))
        with place.silent():
            await ann.charge("model", USAGE)
            again = await begun(budget, asked_by("ann"))
            await again.charge("model", USAGE)
            assert again.left() is None

        account = f"user:{asked_by('ann').owner}"
        today = clock.now.astimezone(plan.zone).date()

        async def is_charged() -> bool:
            [spent] = await store.spending.sums(today, [account])
            return spent.tokens >= 2 * TOKENS  # what was cut off may count twice

        await until(is_charged)
        await budget.aclose()

    play(scenario, place.open(timeout_s=0.5), place.open())
