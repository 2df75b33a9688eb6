"""The composition root: only it builds adapters, from the settings."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from agent.analysis.analysing import Analyst
from agent.experience import OwnRecollection, Recollection
from agent.extensions.enhanced_recollection import EnhancedRecollection
from agent.extensions.extended_model import ExtendedModel
from agent.extensions.loading import load_extensions
from agent.extensions.observed_database import ObservedDatabase
from agent.extensions.points import UNOBSERVED, ConversationFilter, Provided
from agent.flows.ask.about_result import analysing
from agent.flows.ask.context import AskContext, Behaviour
from agent.flows.ask.question_flow import QuestionFlow
from agent.flows.etl.context import EtlContext
from agent.flows.etl.etl_flow import EtlFlow
from agent.flows.flow import Flow
from agent.flows.tool_graph.graph_flow import ToolGraphFlow
from agent.flows.tool_loop.loop_flow import LoopFlow
from agent.flows.without_model import WithoutModel
from agent.flows.workflow_flow import WorkflowFlow
from agent.progress import Write, shown_to_nobody
from agent.question import Question, Recall, nothing_before
from agent.runs.leases import lease_for
from agent.runs.past_answers import PastAnswers
from agent.runs.run_service import RunService
from agent.runs.runner import Runner
from agent.services.analysis_service import AnalysisService
from agent.services.artefact_service import ArtefactService
from agent.services.example_questions import Examples, demo_examples, examples_of
from agent.services.export_service import ExportService
from agent.services.learning.feedback_service import FeedbackService
from agent.services.learning.learning_service import LearningService
from agent.services.learning.learning_source import LearningSource
from agent.services.lineage_service import LineageService
from agent.services.readiness import readiness_checks
from agent.services.sql_service import SqlService
from agent.thinking.fallback import FallbackSkills
from agent.thinking.llm.model_skills import LlmSkills
from agent.tools.first_prompt import FirstPrompts
from agent.tools.memory_tools import Memory
from agent.tools.registry import ToolRegistry
from agent.tools.schema_tools import SchemaReader
from agent.tools.session import ToolSession
from agent.tools.tool_context import ToolAgentContext
from agent.tools.tool_groups import groups_of
from agent.tools.tool_limits import ToolLimits
from agent.tools.toolbox import ToolServices, build_tools
from agent.value_lookup import looking_up
from app_config import Settings
from common.actor import NOBODY, Actor
from common.audit import Audit, AuditLog, NoAudit, Occasion
from common.errors import CituError
from common.meanings import Report
from common.ports import Database, Definitions, UrlSource
from common.values import Catalog, Turn
from databases.datasources import DEFAULT, Datasource, Datasources
from databases.demo import SEMANTIC_FILE
from databases.options import database_options, listed
from databases.source import EmbeddedSource, Sources, database_sources
from etl.scratch.scratch_access import ScratchDatabase
from etl.scratch.scratch_options import scratch_options
from guard.row_rules import RowRules
from knowledge.experience.experience_service import ExperienceService
from knowledge.index import renew
from knowledge.semantic.layer import SemanticLayer
from knowledge.tables.schema_service import SchemaService
from knowledge.tables.table_vectors import Nearest, TableVectors
from knowledge.values.value_search import ValueSearch
from llm import ChatModel, open_model
from llm.contexts import context_tokens
from llm.embedding import Embedder, open_embedder
from llm.tokens import prompt_budget
from rules.skills import OfflineSkills
from store import Retention, Store
from store.journal import Journal
from store.open_store import open_store

_MOST_TURNS = 50  # turns that are read of a conversation; filters decide which are remembered


@dataclass(frozen=True)
class FlowDependencies:
    """The services from which the functions in `FLOWS` make flows.

    Attributes:
        new_context: makes the services for one question.
        new_tool_context: the same for flows with tools; None: there is no model, which they need.
        store: its checkpointer lets graphs wait for the user.
        new_etl_context: the same for requests for transformations.
    """

    settings: Settings
    new_context: Callable[[Question, Write], AskContext]
    new_tool_context: Callable[[Question, Write], ToolAgentContext] | None
    store: Store
    new_etl_context: Callable[[Question, Write], EtlContext]


def _ask(dependencies: FlowDependencies) -> Flow:
    settings = dependencies.settings
    return QuestionFlow(
        dependencies.new_context,
        routing_mode=settings.routing_mode,
        deadline_s=settings.request_timeout_s,
    )


def _tool_loop(dependencies: FlowDependencies) -> Flow:
    settings = dependencies.settings
    if dependencies.new_tool_context is None:
        return WithoutModel("tool_loop", _ask(dependencies))
    return LoopFlow(
        dependencies.new_tool_context,
        model_calls=settings.agent_model_calls,
        deadline_s=settings.request_timeout_s,
    )


def _tool_graph(dependencies: FlowDependencies) -> Flow:
    if dependencies.new_tool_context is None:
        return WithoutModel("tool_graph", _ask(dependencies))
    settings = dependencies.settings
    return ToolGraphFlow(
        dependencies.new_tool_context,
        limits=_limits(settings),
        samples=settings.schema_samples,
        deadline_s=settings.request_timeout_s,
    )


def _etl(dependencies: FlowDependencies) -> Flow:
    settings = dependencies.settings
    return EtlFlow(
        dependencies.new_etl_context,
        dependencies.store.checkpoints,
        time_zone=settings.etl_time_zone,
        deadline_s=settings.etl_timeout_s,
    )


FLOWS: list[Callable[[FlowDependencies], Flow]] = [_ask, _tool_loop, _tool_graph, _etl]
"""All flows there are; requests choose one by its name."""


@dataclass(frozen=True)
class Services:
    """The services that the HTTP layer needs.

    Attributes:
        runs: starts runs of the flows, finds, resumes and cancels them.
        flows: names of the flows.
        tools: all tools that models may call.
        sources: give the databases' URLs; calling one starts the embedded server if it needs it.
        thinker: who answers: `offline`, or the model's name.
        examples: questions to begin with, about the datasource.
        checks: what `/ready` looks at, by name.
        warm: prepares what the first question would otherwise wait for; ignores failures, which
            that question reports.
        aclose: closes connections, on the event loop that used them; the next use opens new ones.
    """

    runs: RunService
    flows: tuple[str, ...]
    store: Store
    service: SqlService
    exports: ExportService
    artefacts: ArtefactService
    analyses: AnalysisService
    feedback: FeedbackService
    learning: LearningService
    schema: SchemaService
    lineage: LineageService
    tools: ToolRegistry
    sources: Sources
    thinker: str
    examples: Examples
    checks: Mapping[str, Callable[[], Awaitable[dict[str, Any]]]]
    warm: Callable[[], Awaitable[None]]
    aclose: Callable[[], Awaitable[None]]


def bootstrap(settings: Settings) -> Services:
    """Builds all services from `settings`; opens no connection and starts nothing.

    Raises:
        ExtensionError: an extension that the settings name can't be used.
        InvalidEndpoint: a model's key is set without the settings it needs.
        InvalidRedisUrl: REDIS_URL is no URL of Redis.
        InvalidToolGroups: TOOL_GROUPS names a tool that there is not.
        SemanticFileError: the semantic file can't be read or is not valid.
        RowRulesError: the same of the file of row rules.
    """
    adapters = _Adapters(settings)
    tool_context_of = adapters.tool_context_of if adapters.model else None
    dependencies = FlowDependencies(
        settings,
        adapters.context_of,
        tool_context_of,
        adapters.store,
        adapters.etl_context_of,
    )
    flows = {flow.name: flow for flow in (build(dependencies) for build in FLOWS)}
    extensions = adapters.extensions
    workflow = WorkflowFlow(
        extensions.workflows,
        routing_mode=settings.routing_mode,
        deadline_s=settings.request_timeout_s,
    )
    runner = Runner(
        flows,
        settings.agent,
        workflow=workflow,
        hooks=extensions.hooks,
        observer=extensions.observer,
    )
    runs = RunService(runner, adapters.store, adapters.journal, lease_s=adapters.retention.lease_s)
    answers = PastAnswers(runs, adapters.store.conversations)
    source = LearningSource(
        DEFAULT, adapters.database_of, adapters.open_database, adapters.definitions
    )
    timeout_s = settings.request_timeout_s

    async def warm() -> None:
        runs.watch_over()
        for flow in flows.values():
            _ = flow.graph  # the property compiles the graph at its first use
        await adapters.warm()

    async def aclose() -> None:
        await runs.aclose()
        await adapters.aclose()

    return Services(
        runs=runs,
        flows=tuple(flows),
        store=adapters.store,
        service=SqlService(adapters.database_of, adapters.new_context, request_timeout_s=timeout_s),
        exports=ExportService(answers, adapters.open_database, max_rows=settings.export_max_rows),
        artefacts=ArtefactService(adapters.store.artefacts),
        analyses=AnalysisService(
            answers, adapters.open_database, adapters.analyst, request_timeout_s=timeout_s
        ),
        feedback=FeedbackService(
            answers,
            adapters.store.learned,
            lambda _name: source,
            adapters.rules.is_complete,
            learns=settings.learning,
            request_timeout_s=timeout_s,
        ),
        learning=LearningService(adapters.store.learned, source, request_timeout_s=timeout_s),
        schema=SchemaService(
            adapters.database_of,
            samples=settings.schema_samples,
            nearest=adapters.nearest,
            examples=adapters.examples,
        ),
        lineage=LineageService(
            adapters.database_of,
            partial(adapters.datasources.view_sources, DEFAULT),
            adapters.reports,
        ),
        tools=adapters.tools,
        sources=adapters.sources,
        thinker=adapters.model.name if adapters.model else adapters.rules.name,
        examples=demo_examples if adapters.asks_demo else examples_of(adapters.database_of),
        checks=readiness_checks(
            adapters.datasources, adapters.store, adapters.model, adapters.meanings
        ),
        warm=warm,
        aclose=aclose,
    )


class _Adapters:
    """The adapters, and the services made of them for one question; opens no connection."""

    def __init__(self, settings: Settings) -> None:
        self.sources = database_sources(
            settings.database_url,
            settings.app_database_url,
            settings.data_path,
            settings.scratch_database_url,
        )
        self.asks_demo = isinstance(self.sources.asked, EmbeddedSource)
        self.meanings = _meanings(settings, self.sources)
        annotate = self.meanings.annotate if self.meanings else None
        options = replace(database_options(settings), row_rules=_row_rules(settings))
        asked = {DEFAULT: Datasource(self.sources.asked, options, annotate)}
        audit = _audit(settings)
        self.datasources = Datasources(asked, audit=audit, prepare=renew)
        self.store, self.retention = _store(settings, self.sources.app)
        self.journal = Journal(self.store)
        self.rules = OfflineSkills()
        self.extensions = load_extensions(self._provided(settings))
        self.model = self._extended(open_model(settings))
        self._embedder = open_embedder(settings)
        self._vectors = _vectors(self._embedder, self.store)
        self.nearest = self._vectors.nearest if self._vectors else None
        self._thinking = _thinking(settings, self.model, self.nearest) if self.model else None
        self._behaviour = _behaviour(settings)
        self._values = ValueSearch(settings.value_lookup_timeout_s)
        self.analyst = Analyst()
        self._experience = ExperienceService(
            self.store.learned,
            DEFAULT,
            self.database_of,
            definitions=self.definitions,
            check=self.journal.check,
            reuses=settings.reuse_examples,
        )
        self.examples = self._experience.examples
        tools = build_tools(self._tool_services(settings))
        self.tools = ToolRegistry(
            tools,
            self.open_database,
            audit,
            hooks=self.extensions.hooks,
            observer=self.extensions.observer,
        )
        self._limits = _limits(settings)
        self._time_zone = settings.etl_time_zone
        self._most_rows = settings.max_rows
        self._scratch = ScratchDatabase(
            self.sources.scratch,
            scratch_options(settings),
            {"DATABASE_URL": self.sources.asked, "APP_DATABASE_URL": self.sources.app},
        )

    def _provided(self, settings: Settings) -> Provided:
        return Provided(
            settings,
            self.store,
            self.rules,
            self.database_of,
            self.open_database,
            self.reports,
            open_model,
        )

    def _extended(self, model: ChatModel | None) -> ChatModel | None:
        """Return the model with the middlewares before it; the same object when there are none."""
        extensions = self.extensions
        is_extended = extensions.middlewares or extensions.observer is not UNOBSERVED
        if model is None or not is_extended:
            return model
        return ExtendedModel(model, extensions.middlewares, extensions.observer)

    def _tool_services(self, settings: Settings) -> ToolServices:
        return ToolServices(
            SchemaReader(
                samples=settings.schema_samples, nearest=self.nearest, examples=self.examples
            ),
            self._values,
            Memory(
                self.store.learned,
                DEFAULT,
                self._recollection_of,
                self.definitions,
                self.rules.is_complete,
                learns=settings.learning,
            ),
            self.analyst,
            settings.export_max_rows,
            groups_of(settings.tool_groups),
        )

    def _recollection_of(self, actor: Actor) -> Recollection:
        own = OwnRecollection(self._experience, actor, self.rules.is_complete)
        enhancers = self.extensions.enhancers
        return EnhancedRecollection(own, enhancers, actor) if enhancers else own

    def reports(self) -> Sequence[Report]:
        """Return the reports of the semantic file."""
        return self.meanings.reports if self.meanings else ()

    def database_of(self, actor: Actor) -> Database:
        """Open the datasource with the actor's rights, unaudited, for catalogue and checks."""
        return self.datasources.open(DEFAULT, actor)

    def definitions(self) -> Definitions:
        """Return what is known of the datasource for every user; callers are shown none of it."""
        return self.datasources.definitions(DEFAULT)

    def open_database(self, occasion: Occasion) -> Database:
        """Open the datasource for an occasion; its statements are audited."""
        database = self.datasources.open(DEFAULT, occasion.actor, occasion)
        observer = self.extensions.observer
        if observer is UNOBSERVED:
            return database
        return ObservedDatabase(database, observer)

    def context_of(self, question: Question, write: Write) -> AskContext:
        """Return the services for one question."""
        recall = _recall(question, self.store, self.journal, self.extensions.filters)
        return self.new_context(_occasion(question), recall, write)

    def new_context(
        self, occasion: Occasion, recall: Recall = nothing_before, write: Write = shown_to_nobody
    ) -> AskContext:
        """Return the services for one occasion."""
        # One fallback per question: a model that failed once is not asked again for the same
        # question.
        skills = FallbackSkills(self._thinking, self.rules) if self._thinking else self.rules
        recollection = self._recollection_of(occasion.actor)
        look_up = looking_up(
            self._values, self.open_database(replace(occasion, source="value_lookup"))
        )
        database = self.open_database(occasion)
        analyse = analysing(self.analyst, self.open_database(replace(occasion, source="analyze")))
        return AskContext(
            database,
            skills,
            self.rules,
            self._behaviour,
            recall,
            occasion.actor,
            recollection,
            look_up,
            analyse,
            write,
        )

    def tool_context_of(self, question: Question, write: Write) -> ToolAgentContext:
        """Return the services for one question to a flow with tools; there must be a model."""
        assert self.model is not None
        assert self._thinking is not None
        context = self.context_of(question, write)
        added: dict[str, str] = {}
        for enrich in self.extensions.enrichers:
            added |= enrich(question)
        occasion = replace(_occasion(question), metadata=added)
        return ToolAgentContext(
            ToolSession(question, occasion, self.model, self._limits),
            self.tools,
            context.database,
            context.skills,
            self.rules,
            FirstPrompts(self._thinking.parts),
            context.recall,
            context.experience,
            context.look_up,
            write,
        )

    def etl_context_of(self, question: Question, write: Write) -> EtlContext:
        """Return the services for one request for a transformation."""
        occasion = replace(_occasion(question), source="etl")
        return EtlContext(
            question,
            self.open_database(occasion),
            self._scratch,
            self.store.artefacts,
            self._time_zone,
            self._most_rows,
            write,
        )

    async def warm(self) -> None:
        """Prepare what the first question would wait for; ignore failures, which it reports."""
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
        """Close connections, on the event loop that used them; the next use opens new ones."""
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
    return (
        SemanticLayer(path, allowed_functions=listed(settings.allowed_functions)) if path else None
    )


