"""The composition root: builds every adapter from the settings. Nothing else constructs an adapter."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent.analysis.desk import AnalysisDesk
from agent.ask.context import Behaviour, Context, Recall, nothing_before
from agent.ask.example_questions import Examples, demo_examples, examples_of
from agent.ask.experience import OwnRecollection
from agent.ask.export_desk import ExportDesk
from agent.ask.past_answers import Answers
from agent.ask.question_flow import QuestionFlow
from agent.ask.sql_desk import SqlDesk
from agent.ask.value_lookup import looking_up
from agent.flow import Flow, Question
from agent.learning.feedback_desk import FeedbackDesk
from agent.learning.learning_desk import LearningDesk
from agent.runs.desk import RunDesk
from agent.runs.leases import lease_for
from agent.runs.runner import Runner
from agent.thinking.fallback import FallbackSkills
from agent.thinking.llm.model_skills import LlmSkills
from app_config import Settings
from common.actor import NOBODY, Actor
from common.audit import Audit, AuditLog, NoAudit, Occasion
from common.errors import CituError, DatabaseUnavailable
from common.llm import ChatModel, open_model
from common.llm.contexts import context_tokens
from common.llm.embedding import Embedder, open_embedder
from common.llm.tokens import prompt_budget
from common.ports import Database, Definitions, UrlSource
from common.store import Retention, Store
from common.store.journal import Journal
from common.store.opening import open_store
from common.values import Catalog, Turn
from databases import DEFAULT, Datasource, Datasources
from databases.demo import SEMANTIC_FILE
from databases.options import database_options, listed
from databases.row_rules import RowRules
from databases.source import EmbeddedSource, Sources, database_sources
from knowledge.experience.desk import ExperienceDesk
from knowledge.index import renew
from knowledge.schema_desk import SchemaDesk
from knowledge.semantic.layer import SemanticLayer
from knowledge.table_vectors import Nearest, TableVectors
from knowledge.value_search import ValueSearch
from rules.skills import OfflineSkills

_REMEMBERED_TURNS = 10  # turns a question can look back on


@dataclass(frozen=True)
class FlowDependencies:
    """What the functions in `FLOWS` make flows from.

    Attributes:
        new_context: makes the services for one question.
        store: its checkpointer lets graphs wait for the user.
    """

    settings: Settings
    new_context: Callable[[Question], Context]
    store: Store


def _ask(dependencies: FlowDependencies) -> Flow:
    settings = dependencies.settings
    return QuestionFlow(
        dependencies.new_context, routing_mode=settings.routing_mode, deadline_s=settings.request_timeout_s
    )


FLOWS: list[Callable[[FlowDependencies], Flow]] = [_ask]
"""All flows there are; requests choose one by its name, the first one by default."""


@dataclass(frozen=True)
class Services:
    """What the HTTP layer needs.

    Attributes:
        runs: starts runs of the flows, finds, resumes and cancels them.
        flows: names of the flows.
        sources: give the databases' URLs; calling one starts the embedded server if it needs it.
        thinker: who answers: `offline`, or the model's name.
        examples: questions to begin with, about the asked database.
        checks: what `/ready` looks at, by name.
        warm: prepares what the first question would otherwise wait for; ignores failures, which that question reports.
        aclose: closes connections, on the event loop that used them; the next use opens new ones.
    """

    runs: RunDesk
    flows: tuple[str, ...]
    store: Store
    desk: SqlDesk
    exports: ExportDesk
    analyses: AnalysisDesk
    feedback: FeedbackDesk
    learning: LearningDesk
    schema: SchemaDesk
    sources: Sources
    thinker: str
    examples: Examples
    checks: Mapping[str, Callable[[], Awaitable[dict[str, Any]]]]
    warm: Callable[[], Awaitable[None]]
    aclose: Callable[[], Awaitable[None]]


def bootstrap(settings: Settings) -> Services:
    """Builds all services from `settings`; opens no connection and starts nothing.

    Raises:
        InvalidEndpoint: a model's key is set without the settings it needs.
        InvalidRedisUrl: REDIS_URL is no URL of Redis.
        SemanticFileError: the semantic file can't be read or is not valid.
        RowRulesError: the same of the file of row rules.
    """
    tools = _Tools(settings)
    dependencies = FlowDependencies(settings, tools.context_of, tools.store)
    flows = {flow.name: flow for flow in (build(dependencies) for build in FLOWS)}
    runs = RunDesk(Runner(flows, next(iter(flows))), tools.store, tools.journal, lease_s=tools.retention.lease_s)
    answers = Answers(runs, tools.store.conversations)
    learnt = (tools.store.learned, DEFAULT, tools.database_of, tools.open_database, tools.definitions)
    timeout_s = settings.request_timeout_s

    async def warm() -> None:
        runs.watch_over()
        for flow in flows.values():
            _ = flow.graph  # the property compiles the graph at its first use
        await tools.warm()

    async def aclose() -> None:
        await runs.aclose()
        await tools.aclose()

    return Services(
        runs=runs,
        flows=tuple(flows),
        store=tools.store,
        desk=SqlDesk(tools.database_of, tools.new_context, request_timeout_s=timeout_s),
        exports=ExportDesk(answers, tools.open_database, max_rows=settings.export_max_rows),
        analyses=AnalysisDesk(answers, tools.open_database, request_timeout_s=timeout_s),
        feedback=FeedbackDesk(
            answers, *learnt, tools.rules.is_complete, learns=settings.learning, request_timeout_s=timeout_s
        ),
        learning=LearningDesk(*learnt, request_timeout_s=timeout_s),
        schema=SchemaDesk(tools.database_of, samples=settings.schema_samples, nearest=tools.nearest),
        sources=tools.sources,
        thinker=tools.model.name if tools.model else tools.rules.name,
        examples=demo_examples if tools.asks_demo else examples_of(tools.database_of),
        checks=_checks(tools.datasources, tools.store, tools.model, tools.meanings),
        warm=warm,
        aclose=aclose,
    )


class _Tools:
    """The adapters, and what is made of them for one question. Opens no connection and starts nothing."""

    def __init__(self, settings: Settings) -> None:
        self.sources = database_sources(settings.database_url, settings.app_database_url, settings.data_path)
        self.asks_demo = isinstance(self.sources.asked, EmbeddedSource)
        self.meanings = _meanings(settings, self.sources)
        annotate = self.meanings.annotate if self.meanings else None
        options = replace(database_options(settings), row_rules=_row_rules(settings))
        asked = {DEFAULT: Datasource(self.sources.asked, options, annotate)}
        self.datasources = Datasources(asked, audit=_audit(settings), prepare=renew)
        self.store, self.retention = _store(settings, self.sources.app)
        self.journal = Journal(self.store)
        self.rules = OfflineSkills()
        self.model = open_model(settings)
        self._embedder = open_embedder(settings)
        self._vectors = _vectors(self._embedder, self.store)
        self.nearest = self._vectors.nearest if self._vectors else None
        self._thinking = _thinking(settings, self.model, self.nearest) if self.model else None
        self._behaviour = _behaviour(settings)
        self._values = ValueSearch(settings.value_lookup_timeout_s)
        self._experience = ExperienceDesk(
            self.store.learned,
            DEFAULT,
            self.database_of,
            definitions=self.definitions,
            check=self.journal.check,
            reuses=settings.reuse_examples,
        )

    def database_of(self, actor: Actor) -> Database:
        """The asked database as the actor may see it, for looking and judging: nothing is audited."""
        return self.datasources.open(DEFAULT, actor)

    def definitions(self) -> Definitions:
        """What is known of the asked database whoever asks; nothing of it is shown to callers."""
        return self.datasources.definitions(DEFAULT)

    def open_database(self, occasion: Occasion) -> Database:
        """The asked database for an occasion; its statements are audited."""
        return self.datasources.open(DEFAULT, occasion.actor, occasion)

    def context_of(self, question: Question) -> Context:
        """The services for one question."""
        return self.new_context(_occasion(question), _recall(question, self.store, self.journal))

    def new_context(self, occasion: Occasion, recall: Recall = nothing_before) -> Context:
        """The services for one occasion."""
        # One fallback per question: a model that failed once is not asked again for the same question.
        skills = FallbackSkills(self._thinking, self.rules) if self._thinking else self.rules
        recollection = OwnRecollection(self._experience, occasion.actor, self.rules.is_complete)
        look_up = looking_up(self._values, self.open_database(replace(occasion, source="value_lookup")))
        database = self.open_database(occasion)
        return Context(database, skills, self.rules, self._behaviour, recall, occasion.actor, recollection, look_up)

    async def warm(self) -> None:
        """Prepares what the first question would otherwise wait for; ignores failures, which that question reports."""
        with suppress(CituError):
            catalog = await self.database_of(NOBODY).catalog()
            await _prepare(catalog, self.rules, self._thinking)
            if self._vectors:
                await self._vectors.begin(catalog)
        with suppress(CituError):
            await self._experience.warm()
        if self.model:
            with suppress(CituError):
                await self.model.warm()

    async def aclose(self) -> None:
        """Closes connections, on the event loop that used them; the next use opens new ones."""
        await self._experience.aclose()
        self.datasources.close()
        await self.store.aclose()
        for model in (self._vectors, self._embedder, self.model):
            if model:
                await model.aclose()


def _vectors(embedder: Embedder | None, store: Store) -> TableVectors | None:
    return TableVectors(embedder.model, embedder.embed, store.vectors) if embedder else None


def _meanings(settings: Settings, sources: Sources) -> SemanticLayer | None:
    path = semantic_file(settings, sources)
    return SemanticLayer(path, allowed_functions=listed(settings.allowed_functions)) if path else None


def semantic_file(settings: Settings, sources: Sources) -> Path | None:
    """The file that says what the asked database means: the configured one, or the demo's own for the demo."""
    if settings.semantic_file:
        return Path(settings.semantic_file).expanduser()
    return SEMANTIC_FILE if isinstance(sources.asked, EmbeddedSource) else None


