"""The README of an artefact, in Chinese or English."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from common.text import Lang, Text
from etl.meaning.bound import BoundIntent
from etl.planning.draft_model import Draft
from etl.planning.draft_test import DraftTest
from etl.rendering.assumption_figures import figures_of
from etl.rendering.dbt_project import variables
from etl.rendering.readme_texts import (
    ALTERNATIVES,
    ASSUMPTIONS,
    CLARIFICATIONS,
    COLUMNS,
    COLUMNS_HEAD,
    DECIDED,
    GRAIN,
    HOW_TO_RUN,
    LEDGER,
    LEDGER_HEAD,
    LEDGER_SOURCE,
    MERGE,
    MUTANTS,
    NO_GRAIN,
    NONE,
    NOT_PROVEN,
    NOT_RUN,
    NOT_RUN_BEYOND,
    RISKS,
    RUN_DBT,
    RUN_PLAIN,
    SAMPLED,
    STATUS,
    SURVIVORS,
    TESTS,
    TESTS_HEAD,
    VARIABLES,
    WHAT,
    WRITTEN,
)
from etl.schemas.evidence import MutantReport, TestReport
from etl.schemas.requirement import AnalysisResult

_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")
_BREAKS = re.compile(r"\s+")


def plain_markdown(text: object) -> str:
    """Return a text on one line, as Markdown that shows it as it is."""
    return _MARKS.sub(r"\\\1", _BREAKS.sub(" ", str(text))).strip()


def _code(name: str) -> str:
    """Return a name as code; one that code can't hold as text."""
    is_plain = name.isprintable() and not set(name) & {"`", "|"}
    if is_plain:
        return f"`{name}`"

    return plain_markdown(name)


