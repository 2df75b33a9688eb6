"""Keeps proposals as records of one set for each datasource.

A change is applied only if nothing was changed meanwhile: of two people who settle a proposal, one
does.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from common.errors import StoreUnavailable
from store.outages import BUSY
from store.proposals import SemanticProposal
from store.record_json import key, plain_from_text, to_text
from store.records import Record, RecordChange, RecordLimits, RecordRepository, StoredRecord

_MOST_KEPT = 200  # of a datasource; the oldest go first
_TRIES = 5


class ProposalRepository:
    """Implements `store.proposals.Proposals` over the records of any adapter."""

    def __init__(self, records: RecordRepository) -> None:
        self._records = records

    async def add(self, datasource: str, proposal: SemanticProposal) -> None:
        record = _record(datasource, proposal)
        change = RecordChange(record.key, None, record)
        limits = RecordLimits(latest={_set(datasource): _MOST_KEPT})
        await self._records.apply([change], limits)

    async def all(self, datasource: str) -> tuple[SemanticProposal, ...]:
        (records,) = await self._records.read([_set(datasource)])
        return tuple(map(_proposal, records.records))

    async def find(self, datasource: str, proposal_id: str) -> SemanticProposal | None:
        record_key = _key(datasource, proposal_id)
        record = (await self._records.find([record_key])).get(record_key)
        return _proposal(record) if record is not None else None

    async def settle(self, datasource: str, settled: SemanticProposal) -> bool:
        record_key = _key(datasource, settled.proposal_id)
        for _ in range(_TRIES):
            record = (await self._records.find([record_key])).get(record_key)
            if record is None or _proposal(record).state != "open":
                return False

            change = RecordChange(record_key, record.text, _record(datasource, settled))
            if await self._records.apply([change], RecordLimits()) == "done":
                return True

        raise StoreUnavailable(BUSY)


def _key(datasource: str, proposal_id: str) -> bytes:
    return key("semantic_proposal", datasource, proposal_id)


def _set(datasource: str) -> bytes:
    return key("semantic_proposals", datasource)


def _record(datasource: str, proposal: SemanticProposal) -> Record:
    created = datetime.fromisoformat(proposal.created_at)
    position = int(created.timestamp() * 1_000_000)
    record_key = _key(datasource, proposal.proposal_id)
    return Record(record_key, to_text(asdict(proposal)), {_set(datasource): position})


def _proposal(record: StoredRecord) -> SemanticProposal:
    """Return the proposal, without fields that a newer version may have added."""
    values: Mapping[str, Any] = plain_from_text(record.text)
    names = {field.name for field in fields(SemanticProposal)}
    return SemanticProposal(**{name: values[name] for name in values.keys() & names})
