"""The operator's side of proposals: they are listed, applied to the file, or declined."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from common import timestamps
from common.ports import UrlSource
from databases.options import DatabaseOptions
from knowledge.semantic.checking import problems_of
from knowledge.semantic.problems import SemanticFileError
from knowledge.semantic.proposing import PatchError, patched
from store import Store
from store.proposals import ProposalState, SemanticProposal

T = TypeVar("T")


class ProposalRefused(Exception):
    """A proposal can't be settled so; the message says why, and what to do."""


def proposal_text(proposal: SemanticProposal) -> str:
    """Return the proposal as the command shows it: a head and its diff."""
    settled = f" by {proposal.settled_by}" if proposal.settled_by else ""
    head = f"{proposal.proposal_id}  {proposal.state}{settled}  {proposal.author}"
    noted = [f"  {text}" for text in (proposal.note, proposal.reason) if text]
    return "\n".join([f"{head}  {proposal.created_at}", *noted, proposal.diff])


@dataclass(frozen=True)
class OperatedFile:
    """The semantic file of a database and its proposals.

    Attributes:
        path: None: the database has no file of its own.
        open: opens the store; each use closes it.
    """

    path: Path | None
    datasource: str
    source: UrlSource
    options: DatabaseOptions
    open: Callable[[], Store]

    def listed(self) -> tuple[SemanticProposal, ...]:
        """Return all proposals, the newest first."""
        return self._use(lambda store: store.proposals.all(self.datasource))

    def apply(self, proposal_id: str, by: str) -> SemanticProposal:
        """Change the file as the proposal says, if it fits the database then as well.

        Raises:
            ProposalRefused: there is no such open proposal, no file, or the file has changed.
            SemanticFileError: the changed file has mistakes that it has not now.
        """
        path, proposal = self._file(), self._open_one(proposal_id)
        try:
            text = patched(path.read_text("utf-8"), proposal.diff)
        except PatchError as error:
            raise ProposalRefused(
                f"{proposal_id} can't be applied: {error}. Edit the file and decline it."
            ) from error

        self._replace(path, text)
        return self._settle(proposal, "applied", by, "")

    def decline(self, proposal_id: str, by: str, reason: str) -> SemanticProposal:
        """Settle the proposal without a change.

        Raises:
            ProposalRefused: there is no such open proposal.
        """
        return self._settle(self._open_one(proposal_id), "declined", by, reason)

    def _file(self) -> Path:
        if self.path is None:
            raise ProposalRefused(
                "The database has no semantic file of its own: set SEMANTIC_FILE. The demo's is a "
                "part of Citu: copy it first."
            )

        return self.path

    def _replace(self, path: Path, text: str) -> None:
        """Put the text in the file's place at once, when it brings no mistakes with it."""
        known_texts = {one.text for one in problems_of(path, self.source, self.options)}
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".yaml")
        changed = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)

            shutil.copymode(path, changed)
            problems = problems_of(changed, self.source, self.options)
            new = [problem for problem in problems if problem.text not in known_texts]
            if new:
                raise SemanticFileError(path.name, new)

            changed.replace(path)
        finally:
            changed.unlink(missing_ok=True)

    def _open_one(self, proposal_id: str) -> SemanticProposal:
        proposal = self._use(lambda store: store.proposals.find(self.datasource, proposal_id))
        if proposal is None or proposal.state != "open":
            problem = (
                "There is no proposal" if proposal is None else f"It is {proposal.state} already:"
            )
            raise ProposalRefused(f"{problem} {proposal_id}.")

        return proposal

    def _settle(
        self, proposal: SemanticProposal, state: ProposalState, by: str, reason: str
    ) -> SemanticProposal:
        at = timestamps.now()
        settled = replace(proposal, state=state, settled_at=at, settled_by=by, reason=reason)
        if not self._use(lambda store: store.proposals.settle(self.datasource, settled)):
            raise ProposalRefused(f"Somebody else has settled {proposal.proposal_id} meanwhile.")

        return settled

    def _use(self, ask: Callable[[Store], Awaitable[T]]) -> T:
        async def used() -> T:
            store = self.open()
            try:
                return await ask(store)
            finally:
                await store.aclose()

        return asyncio.run(used())
