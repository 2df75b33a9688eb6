"""Decides, alone, who may review what Citu learnt and who may operate the service."""

from collections.abc import Collection
from dataclasses import dataclass

from api.access.callers import is_authenticated, is_sent_by_operator
from common.actor import Actor


@dataclass(frozen=True)
class GroupRights:
    """The groups of API keys that give rights; an empty collection gives them to no key.

    Without keys nobody can be told apart. Then both rights belong to whoever sits at the machine
    that only serves itself, see `is_sent_by_operator`.
    """

    reviewer_groups: Collection[str] = frozenset()
    operator_groups: Collection[str] = frozenset()

    def is_reviewer(self, actor: Actor) -> bool:
        """Tell whether the request being served, done on behalf of `actor`, may review."""
        return _belongs(actor, self.reviewer_groups)

    def is_operator(self, actor: Actor) -> bool:
        """Tell whether the request, done on behalf of `actor`, may operate the service."""
        return _belongs(actor, self.operator_groups)


def speaks_for_themselves() -> bool:
    """Tell whether the request being served comes from somebody whom nobody else can pass for.

    Without keys, strangers on an open service (`ALLOW_ANONYMOUS`) can name any user; nothing may be
    learnt from them.
    """
    return is_authenticated() or is_sent_by_operator()


def _belongs(actor: Actor, groups: Collection[str]) -> bool:
    if is_authenticated():
        return any(group in groups for group in actor.groups)

    return is_sent_by_operator()
