"""The composition root: only it builds adapters, from the settings."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any, get_args

from agent.analysis.analysing import Analyst
from agent.asked_databases import AskedDatabase, AskedDatabases, DatabasesOnFile
from agent.budgets.budgets_file import BudgetPlan, read_budgets
from agent.budgets.charged_model import ChargedModel
from agent.budgets.daily_budget import DailyBudget
from agent.database_choice import DatabaseChooser
from agent.experience import OwnRecollection, Recollection
from agent.extensions.audit_delivery import AuditDelivery
from agent.extensions.enhanced_recollection import EnhancedRecollection
from agent.extensions.extended_model import ExtendedModel
from agent.extensions.loading import ExtensionError, load_extensions
from agent.extensions.metrics_observer import MeasuredAudit, MetricsObserver, SeveralObservers
from agent.extensions.observed_database import ObservedDatabase
from agent.extensions.points import (
    UNOBSERVED,
    ConversationFilter,
    ObservabilityProvider,
    Provided,
    UserResolver,
)
from agent.flows.ask.about_result import analysing
from agent.flows.ask.context import AskContext, Behaviour
from agent.flows.ask.question_flow import QuestionFlow
from agent.flows.etl.context import EtlContext, EtlRoles
from agent.flows.etl.draft_learning import DraftLearning
from agent.flows.etl.etl_flow import EtlFlow
from agent.flows.etl.role_model import RoleModel
from agent.flows.etl.role_prompts import RolePrompts
from agent.flows.flow import Flow
from agent.flows.tool_graph.graph_flow import ToolGraphFlow
from agent.flows.tool_loop.loop_flow import LoopFlow
from agent.flows.without_model import WithoutModel
from agent.flows.workflow_flow import WorkflowFlow
from agent.learnt_drafts import LearntDrafts
from agent.progress import Write, shown_to_nobody
from agent.question import Question, Recall, nothing_before, occasion_of
from agent.runs.leases import lease_for
from agent.runs.past_answers import PastAnswers
from agent.runs.run_service import RunService
from agent.runs.runner import Runner
from agent.runs.uncounted_ends import UncountedEnds
from agent.services.analysis_service import AnalysisService
from agent.services.artefact_service import ArtefactService
from agent.services.completion_service import CompletionService
from agent.services.database_services import DatabaseServices, ServedDatabases
from agent.services.example_questions import demo_examples, examples_of
from agent.services.export_service import ExportService
from agent.services.learning.feedback_service import FeedbackService
from agent.services.learning.learning_service import LearningService
from agent.services.learning.learning_source import LearningSource
from agent.services.lineage_service import LineageService
from agent.services.readiness import readiness_checks
from agent.services.semantic_service import SemanticService
from agent.services.sql_service import SqlService
from agent.services.worker_sampler import WorkerSampler
from agent.thinking.fallback import FallbackSkills
from agent.thinking.llm.database_pick import DatabasePick
from agent.thinking.llm.model_skills import LlmSkills
from agent.tools.first_prompt import FirstPrompts
from agent.tools.memory_tools import Memory
from agent.tools.registry import ToolRegistry
from agent.tools.schema_tools import SchemaReader
from agent.tools.session import ToolSession
from agent.tools.tool import Tool
from agent.tools.tool_context import ToolAgentContext
from agent.tools.tool_groups import groups_of
from agent.tools.tool_limits import SpentBudget, ToolLimits
from agent.tools.toolbox import ToolServices, argument_transforms, build_tools, own_tools
from agent.value_lookup import looking_up
from agent.webhooks.operator_events import OperatorEvents
from agent.webhooks.webhook_sender import WebhookSender
from app_config import ConfigurationError, Settings
from common.actor import NOBODY, Actor
from common.audit import Audit, AuditEntries, AuditLog, NoAudit, Occasion
from common.errors import CituError
from common.inquiry import Inquiry, StoredValue
from common.learning import Example, Topic
from common.line_file import LineFile
from common.meanings import BilingualNames, Report
from common.metrics import Metrics, open_metrics
from common.ports import Database, Definitions, UrlSource
from common.text import Text
from common.tracing import Tracing
from common.values import Catalog, Turn
from databases.catalog.view_sources import ViewSources
from databases.databases_file import (
    DatabaseEntry,
    DatabasesFile,
    DatabasesFileError,
    read_databases,
)
from databases.datasources import DEFAULT, Datasource, Datasources
from databases.demo import SEMANTIC_FILE
from databases.options import DatabaseOptions, database_options
from databases.source import EmbeddedSource, Sources, database_sources, source_of
from etl.scratch.scratch_access import ScratchDatabase
from etl.scratch.scratch_options import scratch_options
from files.draft_folder import DraftFolder
from files.file_index import FILES, FileIndex
from files.file_service import FileLimits, FileService
from files.worker_process import FileWorker
from guard.row_rules import RowRules
from knowledge.experience.experience_service import ExperienceService
from knowledge.index import make_elsewhere, renew
from knowledge.index_process import IndexProcesses
from knowledge.semantic.layer import SemanticLayer
from knowledge.tables.schema_search import RANKING, RANKING_WITHOUT_VALUES
from knowledge.tables.schema_service import SchemaService
from knowledge.tables.table_vectors import Nearest, TableVectors
from knowledge.values.value_search import ValueSearch
from llm import ChatModel, open_model
from llm.contexts import context_tokens
from llm.embedding import Embedder, open_embedder
from llm.model_log import LoggedModel, open_model_log, unknown_cost
from llm.providers import endpoint_of
from llm.tokens import prompt_budget
from rules.skills import OfflineSkills
from store import Retention, Store
from store.journal import Journal
from store.open_store import open_store

_CALLS_PER_REPLY = 2  # tools that roles of transformations call, on average
_FILE_CONNECTIONS = 3  # of one owner's part of the workspace
_WORKSPACE_TTL_S = 5.0  # of the definitions of all files' tables
# Of the one database, where files are beside it
_ONLY_NAMES = BilingualNames(("主数据库",), ("Main database",))
_DEMO_NAMES = BilingualNames(("演示数据库",), ("Demo database",))
_FILE_NAMES = BilingualNames(("文件", "我的文件"), ("Files", "my files"))
_FILE_DESCRIPTION = Text("您上传的文件", "The files that you have brought")
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
        asked: the databases that may be asked.
        chooser: tells which of them a question is about.
        databases: what endpoints offer of each database.
        files: what people do with their files; None where none are taken.
        tools: all tools that models may call.
        sources: give the databases' URLs; calling one starts the embedded server if it needs it.
        thinker: who answers: `offline`, or the model's name.
        checks: what `/ready` looks at, by name.
        metrics: what is measured; None: nothing is.
        tracing: makes spans; None: there are none.
        user_resolver: tells users by what proxies say of them; None: none does.
        warm: prepares what the first question would otherwise wait for; ignores failures, which
            that question reports.
        aclose: closes connections, on the event loop that used them; the next use opens new ones.
    """

    runs: RunService
    flows: tuple[str, ...]
    store: Store
    asked: AskedDatabases
    chooser: DatabaseChooser
    databases: ServedDatabases
    exports: ExportService
    artefacts: ArtefactService
    analyses: AnalysisService
    feedback: FeedbackService
    files: FileService | None
    tools: ToolRegistry
    sources: Sources
    thinker: str
    checks: Mapping[str, Callable[[], Awaitable[dict[str, Any]]]]
    metrics: Metrics | None
    tracing: Tracing | None
    user_resolver: UserResolver | None
    warm: Callable[[], Awaitable[None]]
    aclose: Callable[[], Awaitable[None]]


