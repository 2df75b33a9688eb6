"""What a question asks for as far as it is known from its parts, and what all composers need of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from common.meanings import TableKey
from rules.query.query import ColumnRef, Dimension, Figure, Order
from rules.query.refusals import several_people
from rules.reading.parts import Named, Parts
from rules.reading.words import Question
from rules.schema.joins import is_default
from rules.schema.links import Link
from rules.words import WORDS

_KEY_WORDS = WORDS.found("columns.said.keys")


@dataclass(frozen=True)
class Asked:
    """A question with the parts of one reading; `about` is the table that a question before it was about."""

    question: Question
    parts: Parts
    about: TableKey | None = None

    def says(self, flag: str) -> bool:
        """Whether the question has this wish."""
        return flag in self.parts.flags

    @cached_property
    def tables(self) -> tuple[Named, ...]:
        """The tables that are named by themselves, in order."""
        return tuple(one for one in self.parts.tables if one.role in ("", "asked", "shared"))

    @cached_property
    def owners(self) -> tuple[Named, ...]:
        """The tables that only say whose column or kind is meant."""
        return tuple(one for one in self.parts.tables if one.role == "owner")

    @cached_property
    def head(self) -> TableKey | None:
        """The table whose rows answer: the asked one, else the last one in Chinese and the first in English."""
        if self.about is not None:
            return self.about
        asked = [one for one in self.tables if one.role == "asked"]
        named = asked or self.tables or self.owners
        if not named:
            return self.person(self.events or self.spoken) if self.parts.rankings or not self.parts.groups else None
        named = tuple(sorted(named, key=lambda one: one.at))
        if asked:
            return named[0].link.table
        return named[-1 if self.question.is_chinese else 0].link.table

    def person(self, tables: Iterable[TableKey]) -> TableKey | None:
        """The people that "who placed the most orders" asks for: the nearest that rows of the tables belong to.

        Raises:
            Refusal: it may be several kinds of people.
        """
        if not self.says("person"):
            return None
        for table in tables:
            above = self.question.graph.above(table)
            people = sorted((steps, key) for key, steps in above.items() if self.question.facts(key).is_person)
            said = self.question.settled.among((key, None) for _, key in people)
            if said is not None:
                return said[0]
            if people and (len(people) == 1 or people[0][0] < people[1][0]):
                return people[0][1]
            if people and self.spoken:  # else it is asked first by which figure
                word = next(word.text for word in self.question.words if "which:person" in word.senses)
                raise several_people(word.split()[0], [key for _, key in people], self.question.lexicon)
        return None

    @cached_property
    def events(self) -> tuple[TableKey, ...]:
        """The tables of the events that verbs speak of: who bought something placed an order."""
        found = self.question.spoken_events()
        return tuple(key for key in found if not self.question.facts(key).is_entity)

    @cached_property
    def spoken(self) -> tuple[TableKey, ...]:
        """The tables of the figures and conditions."""
        parts = self.parts
        ranked = (one.figure or self.question.settled.figure for one in parts.rankings)
        figures = (*parts.figures, *parts.bare, *(one for one in ranked if one))
        found = [table_of(figure) for figure in figures]
        found += [one.column.table for one in parts.conditions]
        return tuple(key for key in found if key is not None)

    def is_attribute_listing(self) -> bool:
        """Whether the measures are columns of the thing that is grouped by, so that they are listed: `各店的租金`."""
        if len(self.parts.groups) != 1 or self.says("avg") or self.says("sum"):
            return False
        one = self.parts.groups[0].dimension
        own = all(figure.link is not None and figure.link.table == one.table for figure in self.parts.bare)
        return one.column is None and one.bucket is None and own and self.question.facts(one.table).is_entity

    # ------------------------------------------------------------------------------------------------------- columns

    def shown_names(self, dimension: Dimension) -> tuple[str, ...]:
        """The names of the columns that show a group."""
        return (dimension.column,) if dimension.column else self.question.facts(dimension.table).shown

    def all_columns(self, table: TableKey) -> list[str]:
        """The names of a table's columns that are of use to a reader."""
        facts = self.question.facts(table)
        names = [column.name for column in facts.table.columns if not facts.is_housekeeping(column)]
        return names or [column.name for column in facts.table.columns]

    def names_of(self, table: TableKey) -> list[ColumnRef]:
        """The columns that name a table's rows."""
        return [ColumnRef(table, name) for name in self.question.facts(table).display]

    def tie_break(self, table: TableKey) -> tuple[Order, ...]:
        """An order that puts rows of a table in the same order every time."""
        facts = self.question.facts(table)
        return tuple(
            Order(column=ColumnRef(table, name), descending=False) for name in (facts.key or facts.display)[:2]
        )

    def shown_column(self, link: Link, text: str) -> list[ColumnRef]:
        """The columns that show a column; a reference is shown by names, unless its number is asked for."""
        facts = self.question.facts(link.table)
        if link.column in facts.display and not link.spelling:
            return [ColumnRef(link.table, name) for name in facts.display]
        for edge in facts.edges:
            display = self.question.facts(edge.parent).display
            if edge.columns == (link.column,) and display and not is_key_said(text):
                via = link.column if edge.parent == link.table or not is_default(edge) else None
                return [ColumnRef(edge.parent, name, via) for name in display]
        return [ColumnRef(link.table, str(link.column), is_age=link.derived == "age")]


def table_of(figure: Figure) -> TableKey | None:
    """The table whose rows a figure is over."""
    return figure.link.table if figure.link is not None else figure.table


def is_key_said(text: str) -> bool:
    """Whether a word speaks of a number or key itself."""
    return bool(_KEY_WORDS.search(text))