def readme_text(
    draft: Draft,
    bound: BoundIntent,
    analysis: AnalysisResult,
    tests: Sequence[DraftTest],
    report: TestReport | None,
    clarifications: Sequence[Mapping[str, Any]],
    lang: Lang,
) -> str:
    """Return what the draft builds, what was assumed, what is shown, and how it is run."""
    readme = _Readme(draft, bound, analysis, tests, report, lang)
    parts = [
        readme.what(),
        readme.assumptions(),
        readme.risks(),
        readme.clarifications(clarifications),
        readme.ledger(),
        readme.tests(),
        readme.how_to_run(),
        readme.not_proven(),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


class _Readme:
    def __init__(
        self,
        draft: Draft,
        bound: BoundIntent,
        analysis: AnalysisResult,
        tests: Sequence[DraftTest],
        report: TestReport | None,
        lang: Lang,
    ) -> None:
        self._draft = draft
        self._bound = bound
        self._analysis = analysis
        self._tests = tests
        self._report = report
        self._lang = lang

    def _say(self, text: Text, **values: object) -> str:
        return text.to(self._lang).format(**values)

    def _head(self, text: Text) -> list[str]:
        return ["", f"## {self._say(text)}", ""]

    def _table(self, head: Sequence[Text], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        yield "| " + " | ".join(self._say(one) for one in head) + " |"
        yield "|" + "---|" * len(head)
        for row in rows:
            yield "| " + " | ".join(row) + " |"

    def what(self) -> Iterator[str]:
        target = self._draft.target
        yield f"# {plain_markdown(target.relation)}"
        yield ""
        yield plain_markdown(self._bound.summary)
        yield ""
        sources = ", ".join(
            _code(f"{source.table.schema}.{source.table.name}") for source in self._bound.sources
        )
        yield self._say(
            WHAT, relation=_code(target.relation), kind=target.node.materialization, sources=sources
        )
        grain = ", ".join(_code(name) for name in target.node.grain)
        yield ""
        yield self._say(GRAIN, grain=grain) if grain else self._say(NO_GRAIN)
        if target.merge_key:
            yield ""
            yield self._say(MERGE, key=_code(target.merge_key))

        yield from self._head(COLUMNS)
        rows = []
        for column in target.node.columns:
            description = plain_markdown(column.description or "")
            rows.append((_code(column.name), _code(column.type), column.role, description))

        yield from self._table(COLUMNS_HEAD, rows)

    def assumptions(self) -> Iterator[str]:
        yield from self._head(ASSUMPTIONS)
        for assumption in self._analysis.assumptions:
            decided = self._say(DECIDED[assumption.decided_by])
            figures = figures_of(assumption, self._lang)
            notes = "; ".join((decided, figures)) if figures else decided
            yield f"- {plain_markdown(assumption.text)} ({notes})"

        if not self._analysis.assumptions:
            yield self._say(NONE)

    def risks(self) -> Iterator[str]:
        plan = self._draft.plan
        yield from self._list_section(RISKS, [risk.text for risk in plan.risks])
        yield from self._list_section(ALTERNATIVES, plan.alternatives)

    def _list_section(self, head: Text, texts: Sequence[str]) -> Iterator[str]:
        if not texts:
            return

        yield from self._head(head)
        for text in texts:
            yield f"- {plain_markdown(text)}"

    def clarifications(self, asked: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        yield from self._head(CLARIFICATIONS)
        for one in asked:
            prompt, answer = one.get("prompt", ""), one.get("answer", "")
            yield f"- {plain_markdown(prompt)} → {plain_markdown(answer)}"

        if not asked:
            yield self._say(NONE)

    def ledger(self) -> Iterator[str]:
        yield from self._head(LEDGER)
        if self._report is None or not self._report.ledger:
            yield self._say(NOT_RUN)
            return

        rows = []
        for one in self._report.ledger:
            # What is said of a table before any operation has the number 0.
            step = str(one.operation) if one.operation else self._say(LEDGER_SOURCE)
            counts = (
                *(one.rows_in, one.rows_out, one.filtered),
                *(one.unmatched, one.repeated, one.null_keys),
            )
            rows.append((step, _code(one.table), *map(str, counts)))

        yield from self._table(LEDGER_HEAD, rows)

    def tests(self) -> Iterator[str]:
        yield from self._head(TESTS)
        if self._report is None or self._report.status == "not_run":
            yield self._say(NOT_RUN)
            yield from self._tests_section()
            return

        yield self._say(STATUS, status=self._report.status, by=self._report.built_by or "-")
        yield ""
        rows = []
        for test in self._report.tests:
            row = (_code(test.id), test.kind, _code(test.node), test.status, str(test.failures))
            rows.append(row)

        yield from self._table(TESTS_HEAD, rows)
        if self._report.mutants is not None:
            yield from self._mutants(self._report.mutants)

    def _mutants(self, mutants: MutantReport) -> Iterator[str]:
        yield ""
        yield self._say(
            MUTANTS,
            tried=mutants.tried,
            caught=mutants.caught,
            equivalent=mutants.equivalent,
            survivors=len(mutants.survivors),
        )
        for survivor in mutants.survivors:
            named = f"{_code(survivor.node)} {plain_markdown(survivor.operator)}"
            yield f"- {self._say(SURVIVORS)} {named}: {plain_markdown(survivor.detail)}"

    def _tests_section(self) -> Iterator[str]:
        if self._tests:
            yield ""
            yield self._say(WRITTEN, count=len(self._tests))

    def how_to_run(self) -> Iterator[str]:
        yield from self._head(HOW_TO_RUN)
        yield self._say(RUN_DBT)
        yield from ("", "```console", *_DBT_COMMANDS, "```", "")
        yield self._say(RUN_PLAIN)
        yield from ("", "```console", *_PSQL_COMMANDS, "```")
        days = variables(self._draft)
        if days:
            yield ""
            yield self._say(VARIABLES)
            for name, default in days.items():
                yield f"- `{name}`: {default}"

    def not_proven(self) -> Iterator[str]:
        yield from self._head(NOT_PROVEN)
        for line in self._say(NOT_RUN_BEYOND).split("\n"):
            yield f"- {line}"

        yield from self._sampled()

    def _sampled(self) -> Iterator[str]:
        """Yield the tables of which only a part was used."""
        if self._report is None or self._report.scratch is None:
            return

        for name, sample in self._report.scratch.tables.items():
            if sample.is_whole:
                continue

            of = "?" if sample.of is None else sample.of
            line = self._say(SAMPLED, table=_code(name), rows=sample.rows, of=of)
            yield f"- {line}"


_DBT_COMMANDS = (
    "$ pip install 'dbt-core==1.11.*' 'dbt-postgres==1.11.*'",
    "$ export ETL_HOST=localhost ETL_PORT=5432 ETL_USER=me ETL_PASSWORD= "
    "ETL_DBNAME=db ETL_SCHEMA=etl",
    "$ dbt build --profiles-dir .",
)
_PSQL_COMMANDS = (
    "$ psql -c 'CREATE SCHEMA IF NOT EXISTS etl'",
    "$ PGOPTIONS='-c search_path=etl' psql -f sql/build.sql",
    "$ PGOPTIONS='-c search_path=etl' sh -c 'for file in sql/tests/*.sql; do psql -f $file; done'",
)