def bootstrap(settings: Settings) -> Services:
    """Build all services from `settings`; open no connection and start nothing.

    Raises:
        ExtensionError: an extension that the settings name can't be used.
        InvalidEndpoint: a model's key is set without the settings it needs.
        InvalidRedisUrl: REDIS_URL is no URL of Redis.
        InvalidToolGroups: TOOL_GROUPS names a tool that there is not.
        SemanticFileError: the semantic file can't be read or is not valid.
        RowRulesError: the same of the file of row rules.
        DatabasesFileError: the same of the file of databases.
        BudgetsFileError: the same of the file of budgets.
        ConfigurationError: settings contradict each other.
    """
    settings.refuse_halves()
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
        hooks=adapters.hooks,
        observer=adapters.observer,
        choose=adapters.chooser.chosen,
        budget=adapters.budget,
        callbacks=adapters.extensions.callbacks,
        renderers=extensions.renderers,
    )
    runs = RunService(
        runner,
        adapters.store,
        adapters.journal,
        lease_s=adapters.retention.lease_s,
        observer=adapters.observer,
        uncounted=UncountedEnds(adapters.metrics.folder) if adapters.metrics else None,
    )
    answers = PastAnswers(runs, adapters.store.conversations)
    databases = ServedDatabases(adapters.asked, partial(_database_services, adapters, settings))
    timeout_s = settings.request_timeout_s
    sampler = adapters.sampler

    async def warm() -> None:
        make_elsewhere(IndexProcesses(settings.data_path / "index").made)
        runs.watch_over()
        if sampler is not None:
            sampler.start()

        for flow in flows.values():
            _ = flow.graph  # the property compiles the graph at its first use

        await adapters.warm()

    async def aclose() -> None:
        if sampler is not None:
            sampler.stop()

        await runs.aclose()
        await adapters.aclose()

    return Services(
        runs=runs,
        flows=tuple(flows),
        store=adapters.store,
        asked=adapters.asked,
        chooser=adapters.chooser,
        databases=databases,
        exports=ExportService(answers, adapters.open_database, max_rows=settings.export_max_rows),
        artefacts=ArtefactService(adapters.store.artefacts),
        analyses=AnalysisService(
            answers, adapters.open_database, adapters.analyst, request_timeout_s=timeout_s
        ),
        feedback=FeedbackService(
            answers,
            adapters.store.learned,
            adapters.learning_source,
            adapters.rules.is_complete,
            learns=settings.learning,
            request_timeout_s=timeout_s,
            observer=adapters.observer,
            tell=adapters.events.rated if adapters.events else None,
        ),
        files=_file_service(settings, adapters.sources, adapters.files),
        tools=adapters.tools,
        sources=adapters.sources,
        thinker=adapters.model.name if adapters.model else adapters.rules.name,
        checks=readiness_checks(adapters.asked, adapters.store, adapters.model),
        metrics=adapters.metrics,
        tracing=adapters.tracing,
        user_resolver=adapters.extensions.user_resolver,
        warm=warm,
        aclose=aclose,
    )