def _row_rules(settings: Settings) -> RowRules | None:
    return RowRules.load(Path(settings.row_rules).expanduser()) if settings.row_rules else None


def _behaviour(settings: Settings) -> Behaviour:
    return Behaviour(
        result_summary=settings.enable_result_summary,
        syntax_validation=settings.enable_syntax_validation,
        forbidden_check=settings.enable_forbidden_check,
        auto_repair=settings.enable_auto_repair,
    )


def _thinking(settings: Settings, model: ChatModel, nearest: Nearest | None) -> LlmSkills:
    budget = prompt_budget(context_tokens(model.name), settings.llm_max_tokens, settings.schema_tokens)
    return LlmSkills(model, budget=budget, samples=settings.schema_samples, nearest=nearest)


async def _prepare(catalog: Catalog, rules: OfflineSkills, thinking: LlmSkills | None) -> None:
    await rules.prepare(catalog)
    if thinking:
        await thinking.prepare(catalog)


def _store(settings: Settings, source: UrlSource) -> tuple[Store, Retention]:
    retention = Retention(
        conversation_ttl_s=settings.conversation_ttl_s,
        max_turns=settings.max_turns,
        run_ttl_s=settings.run_ttl_s,
        lease_s=lease_for(settings.run_lease_s),
        waiting_ttl_s=settings.run_waiting_ttl_s,
        own_examples=settings.max_own_examples,
        shared_examples=settings.max_shared_examples,
    )
    store = open_store(
        app_source=source,
        redis_url=settings.redis_url,
        timeout_s=settings.store_timeout_s,
        retention=retention,
    )
    return store, retention