def semantic_file(settings: Settings, sources: Sources) -> Path | None:
    """Return the semantic file of the datasource: the configured one, or the demo's own."""
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


def _limits(settings: Settings) -> ToolLimits:
    return ToolLimits(
        settings.agent_model_calls,
        settings.agent_tool_calls,
        settings.agent_tokens,
        settings.agent_timeout_s,
    )


def _thinking(settings: Settings, model: ChatModel, nearest: Nearest | None) -> LlmSkills:
    budget = prompt_budget(
        context_tokens(model.name), settings.llm_max_tokens, settings.schema_tokens
    )
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
        own_artefacts=settings.max_own_artefacts,
    )
    store = open_store(
        app_source=source,
        redis_url=settings.redis_url,
        timeout_s=settings.store_timeout_s,
        retention=retention,
    )
    return store, retention


def _recall(
    question: Question, store: Store, journal: Journal, filters: Sequence[ConversationFilter]
) -> Recall:
    if not question.continues:
        return nothing_before

    async def recall() -> tuple[Turn, ...]:
        journal.check()  # fails at once when the store is known to be down
        turns = await store.conversations.recent(
            question.owner, question.conversation_id, _MOST_TURNS
        )
        for remembered in filters:
            turns = remembered(question, turns)
        return turns

    return recall


def _audit(settings: Settings) -> Audit:
    if settings.audit_log.lower() == "off":
        return NoAudit()
    given = Path(settings.audit_log).expanduser().resolve() if settings.audit_log else None
    return AuditLog(given or settings.data_path / "logs/audit.jsonl")


def _occasion(question: Question) -> Occasion:
    return Occasion(
        "ask", question.run_id, question.actor, question.conversation_id, question.question
    )