def _database_services(adapters: "_Adapters", settings: Settings, name: str) -> DatabaseServices:
    """Return what endpoints offer of the database of that name."""
    database_of = partial(adapters.asked.database, name)
    database = adapters.asked.of(name)
    is_demo = database is not None and database.is_demo
    return DatabaseServices(
        sql=SqlService(
            database_of,
            adapters.new_context,
            database=name,
            request_timeout_s=settings.request_timeout_s,
        ),
        schema=SchemaService(
            database_of,
            samples=settings.schema_samples,
            nearest=adapters.nearest,
            examples=adapters.experience_of(name).examples,
        ),
        reread=partial(adapters.asked.datasources.reread, name),
        learning=LearningService(
            adapters.store.learned,
            adapters.learning_source(name),
            request_timeout_s=settings.request_timeout_s,
        ),
        lineage=LineageService(
            database_of,
            partial(adapters.asked.datasources.view_sources, name),
            partial(adapters.reports, name),
            partial(adapters.drafts_of, name=name),
        ),
        examples=demo_examples if is_demo else examples_of(database_of),
        completions=CompletionService(
            database_of,
            adapters.store.conversations,
            adapters.experience_of(name),
            samples=settings.schema_samples,
        ),
        semantic=SemanticService(
            database.meanings if database is not None else None,
            adapters.store.proposals,
            name,
            partial(adapters.whole_catalog, name),
        ),
    )


