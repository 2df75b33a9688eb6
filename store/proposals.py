"""The port of proposals to change a semantic file, kept until an operator settles them."""

from dataclasses import dataclass
from typing import Literal, Protocol

ProposalState = Literal["open", "applied", "declined", "withdrawn"]


@dataclass(frozen=True)
class SemanticProposal:
    """A change of a semantic file that somebody wants.

    Attributes:
        diff: from the file as it was to what it should be, as `diff -u` writes it.
        note: why, in its author's words.
        created_at, settled_at: ISO 8601.
        settled_by, reason: who decided on it and why; empty while it is open.
    """

    proposal_id: str
    author: str
    created_at: str
    diff: str
    note: str = ""
    state: ProposalState = "open"
    settled_at: str | None = None
    settled_by: str = ""
    reason: str = ""


class Proposals(Protocol):
    """Keeps proposals; all methods raise `StoreUnavailable`."""

    async def add(self, datasource: str, proposal: SemanticProposal) -> None:
        """Keep a new proposal; beyond the most that are kept, the oldest are forgotten."""

    async def all(self, datasource: str) -> tuple[SemanticProposal, ...]:
        """Return the proposals, the newest first."""

    async def find(self, datasource: str, proposal_id: str) -> SemanticProposal | None:
        """Return the proposal; None when there is none of this id."""

    async def settle(self, datasource: str, settled: SemanticProposal) -> bool:
        """Keep the proposal as it is settled; false when it is no longer open, or unknown."""
