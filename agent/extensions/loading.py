"""Makes the extensions that the settings name."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from agent.extensions.points import (
    UNOBSERVED,
    AuditSink,
    ConversationFilter,
    LifecycleHook,
    LlmContextEnhancer,
    LlmMiddleware,
    ObservabilityProvider,
    Provided,
    RecoveryStrategy,
    ResultRenderer,
    ToolContextEnricher,
    UserResolver,
    WorkflowHandler,
)


class ExtensionError(ValueError):
    """An extension can't be used; the message names its setting and says why."""


@dataclass(frozen=True)
class Extensions:
    """The extensions of a service, each kind in the order in which they are asked."""

    workflows: tuple[WorkflowHandler, ...] = ()
    hooks: tuple[LifecycleHook, ...] = ()
    middlewares: tuple[LlmMiddleware, ...] = ()
    filters: tuple[ConversationFilter, ...] = ()
    enrichers: tuple[ToolContextEnricher, ...] = ()
    enhancers: tuple[LlmContextEnhancer, ...] = ()
    observer: ObservabilityProvider = UNOBSERVED
    user_resolver: UserResolver | None = None
    callbacks: tuple[BaseCallbackHandler, ...] = ()
    strategies: tuple[RecoveryStrategy, ...] = ()
    audit_sinks: tuple[AuditSink, ...] = ()
    renderers: tuple[ResultRenderer, ...] = ()


def load_extensions(provided: Provided) -> Extensions:
    """Make the extensions that `provided.settings` name.

    Raises:
        ExtensionError: one can't be imported or made, or is not what its setting is for.
    """

    settings = provided.settings

    def load(setting: str, given: str, point: Any) -> tuple[Any, ...]:
        return extensions_of(setting, given, point, provided)

    def load_one(setting: str, given: str, point: Any) -> Any:
        extensions = load(setting, given, point)
        if len(extensions) > 1:
            raise ExtensionError(f"{setting} names more than one; there can be one only.")

        return next(iter(extensions), None)

    observer = load_one(
        "OBSERVABILITY_PROVIDER", settings.observability_provider, ObservabilityProvider
    )
    return Extensions(
        load("WORKFLOW_HANDLERS", settings.workflow_handlers, WorkflowHandler),
        load("LIFECYCLE_HOOKS", settings.lifecycle_hooks, LifecycleHook),
        load("LLM_MIDDLEWARES", settings.llm_middlewares, LlmMiddleware),
        load("CONVERSATION_FILTERS", settings.conversation_filters, ConversationFilter),
        load("TOOL_CONTEXT_ENRICHERS", settings.tool_context_enrichers, ToolContextEnricher),
        load("LLM_CONTEXT_ENHANCERS", settings.llm_context_enhancers, LlmContextEnhancer),
        UNOBSERVED if observer is None else observer,
        load_one("USER_RESOLVER", settings.user_resolver, UserResolver),
        load("GRAPH_CALLBACKS", settings.graph_callbacks, BaseCallbackHandler),
        load("RECOVERY_STRATEGIES", settings.recovery_strategies, RecoveryStrategy),
        load("AUDIT_SINKS", settings.audit_sinks, AuditSink),
        load("RESULT_RENDERERS", settings.result_renderers, ResultRenderer),
    )


def extensions_of(setting: str, addresses: str, point: Any, provided: Provided) -> tuple[Any, ...]:
    """Return the extensions that a setting names, in its order.

    Args:
        point: the class or Protocol that each must be of.

    Raises:
        ExtensionError: one can't be used.
    """
    extensions = []
    for part in addresses.split(","):
        address = part.strip()
        if not address:
            continue

        extension = _made(setting, address, point, provided)
        if extension is not None:
            extensions.append(extension)

    return tuple(extensions)


def _made(setting: str, address: str, point: Any, provided: Provided) -> Any:
    """Make the extension; None when it says that the settings leave nothing for it to do."""
    make = _factory(setting, address)
    try:
        extension = make(provided)
    except Exception as error:
        raise ExtensionError(f"{setting}: {address} can't be made: {error}") from error

    # A Protocol of one call can't be told from any callable by its methods.
    if extension is not None and not isinstance(extension, point):
        kind = type(extension).__name__
        raise ExtensionError(f"{setting}: {address} gives a {kind}, which is no {point.__name__}.")

    return extension


def _factory(setting: str, address: str) -> Callable[[Provided], Any]:
    module, _, name = address.partition(":")
    if not module or not name:
        raise ExtensionError(f"{setting}: {address} is not written as module:name.")

    try:
        make = getattr(import_module(module), name)
    except ImportError as error:
        raise ExtensionError(f"{setting}: {module} can't be imported: {error}") from error
    except AttributeError as error:
        raise ExtensionError(f"{setting}: {module} has no {name}.") from error

    if not callable(make):
        raise ExtensionError(f"{setting}: {address} can't be called.")

    factory: Callable[[Provided], Any] = make
    return factory