class _Adapters:
    """The adapters, and the services made of them for one question; opens no connection."""

    def __init__(self, settings: Settings) -> None:
        self.sources = database_sources(
            settings.database_url,
            settings.app_database_url,
            settings.data_path,
            settings.scratch_database_url,
            settings.workspace_url,
        )
        self.metrics = open_metrics(settings.data_path) if settings.is_measured else None
        self.tracing = _tracing(settings)
        self._shows_statements = settings.trace_statements
        self._audit_delivery = AuditDelivery()
        audit = _audit(settings, self.metrics, self._audit_delivery)
        measured = _measured(settings, self.metrics, self.tracing)
        self.files = _files(settings, self.sources)
        self.asked = _asked_databases(settings, self.sources, audit, self.files, measured)
        self.store, self.retention = _store(settings, self.sources.app)
        self.journal = Journal(self.store, partial(measured.span, "store_write", {}))
        self.rules = OfflineSkills()
        plan = read_budgets(Path(settings.budgets_file)) if settings.budgets_file else None
        self.budget = DailyBudget(plan, self.store.spending) if plan else None
        log = open_model_log(settings.model_log_path) if settings.model_log_path else None
        self._open_model = partial(_open_model, plan, log)
        provided = self._provided(settings)
        self.extensions = load_extensions(provided)
        self._audit_delivery.deliver_to(self.extensions.audit_sinks)
        self.webhooks = _webhooks(settings)
        zone = plan.zone if plan else UTC
        self.events = OperatorEvents(self.webhooks.send, zone) if self.webhooks else None
        own_hooks = (self.events,) if self.events else ()
        self.hooks = (*self.extensions.hooks, *own_hooks)
        self.observer = _both(measured, self.extensions.observer)
        self.model = self._extended(self._open_model(settings))
        self._embedder = open_embedder(settings)
        self._vectors = _vectors(self._embedder, self.store)
        self.nearest = self._vectors.nearest if self._vectors else None
        self._thinking = _thinking(settings, self.model, self.nearest) if self.model else None
        self._behaviour = _behaviour(settings)
        self._values = ValueSearch(settings.value_lookup_timeout_s)
        self.analyst = Analyst()
        self._reuses_examples = settings.reuse_examples
        self._experiences: dict[tuple[str, Topic], ExperienceService] = {}
        self._learns = settings.learning
        ranking = RANKING if settings.schema_samples else RANKING_WITHOUT_VALUES
        self.chooser = DatabaseChooser(
            self.asked,
            self._latest_database,
            ranking.ready,
            self._examples_of,
            self._values_of,
            self.rules,
            self._database_pick(),
        )
        self._reader = SchemaReader(
            samples=settings.schema_samples, nearest=self.nearest, examples=self._examples_for
        )
        tools = build_tools(self._tool_services(settings, own_tools(provided)))
        self.tools = ToolRegistry(
            tools,
            self.open_database,
            audit,
            argument_transforms(provided),
            hooks=self.extensions.hooks,
            strategies=self.extensions.strategies,
            observer=self.observer,
        )
        self._limits = _limits(settings)
        self._etl_limits = _etl_limits(settings)
        self._time_zone = settings.etl_time_zone
        self._most_rows = settings.max_rows
        self._scratch = ScratchDatabase(
            self.sources.scratch,
            scratch_options(settings),
            self._other_databases,
        )

    @property
    def sampler(self) -> WorkerSampler | None:
        """Return what measures this worker once a second; None where nothing is measured."""
        if self.metrics is None:
            return None

        return WorkerSampler(self.metrics, self.asked.datasources.connections)

    def _provided(self, settings: Settings) -> Provided:
        return Provided(
            settings,
            self.store,
            self.rules,
            self.database_of,
            self.open_database,
            self.reports,
            self._open_model,
        )

    def _extended(self, model: ChatModel | None) -> ChatModel | None:
        """Return the model with the middlewares before it; the same object when there are none."""
        middlewares = self.extensions.middlewares
        is_extended = middlewares or self.observer is not UNOBSERVED
        if model is None or not is_extended:
            return model

        return ExtendedModel(model, middlewares, self.observer)

    def _tool_services(self, settings: Settings, own: Sequence[Tool[Any]]) -> ToolServices:
        return ToolServices(
            self._reader,
            self._values,
            Memory(
                self.store.learned,
                self._name_of,
                self._recollection_of,
                self.definitions,
                self.rules.is_complete,
                learns=settings.learning,
            ),
            self.views_of,
            self.drafts_of,
            self.analyst,
            settings.export_max_rows,
            groups_of(settings.tool_groups),
            own,
        )

    async def _examples_for(self, words: str, question: Question) -> Sequence[Example]:
        """Return what answered similar questions, as the question's actor may see it."""
        experience = self.experience_of(question.database)
        return await experience.examples(words, question.actor)

    async def _examples_of(self, database: str, question: Question) -> Sequence[Example]:
        """Return what answered questions like this one in a database."""
        return await self.experience_of(database).examples(question.question, question.actor)

    async def whole_catalog(self, database: str) -> Catalog:
        """Return the catalogue as callers of no group have it."""
        return await self.asked.datasources.open(database, NOBODY).catalog()

    def _database_pick(self) -> DatabasePick | None:
        """Return the model's way to tell databases apart; None without a model."""
        if self.model is None or self._thinking is None:
            return None

        return DatabasePick(self.model, self._thinking.parts)

    async def _values_of(
        self, database: str, question: Question, inquiry: Inquiry
    ) -> tuple[StoredValue, ...]:
        """Return the stored values that a question names in a database."""
        occasion = replace(occasion_of(question), database=database, source="value_lookup")
        look_up = looking_up(self._values, self.open_database(occasion))
        return await look_up(inquiry, False)

    def _recollection_of(self, actor: Actor, name: str | None) -> Recollection:
        own = OwnRecollection(self.experience_of(name), actor, self.rules.is_complete)
        enhancers = self.extensions.enhancers
        if enhancers:
            return EnhancedRecollection(own, enhancers, actor)

        return own

    def _name_of(self, name: str | None) -> str:
        """Return the database's name: None stands for the default one."""
        return name or self.asked.default

    def experience_of(self, name: str | None, topic: Topic = "question") -> ExperienceService:
        """Return what has been learnt about a database."""
        name = self._name_of(name)
        if (name, topic) not in self._experiences:
            self._experiences[name, topic] = ExperienceService(
                self.store.learned,
                name,
                partial(self.asked.database, name),
                topic=topic,
                definitions=partial(self.definitions, name),
                check=self.journal.check,
                reuses=self._reuses_examples and topic == "question",
            )

        return self._experiences[name, topic]

    def drafts_of(self, actor: Actor, name: str | None) -> LearntDrafts:
        """Return the drafts over a database, as an actor may see them."""
        return LearntDrafts(self.experience_of(name, "etl"), actor)

    def _draft_learning(self, name: str | None) -> DraftLearning:
        name = self._name_of(name)
        return DraftLearning(
            self.store.learned, name, partial(self.definitions, name), learns=self._learns
        )

    async def views_of(self, question: Question) -> Sequence[ViewSources]:
        """Return the views of the question's database that its actor may see."""
        name = self._name_of(question.database)
        return await self.asked.datasources.view_sources(name, question.actor)

    def learning_source(self, name: str | None) -> LearningSource:
        """Return a database as far as learning about it needs it."""
        name = self._name_of(name)
        return LearningSource(
            name,
            partial(self.asked.database, name),
            self.open_database,
            partial(self.definitions, name),
            is_divided=name == FILES,
        )

    def reports(self, name: str | None = None) -> Sequence[Report]:
        """Return the reports of the database's semantic file."""
        database = self.asked.of(name)
        return database.reports if database is not None else ()

    def database_of(self, actor: Actor, name: str | None = None) -> Database:
        """Open a database with the actor's rights, unaudited, for catalogue and checks."""
        return self.asked.database(name, actor)

    def definitions(self, name: str | None = None) -> Definitions:
        """Return what is known of a database for every user; callers are shown none of it."""
        return self.asked.datasources.definitions(self._name_of(name))

    def _other_databases(self) -> Mapping[str, UrlSource]:
        """Return the databases that drafts must not be built in, by what names them."""
        others = {"APP_DATABASE_URL": self.sources.app}
        for one in self.asked.all():
            setting = "DATABASE_URL" if self.asked.is_one else f"DATABASES_FILE ({one.name})"
            others[setting] = one.datasource.source

        return others

    async def _latest_database(self, question: Question) -> str | None:
        """Return the database of the conversation's latest turn."""
        self.journal.check()
        turns = await self.store.conversations.recent(question.owner, question.conversation_id, 1)
        if not turns:
            return None

        latest = turns[-1].database
        # Before there were files, turns did not say which database they were about.
        return self._name_of(latest) if self.asked.is_one else latest

    def open_database(self, occasion: Occasion) -> Database:
        """Open the database of an occasion; its statements are audited."""
        database = self.asked.audited(occasion)
        if self.observer is UNOBSERVED:
            return database

        return ObservedDatabase(database, self.observer, shows_statements=self._shows_statements)

    def context_of(self, question: Question, write: Write) -> AskContext:
        """Return the services for one question."""
        recall = _recall(question, self.store, self.journal, self.extensions.filters, self._name_of)
        return self.new_context(occasion_of(question), recall, write)

    def new_context(
        self, occasion: Occasion, recall: Recall = nothing_before, write: Write = shown_to_nobody
    ) -> AskContext:
        """Return the services for one occasion."""
        # One fallback per question: a model that failed once is not asked again for the same
        # question.
        skills = FallbackSkills(self._thinking, self.rules) if self._thinking else self.rules
        recollection = self._recollection_of(occasion.actor, occasion.database)
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
        occasion = self._with_metadata(question, occasion_of(question))
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
        occasion = replace(occasion_of(question), source="etl")
        return EtlContext(
            question,
            self.open_database(occasion),
            self._scratch,
            self.store.artefacts,
            self._time_zone,
            self._most_rows,
            self.drafts_of(occasion.actor, question.database),
            self._draft_learning(question.database),
            write,
            self._roles_of(question, occasion, write),
            _recall(question, self.store, self.journal, self.extensions.filters, self._name_of),
        )

    def _roles_of(self, question: Question, occasion: Occasion, write: Write) -> EtlRoles | None:
        """Return the model behind the roles of a transformation; None when there is none."""
        model, thinking = self.model, self._thinking
        if model is None or thinking is None:
            return None

        enriched = self._with_metadata(question, occasion)

        def session_of(spent: SpentBudget) -> ToolSession:
            return ToolSession(question, enriched, model, self._etl_limits, spent=spent)

        prompts = RolePrompts(
            thinking.parts, self._reader, self._recollection_of(question.actor, question.database)
        )
        return EtlRoles(RoleModel(session_of, self.tools, write), prompts)

    def _with_metadata(self, question: Question, occasion: Occasion) -> Occasion:
        added: dict[str, str] = {}
        for enrich in self.extensions.enrichers:
            added |= enrich(question)

        return replace(occasion, metadata=added)

    async def warm(self) -> None:
        """Prepare what the first question would wait for; ignore failures, which it reports."""
        for database in self.asked.all():
            with suppress(CituError):
                catalog = await self.definitions(database.name).catalog()
                await _prepare(catalog, self.rules, self._thinking)
                if self._vectors:
                    await self._vectors.begin(catalog)

            with suppress(CituError):
                for topic in get_args(Topic):
                    await self.experience_of(database.name, topic).warm()

        if self.model:
            with suppress(CituError):
                await self.model.warm()

    async def aclose(self) -> None:
        """Close connections, on the event loop that used them; the next use opens new ones."""
        for experience in self._experiences.values():
            await experience.aclose()

        self.asked.datasources.close()
        await asyncio.to_thread(self._audit_delivery.close)
        if self.webhooks:
            await self.webhooks.aclose()
        if self.budget:
            await self.budget.aclose()

        await self.store.aclose()
        for model in (self._vectors, self._embedder, self.model):
            if model:
                await model.aclose()


