"""The assumptions of a draft with the rows and the amount that each decides about."""

from collections.abc import Iterable, Mapping

from common.meanings import TableKey
from etl.evidence.proof import DraftProof
from etl.meaning.bound import BoundIntent
from etl.meaning.decisions import DecidedFigures, Decision, columns_of_decision
from etl.schemas.requirement import AnalysisResult, Assumption
from etl.scratch.scratch_values import as_text


def columns_counted(
    decisions: Iterable[Decision], bound: BoundIntent
) -> Mapping[TableKey, list[str]]:
    """Return the columns of each table of the datasource by which rows are counted."""
    tables = {source.name: source.table.key for source in bound.sources}
    counted: dict[TableKey, list[str]] = {}
    for decision in decisions:
        for column in columns_of_decision(decision):
            if column.source in tables:
                counted.setdefault(tables[column.source], []).append(column.name)

    return counted


def with_figures(analysis: AnalysisResult, proof: DraftProof) -> AnalysisResult:
    """Return the analysis with what was counted for its assumptions."""
    assumptions = []
    for assumption in analysis.assumptions:
        figures = proof.decided.get(assumption.id)
        assumptions.append(
            assumption if figures is None else _with_counts(assumption, figures, proof)
        )

    return analysis.model_copy(update={"assumptions": assumptions})


def _with_counts(assumption: Assumption, figures: DecidedFigures, proof: DraftProof) -> Assumption:
    amount = None if figures.amount is None else as_text(figures.amount)
    of = "whole" if proof.is_whole else "sample"
    return assumption.model_copy(update={"rows": figures.rows, "amount": amount, "of": of})
