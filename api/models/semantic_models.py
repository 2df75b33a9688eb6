"""The semantic file and proposals to change it."""

from pydantic import Field

from api.models.model_base import ClosedReplyModel, Timestamp
from store.proposals import ProposalState


class SemanticProblemModel(ClosedReplyModel):
    line: int = Field(ge=0)
    text: str


class SemanticFileModel(ClosedReplyModel):
    name: str
    text: str = Field(description="The file as it is")
    revision: str = Field(description="Another one for every other text")
    problems: list[SemanticProblemModel] = Field(description="Entries that are not used, and why")


class SemanticProposalModel(ClosedReplyModel):
    proposal_id: str
    author: str
    created_at: Timestamp
    note: str = Field(description="Why, in its author's words")
    diff: str = Field(description="As `diff -u` writes it")
    state: ProposalState
    settled_at: str | None
    settled_by: str = Field(description="Empty while it is open")
    reason: str


class SemanticProposalListModel(ClosedReplyModel):
    proposals: list[SemanticProposalModel]


class ProposedModel(ClosedReplyModel):
    proposal: SemanticProposalModel