def _open_model(plan: BudgetPlan | None, log: LineFile | None, settings: Any) -> ChatModel | None:
    """Return the model that the settings describe: logged if there is a log, and charged to
    budgets where there are some.

    Raises:
        ConfigurationError: budgets are in money, and the model has no price.
    """
    model = open_model(settings)
    if model is None:
        return None
    if log is not None:
        cost = partial(plan.cost, model.name) if plan is not None else unknown_cost
        model = LoggedModel(model, log, cost)

    if plan is None:
        return model
    if plan.counts_money and model.name not in plan.prices:
        raise ConfigurationError(
            f"BUDGETS_FILE allows money, and has no price of the model {model.name}: "
            "add it under 'prices'."
        )

    return ChargedModel(model)


def _webhooks(settings: Settings) -> WebhookSender | None:
    """Return what sends events to the operator's address; None where there is none.

    Raises:
        ConfigurationError: there is an address, and nothing to sign with.
    """
    if not settings.webhook_url:
        return None
    if not settings.webhook_secret:
        raise ConfigurationError(
            "WEBHOOK_URL needs WEBHOOK_SECRET, which signs what is sent: "
            "a long random text that the receiver knows, too."
        )

    return WebhookSender(settings.webhook_url, settings.webhook_secret)


def _vectors(embedder: Embedder | None, store: Store) -> TableVectors | None:
    if embedder:
        return TableVectors(embedder.model, embedder.embed, store.vectors)

    return None


