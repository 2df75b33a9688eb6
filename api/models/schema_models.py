"""The tables of the datasource."""

from typing import Literal

from pydantic import Field

from api.models.model_base import ReplyModel, Sometimes
from common.values import RelationKind


class MeaningNamesModel(ReplyModel):
    """The names that people use, by language: the display name first, its synonyms after it"""

    zh: list[str]
    en: list[str]


class MeaningTextModel(ReplyModel):
    """The same text in each language"""

    zh: str
    en: str


class TableReferenceModel(ReplyModel):
    schema_: str = Field(description="Of the other table", alias="schema")
    table: str = Field(description="The other table")
    columns: list[str] = Field(description="Of the table that refers")
    target_columns: list[str] = Field(description="Of the table that is referred to")


class TableMeaningModel(ReplyModel):
    """The entry of the semantic file; null: there is none"""

    names: MeaningNamesModel
    description: MeaningTextModel | None
    label_columns: list[str] = Field(description="What names one of its rows to a person")
    date_column: str | None = Field(description="What periods are about")
    filter: str | None = Field(
        description="An SQL condition that holds unless a question says otherwise"
    )
    joins: list[TableReferenceModel] = Field(
        description="The ways to take to other tables when there are several"
    )


class SchemaReasonModel(ReplyModel):
    kind: Literal[
        "name",
        "comment",
        "column",
        "column_comment",
        "value",
        "meaning",
        "column_meaning",
        "metric",
        "example",
        "similar",
        "refers_to",
        "referred_to_by",
    ] = Field(
        description="meaning, column_meaning and metric: what the semantic file says; example: "
        "an example of a similar question reads the table; similar: an embedding model takes it "
        "to mean what the question means"
    )
    words: Sometimes[list[str]] = Field(
        None,
        description="Words of the question, singular and in lower case; of Chinese, pairs of "
        "characters",
    )
    text: Sometimes[str] = Field(
        None, description="The name, comment, value, meaning or example's question that says them"
    )
    column: str | None = Field(
        None, description="Whose name, comment or value it is; null: the table's"
    )
    is_literal: Sometimes[bool] = Field(
        None, description="false: as words of the same stem, abbreviated, or in other words"
    )
    schema_: Sometimes[str] = Field(None, description="Of the other table", alias="schema")
    table: Sometimes[str] = Field(
        None, description="The other table, which this one refers to or is referred to by"
    )
    is_declared: Sometimes[bool] = Field(
        None, description="Whether a foreign key says so; else names of columns do"
    )


class FoundTableModel(ReplyModel):
    schema_: str = Field(alias="schema")
    name: str
    kind: RelationKind
    comment: str | None
    row_estimate: int | None = Field(description="The planner's count; null: not known")
    column_count: int
    meaning: TableMeaningModel | None
    score: float = Field(description="Only means something beside those of the same answer")
    reasons: list[SchemaReasonModel] = Field(
        description="What says words of the question, then the better tables that led to this one"
    )


class SchemaSearchModel(ReplyModel):
    tables: list[FoundTableModel] = Field(description="The most relevant first")
    table_count: int = Field(description="All that the caller may read")


class ListedTableModel(ReplyModel):
    schema_: str = Field(alias="schema")
    name: str
    kind: RelationKind
    comment: str | None
    row_estimate: int | None = Field(description="The planner's count; null: not known")
    column_count: int
    meaning: TableMeaningModel | None


class TablePageModel(ReplyModel):
    tables: list[ListedTableModel]
    table_count: int = Field(description="On all pages")
    next_cursor: str | None = Field(description="null: there is no further page")


class ColumnMeaningValueModel(ReplyModel):
    value: str
    names: MeaningNamesModel


class ReloadedModel(ReplyModel):
    table_count: int = Field(description="Tables that the caller may see now")


class ColumnMeaningModel(ReplyModel):
    """The entry of the semantic file; null: there is none"""

    names: MeaningNamesModel
    description: MeaningTextModel | None
    unit: MeaningTextModel | None
    values: list[ColumnMeaningValueModel] = Field(
        description="Stored values and what people call them"
    )


class DescribedColumnModel(ReplyModel):
    name: str
    type: str = Field(description="As PostgreSQL writes it")
    nullable: bool
    comment: str | None
    is_personal: bool = Field(
        description="Whether its values are taken for somebody's, and not shown"
    )
    allowed: list[str] = Field(
        description="The only values it may have: an enum's, or what a CHECK lists; empty: "
        "nothing says so"
    )
    values: list[str] = Field(
        description="Some that are stored; empty: none is known or may be shown"
    )
    values_are_all: bool
    period: list[str] | None = Field(description="First and last day")
    meaning: ColumnMeaningModel | None


class MetricModel(ReplyModel):
    name: str = Field(description="Identifies it in the semantic file")
    names: MeaningNamesModel
    description: MeaningTextModel | None
    unit: MeaningTextModel | None
    expression: str = Field(description="An SQL aggregate over the table's columns")
    filter: str | None = Field(
        description="An SQL condition that its rows fulfil, beside the table's filter"
    )
    date_column: str | None
    grain: list[str] = Field(description="Columns that it is meaningful by; empty: any")


class DescribedTableModel(ReplyModel):
    schema_: str = Field(alias="schema")
    name: str
    kind: RelationKind
    comment: str | None
    row_estimate: int | None = Field(description="The planner's count; null: not known")
    column_count: int
    meaning: TableMeaningModel | None
    columns: list[DescribedColumnModel]
    primary_key: list[str]
    unique_keys: list[list[str]]
    foreign_keys: list[TableReferenceModel] = Field(description="What it refers to")
    referenced_by: list[TableReferenceModel] = Field(description="What refers to it")
    metrics: list[MetricModel] = Field(
        description="Figures over its rows that the semantic file defines"
    )
