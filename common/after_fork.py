"""Makes anew in a forked child what belongs to one process: the loop, connections, tasks, leases.

A server may load the application first and fork its workers then. Whoever owns something that a
child can't use registers itself once; one hook starts all of them anew in the child, so that
nobody compares process ids.
"""

import os
import weakref
from typing import Any, Protocol


class ProcessBound(Protocol):
    """An object whose state belongs to the process that made it."""

    def start_anew(self) -> None:
        """Forget the state of the parent process; called in the child, where no loop runs yet."""


_owners: "weakref.WeakSet[ProcessBound]" = weakref.WeakSet()
# What the parent had is kept for ever: to close a connection in the child would end the parent's.
_of_parents: list[Any] = []


def restart_after_fork(owner: ProcessBound) -> None:
    """Call `owner.start_anew` in every child that is forked from now on."""
    _owners.add(owner)


def keep_for_parent(*resources: Any) -> None:
    """Keep a child's copies of what the parent still uses, so that they are never collected."""
    _of_parents.extend(resources)


def _start_anew() -> None:
    for owner in tuple(_owners):
        keep_for_parent(*vars(owner).values())
        owner.start_anew()


os.register_at_fork(after_in_child=_start_anew)