def _measured(
    settings: Settings, metrics: Metrics | None, tracing: Tracing | None
) -> ObservabilityProvider:
    """Return what takes measurements as metrics and traces, as far as these are on."""
    endpoint = endpoint_of(settings)
    provider = endpoint.provider if endpoint is not None else ""
    observers: list[ObservabilityProvider] = []
    if tracing is not None:
        from agent.extensions.trace_observer import TraceObserver

        observers.append(TraceObserver(tracing, provider))

    if metrics is not None:
        observers.append(MetricsObserver(metrics, provider))
    if not observers:
        return UNOBSERVED

    if len(observers) == 1:
        return observers[0]

    return SeveralObservers(*observers)


def _tracing(settings: Settings) -> Tracing | None:
    if not settings.traces:
        return None

    try:
        return Tracing()
    except ImportError as exc:
        raise ExtensionError(
            "TRACES needs the packages of requirements-telemetry.txt: "
            "'make telemetry' installs them."
        ) from exc


def _both(
    measured: ObservabilityProvider, configured: ObservabilityProvider
) -> ObservabilityProvider:
    if measured is UNOBSERVED:
        return configured
    if configured is UNOBSERVED:
        return measured

    return SeveralObservers(measured, configured)


def _files(settings: Settings, sources: Sources) -> FileIndex | None:
    """Return what knows people's files; None where none are taken."""
    if not settings.files:
        return None

    mark = None if settings.workspace_url else _file_folder(settings).mark
    return FileIndex(
        sources.workspace,
        _file_options(settings),
        mark,
        serves_strangers=settings.allow_anonymous,
    )


