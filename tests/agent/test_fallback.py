"""When the model fails, rules go on: once, visibly, and only with answers of their own."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from agent.thinking import Skills
from agent.thinking.fallback import FallbackSkills
from agent.thinking.llm.model_skills import LlmSkills
from common.errors import ForbiddenStatement, InvalidSql, LlmUnavailable
from common.inquiry import Emit, Inquiry
from common.text import Text
from common.values import (
    Catalog,
    Classification,
    Draft,
    NoSql,
    QueryResult,
    SkillResult,
    Sql,
    Usage,
)
from rules.skills import OfflineSkills
from tests.support.catalogs import CATALOG
from tests.support.model_calls import use
from tests.support.openai_server import OpenAiServer, Reply

T = TypeVar("T")
RESULT = QueryResult(("n",), ("int8",), ([7],))
BROKEN = InvalidSql("no")
ZH, EN = Inquiry("多少服务区", "zh", CATALOG), Inquiry("how many?", "en", CATALOG)


class Rules:
    """A backup whose answers can be told from the model's."""

    name = "rules"

    def __init__(self, draft: Draft | None = None, can_chat: bool = True) -> None:
        self._draft = draft or Sql("SELECT 'rules'")
        self._can_chat = can_chat

    async def classify(self, inquiry: Inquiry) -> SkillResult[Classification]:
        return SkillResult(Classification("DATABASE", 0.5, "rule_based_default", "rules"))

    async def write_sql(self, inquiry: Inquiry) -> SkillResult[Draft]:
        if "delete" in inquiry.question:
            raise ForbiddenStatement("DELETE")
        return SkillResult(self._draft, warnings=("rules are simple",))

    async def repair_sql(self, inquiry: Inquiry, sql: str, error: InvalidSql) -> SkillResult[Draft]:
        return SkillResult(self._draft)

    async def summarize(
        self, inquiry: Inquiry, sql: str, result: QueryResult, emit: Emit | None = None
    ) -> SkillResult[str]:
        return self._say("7 rows", emit)

    async def chat(self, inquiry: Inquiry, emit: Emit | None = None) -> SkillResult[str]:
        if not self._can_chat:
            raise LlmUnavailable(Text("规则不会聊天", "rules can't chat"))
        return self._say("hello", emit)

    @staticmethod
    def _say(text: str, emit: Emit | None) -> SkillResult[str]:
        if emit:
            emit(text)
        return SkillResult(text)


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply(status=503)) as server:
        yield server


def think(
    server: OpenAiServer,
    action: Callable[[FallbackSkills], Awaitable[T]],
    rules: Skills | None = None,
) -> T:
    return use(
        server.url,
        lambda model: action(FallbackSkills(LlmSkills(model), rules or Rules())),
        max_retries=0,
    )


def test_a_working_model_is_not_interfered_with(server: OpenAiServer) -> None:
    server.replies(Reply("```sql\nSELECT 'model'\n```"))
    outcome = think(server, lambda skills: skills.write_sql(ZH))
    assert outcome.value == Sql("SELECT 'model'")
    assert outcome.warnings == ()


@pytest.mark.parametrize(
    ("action", "value"),
    [
        (lambda skills: skills.write_sql(ZH), Sql("SELECT 'rules'")),
        (lambda skills: skills.repair_sql(ZH, "SELECT", BROKEN), Sql("SELECT 'rules'")),
        (lambda skills: skills.summarize(ZH, "SELECT 7", RESULT), "7 rows"),
        (lambda skills: skills.chat(ZH), "hello"),
    ],
)
def test_every_skill_falls_back_and_says_so(
    server: OpenAiServer,
    action: Callable[[FallbackSkills], Awaitable[SkillResult[object]]],
    value: object,
) -> None:
    outcome = think(server, action)
    assert outcome.value == value
    assert outcome.warnings[0].startswith("大模型不可用")
    assert outcome.usage == Usage(llm_calls=1)


def test_the_rules_know_that_the_model_is_down(server: OpenAiServer) -> None:
    poem = Inquiry("write a poem about spring", "en", Catalog(()))
    said = think(server, lambda skills: skills.chat(poem), OfflineSkills()).value
    assert said.startswith("The language model is down")