def _recall(question: Question, store: Store, journal: Journal) -> Recall:
    if not question.continues:
        return nothing_before

    async def recall() -> tuple[Turn, ...]:
        journal.check()  # fails at once when the store is known to be down
        return await store.conversations.recent(question.owner, question.conversation_id, _REMEMBERED_TURNS)

    return recall


def _audit(settings: Settings) -> Audit:
    if settings.audit_log.lower() == "off":
        return NoAudit()
    given = Path(settings.audit_log).expanduser().resolve() if settings.audit_log else None
    return AuditLog(given or settings.data_path / "logs/audit.jsonl")


def _occasion(question: Question) -> Occasion:
    return Occasion("ask", question.run_id, question.actor, question.conversation_id, question.question)


def _checks(
    datasources: Datasources, store: Store, model: ChatModel | None, meanings: SemanticLayer | None
) -> Mapping[str, Callable[[], Awaitable[dict[str, Any]]]]:
    async def asked() -> dict[str, Any]:
        taken = {"stuck_connections": count} if (count := datasources.stuck_connections) else {}
        try:
            await datasources.open(DEFAULT, NOBODY).ping()
        except DatabaseUnavailable:
            if not taken:
                raise
            return {"status": "unavailable", **taken}
        return {"status": "ok", **taken}

    async def memory() -> dict[str, Any]:
        await store.ping()
        return {"status": "ok", "name": store.name}

    async def thinking() -> dict[str, Any]:
        if model is None:
            return {"status": "not_configured"}
        await model.ping()
        return {"status": "ok", "name": model.name}

    async def semantics() -> dict[str, Any]:
        return _problems(None if meanings is None else meanings.problems or ())

    async def policies() -> dict[str, Any]:
        return _problems(datasources.row_problems(DEFAULT).context)

    async def rules() -> dict[str, Any]:
        return _problems(datasources.row_problems(DEFAULT).rules)

    return {
        "database": asked,
        "store": memory,
        "model": thinking,
        "semantic_file": semantics,
        "row_context": policies,
        "row_rules": rules,
    }


def _problems(found: Collection[object] | None) -> dict[str, Any]:
    """The state of what an operator has set up, by what is wrong with it; None: it is not set up."""
    if found is None:
        return {"status": "not_configured"}
    return {"status": "degraded" if found else "ok", "problems": len(found)}