def _file_folder(settings: Settings) -> DraftFolder:
    return DraftFolder(settings.data_path / "files", settings.file_draft_ttl_s)


def _file_options(settings: Settings) -> DatabaseOptions:
    """Return the options of each owner's part: those of the service, with few connections, and
    without what is said of the objects of another database.
    """
    return replace(
        database_options(settings),
        pool_size=_FILE_CONNECTIONS,
        allowed_objects=(),
        denied_objects=(),
        group_denied_objects={},
        allowed_functions=(),
        row_context=False,
        require_read_only_role=False,
        is_workspace=True,
    )


def _workspace(sources: Sources, files: FileIndex, settings: Settings) -> AskedDatabase:
    """Return the database of people's files, of which each actor has a part."""
    # The whole is read only to compare definitions, when something was learnt about it.
    options = replace(_file_options(settings), catalog_ttl_s=_WORKSPACE_TTL_S)
    datasource = Datasource(sources.workspace.reads, options, part_of=files.part_of)
    return AskedDatabase(FILES, datasource, names=_FILE_NAMES, description=_FILE_DESCRIPTION)


def _file_service(
    settings: Settings, sources: Sources, files: FileIndex | None
) -> FileService | None:
    """Return what people do with their files; None where none are taken."""
    if files is None:
        return None

    folder = _file_folder(settings)
    worker = FileWorker(folder.work, settings.file_timeout_s)
    limits = FileLimits(
        settings.file_bytes_per_owner, settings.file_tables_per_owner, settings.file_timeout_s
    )
    workspace = sources.workspace
    return FileService(files, folder, worker, workspace.writes, workspace.reader, limits)


def _asked_databases(
    settings: Settings,
    sources: Sources,
    audit: Audit,
    files: FileIndex | None,
    measured: ObservabilityProvider,
) -> AskedDatabases:
    """Return the databases of `DATABASES_FILE`, or the one of `DATABASE_URL`; and the files."""
    span = partial(measured.span, "catalog_read", {})
    datasources = Datasources({}, audit=audit, prepare=renew, span=span)
    workspace = None if files is None else _workspace(sources, files, settings)
    if settings.databases_file:
        _refuse_settings_beside_file(settings)
        on_file = DatabasesOnFile(
            Path(settings.databases_file).expanduser(),
            partial(_read_databases, settings),
            partial(_of_entry, sources),
        )
        return AskedDatabases(datasources, on_file=on_file, workspace=workspace, files=files)

    options = replace(database_options(settings), row_rules=_row_rules(settings))
    meanings = _meanings(semantic_file(settings, sources), options)
    annotate = meanings.annotate if meanings is not None else None
    is_demo = isinstance(sources.asked, EmbeddedSource)
    only = AskedDatabase(
        DEFAULT,
        Datasource(sources.asked, options, annotate),
        meanings,
        names=_DEMO_NAMES if is_demo else _ONLY_NAMES,
        is_demo=is_demo,
    )
    return AskedDatabases(datasources, only=only, workspace=workspace, files=files)