def test_the_rest_of_the_question_does_not_ask_the_model_again(server: OpenAiServer) -> None:
    async def action(skills: FallbackSkills) -> list[tuple[str, ...]]:
        assert skills.name == "test-model"
        outcomes = [
            await skills.classify(EN),
            await skills.write_sql(EN),
            await skills.summarize(EN, "SELECT 7", RESULT),
        ]
        assert skills.name == "rules"
        assert sum(outcome.usage.llm_calls for outcome in outcomes) == 1  # type: ignore[attr-defined]
        return [outcome.warnings for outcome in outcomes]  # type: ignore[attr-defined]

    warnings = think(server, action)
    assert len(server.requests) == 1
    assert [len(some) for some in warnings] == [1, 1, 0]
    assert "unavailable" in warnings[0][0]
    assert warnings[1] == ("rules are simple",)


def test_a_model_that_fails_later_is_replaced_later(server: OpenAiServer) -> None:
    server.replies(Reply("```sql\nSELECT 'model'\n```"))

    async def action(skills: FallbackSkills) -> tuple[Draft, str]:
        draft = await skills.write_sql(ZH)
        return draft.value, (await skills.summarize(ZH, "SELECT", RESULT)).value

    assert think(server, action) == (Sql("SELECT 'model'"), "7 rows")


NO_SQL = NoSql("ambiguous_question", "?")


@pytest.mark.parametrize(
    ("action", "rules"),
    [
        (lambda skills: skills.write_sql(ZH), Rules(draft=NO_SQL)),
        (lambda skills: skills.repair_sql(ZH, "SELECT", BROKEN), Rules(draft=NO_SQL)),
        (lambda skills: skills.chat(ZH), Rules(can_chat=False)),
    ],
)
def test_what_rules_can_not_do_ends_in_the_models_error(
    server: OpenAiServer, action: Callable[[FallbackSkills], Awaitable[object]], rules: Rules
) -> None:
    with pytest.raises(LlmUnavailable, match="internal error"):
        think(server, action, rules)


def test_later_failures_of_the_rules_also_end_in_the_models_error(server: OpenAiServer) -> None:
    async def action(skills: FallbackSkills) -> None:
        await skills.classify(ZH)
        await skills.write_sql(ZH)

    with pytest.raises(LlmUnavailable, match="internal error"):
        think(server, action, Rules(draft=NO_SQL))


def test_no_sql_of_a_working_model_stays_what_it_is(server: OpenAiServer) -> None:
    server.replies(Reply("NO_SQL: ambiguous_question: which year?"))
    assert isinstance(think(server, lambda skills: skills.write_sql(ZH)).value, NoSql)


def test_rules_refuse_a_write(server: OpenAiServer) -> None:
    with pytest.raises(ForbiddenStatement):
        think(server, lambda skills: skills.write_sql(Inquiry("delete all", "en", CATALOG)))


def test_text_begun_by_the_model_is_followed_by_a_paragraph_of_the_rules(
    server: OpenAiServer,
) -> None:
    server.replies(Reply(pieces=["there are "], ending="disconnect"))
    pieces: list[str] = []
    outcome = think(server, lambda skills: skills.summarize(ZH, "SELECT 7", RESULT, pieces.append))
    assert outcome.value == "7 rows"
    assert "".join(pieces) == "there are\n\n7 rows"


def test_text_not_begun_is_the_rules_alone(server: OpenAiServer) -> None:
    pieces: list[str] = []
    outcome = think(server, lambda skills: skills.chat(ZH, pieces.append))
    assert "".join(pieces) == outcome.value == "hello"


def test_cancelling_is_no_failure(server: OpenAiServer) -> None:
    server.default = lambda request: Reply(pieces=["tick ", 0.01], repeat=True)

    async def action(skills: FallbackSkills) -> str:
        heard = asyncio.Event()
        call = asyncio.create_task(skills.chat(ZH, lambda piece: heard.set()))
        await heard.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return skills.name

    assert think(server, action) == "test-model"