def _read_databases(settings: Settings, path: Path) -> DatabasesFile:
    """Return the file of databases.

    Raises:
        DatabasesFileError: it is not valid, or one of them has the name of people's files.
    """
    databases_file = read_databases(path, database_options(settings))
    if settings.files and any(entry.name == FILES for entry in databases_file.entries):
        raise DatabasesFileError(
            f"{path}: {FILES!r} is the name of the files that people bring: give the database "
            "another one, or set FILES=false."
        )

    return databases_file


def _refuse_settings_beside_file(settings: Settings) -> None:
    """Refuse settings of one database where a file says them of each.

    Raises:
        ConfigurationError: one of them is set.
    """
    beside = ("database_url", "semantic_file", "row_rules")
    set_beside = [name.upper() for name in beside if getattr(settings, name)]
    if set_beside:
        raise ConfigurationError(
            f"DATABASES_FILE is set, and {', '.join(set_beside)} as well: say it in the file, "
            "of the database that it is about, and leave the setting empty."
        )


def _of_entry(sources: Sources, entry: DatabaseEntry) -> AskedDatabase:
    """Return the database of an entry of `DATABASES_FILE`."""
    path = entry.semantic_file
    if path is None and entry.is_demo:
        path = SEMANTIC_FILE

    meanings = _meanings(path, entry.options)
    annotate = meanings.annotate if meanings is not None else None
    options = entry.options
    if entry.row_rules is not None:
        options = replace(options, row_rules=RowRules.load(entry.row_rules))

    source = sources.demo if entry.is_demo else source_of(entry.url)
    return AskedDatabase(
        entry.name,
        Datasource(source, options, annotate, entry.groups),
        meanings,
        entry.names,
        entry.description,
        entry.is_demo,
        entry,
    )


def _meanings(path: Path | None, options: DatabaseOptions) -> SemanticLayer | None:
    if path is None:
        return None

    return SemanticLayer(path, allowed_functions=options.allowed_functions)


def semantic_file(settings: Settings, sources: Sources) -> Path | None:
    """Return the semantic file of the one datasource: the configured one, or the demo's own."""
    if settings.semantic_file:
        return Path(settings.semantic_file).expanduser()

    if isinstance(sources.asked, EmbeddedSource):
        return SEMANTIC_FILE

    return None


def _row_rules(settings: Settings) -> RowRules | None:
    if settings.row_rules:
        return RowRules.load(Path(settings.row_rules).expanduser())

    return None


def _behaviour(settings: Settings) -> Behaviour:
    return Behaviour(
        result_summary=settings.enable_result_summary,
        syntax_validation=settings.enable_syntax_validation,
        forbidden_check=settings.enable_forbidden_check,
        auto_repair=settings.enable_auto_repair,
        follow_up_wait_s=settings.follow_up_wait_s,
    )


def _limits(settings: Settings) -> ToolLimits:
    return ToolLimits(
        settings.agent_model_calls,
        settings.agent_tool_calls,
        settings.agent_tokens,
        settings.agent_timeout_s,
    )


def _etl_limits(settings: Settings) -> ToolLimits:
    return ToolLimits(
        settings.etl_model_calls,
        _CALLS_PER_REPLY * settings.etl_model_calls,
        settings.agent_tokens,
        settings.etl_timeout_s / 2,  # so that the rules have time to do the rest
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
    question: Question,
    store: Store,
    journal: Journal,
    filters: Sequence[ConversationFilter],
    name_of: Callable[[str | None], str],
) -> Recall:
    if not question.continues:
        return nothing_before

    async def recall() -> tuple[Turn, ...]:
        journal.check()  # fails at once when the store is known to be down
        turns = await store.conversations.recent(
            question.owner, question.conversation_id, _MOST_TURNS
        )
        # Turns about another database would be taken for answers about this one.
        name = name_of(question.database)
        turns = tuple(turn for turn in turns if name_of(turn.database) == name)
        for remembered in filters:
            turns = remembered(question, turns)

        return turns

    return recall


def _audit(settings: Settings, metrics: Metrics | None, delivery: AuditDelivery) -> Audit:
    audit = _audit_log(settings, delivery)
    if metrics is not None:
        return MeasuredAudit(audit, metrics)

    return audit


def _audit_log(settings: Settings, delivery: AuditDelivery) -> Audit:
    if settings.audit_log.lower() == "off":
        return AuditEntries(delivery.put) if settings.audit_sinks else NoAudit()

    path = Path(settings.audit_log).expanduser().resolve() if settings.audit_log else None
    return AuditLog(path or settings.data_path / "logs/audit.jsonl", delivery.put)
