"""Files that people bring: drafts, tables, and what callers say of them."""

from typing import Annotated, Any, Literal

from pydantic import Field

from api.fields import (
    UNUSABLE,
    Checked,
    Flag,
    Identifier,
    ShortText,
    one_of,
    wrong,
)
from api.models.model_base import ReplyModel, Sometimes, Timestamp
from api.models.request_models import LangField, RequestFields
from common.text import Text
from files.loading.load_plan import LoadMode
from files.reading.delimited import DELIMITERS
from files.reading.encodings import ENCODINGS
from files.reading.value_forms import SQL_TYPES, ColumnType

_MOST_ROWS = 10_000  # above a header
_MOST_HEADER_ROWS = 10
_MOST_GROUPS = 50
_LONGEST_GROUP = 64  # characters
_COLUMN_TYPES = tuple(SQL_TYPES)


def _count(most: int) -> Checked:
    def check(field: str, value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
            return value

        raise wrong(field, f"0 到 {most} 的整数", f"a whole number from 0 to {most}")

    return Checked(check, {"type": "integer", "minimum": 0, "maximum": most})


def _groups(field: str, value: object) -> tuple[str, ...]:
    groups = value if isinstance(value, list) and len(value) <= _MOST_GROUPS else [None]
    if all(isinstance(group, str) and 0 < len(group) <= _LONGEST_GROUP for group in groups):
        return tuple(groups)

    raise wrong(field, "组名的列表", "a list of names of groups")


def _key(field: str, value: object) -> str:
    if isinstance(value, str) and len(value) <= 256 and not UNUSABLE.search(value):
        return value

    raise wrong(field, "一列的名称，或空字符串", "the name of a column, or an empty string")


class CorrectedColumn(RequestFields):
    missing = {"place": Text("缺少 place：哪一列。", "place is missing: which column.")}

    place: Annotated[int, _count(10_000)] = Field(description="As in the draft")
    name: ShortText | None = Field(None, description="In SQL")
    type: Annotated[str, one_of(*_COLUMN_TYPES)] | None = None
    include: Flag | None = None


class NamedReference(RequestFields):
    missing = {
        name: Text(f"缺少 {name}。", f"{name} is missing.") for name in ("column", "table", "key")
    }

    column: ShortText
    table: ShortText
    key: ShortText


def _each(model: type[RequestFields], most: int) -> Checked:
    """Return a field that is a list of objects of a model."""

    def check(field: str, value: object) -> tuple[dict[str, Any], ...]:
        if not isinstance(value, list) or len(value) > most:
            raise wrong(field, f"至多 {most} 个对象的列表", f"a list of at most {most} objects")

        references = []
        for one in value:
            if not isinstance(one, dict):
                raise wrong(field, "对象的列表", "a list of objects")

            references.append(model.read(one).model_dump(exclude_unset=True))

        return tuple(references)

    return Checked(check, {"type": "array", "items": {"type": "object"}, "maxItems": most})


class CorrectedTable(RequestFields):
    missing = {"sheet": Text("缺少 sheet：哪一张表。", "sheet is missing: which table.")}

    sheet: Identifier = Field(description="As in the draft")
    include: Flag | None = None
    name: ShortText | None = Field(None, description="Of the table, in SQL")
    encoding: Annotated[str, one_of(*ENCODINGS)] | None = None
    delimiter: Annotated[str, one_of(*DELIMITERS)] | None = None
    header_row: Annotated[int, _count(_MOST_ROWS)] | None = Field(
        None, description="The first row of the header; 0: there is none"
    )
    header_rows: Annotated[int, _count(_MOST_HEADER_ROWS)] | None = None
    keeps_totals: Flag | None = Field(
        None, description="Whether a last row that sums the others is loaded"
    )
    key: Annotated[str, Checked(_key, {"type": "string"})] | None = Field(
        None, description="The column that is the key; empty: none"
    )
    references: Annotated[tuple[dict[str, Any], ...], _each(NamedReference, 100)] | None = None
    columns: Annotated[tuple[dict[str, Any], ...], _each(CorrectedColumn, 1000)] | None = None


class FileChangesBody(RequestFields):
    tables: Annotated[tuple[dict[str, Any], ...], _each(CorrectedTable, 200)] | None = Field(
        None, description="Of a draft: corrections, each of the table of one `sheet`"
    )
    groups: (
        Annotated[tuple[str, ...], Checked(_groups, {"type": "array", "items": {"type": "string"}})]
        | None
    ) = Field(None, description="Of a loaded file: your groups that may ask its tables")
    user_id: ShortText | None = None
    lang: LangField | None = None


class ConfirmFileBody(RequestFields):
    tables: Annotated[tuple[dict[str, Any], ...], _each(CorrectedTable, 200)] | None = Field(
        None, description="Last corrections"
    )
    user_id: ShortText | None = None
    lang: LangField | None = None


class GuessModel(ReplyModel):
    value: str
    reason: str


class RowProblemModel(ReplyModel):
    text: str
    count: int = Field(ge=0)
    rows: list[int] = Field(description="Numbers of the first ones, as in the file")


class DraftColumnModel(ReplyModel):
    place: int
    title: str = Field(description="Its name as written")
    name: str = Field(description="Its name in SQL")
    type: ColumnType
    include: bool
    reason: str = Field(description="Why it is taken to be of that type")
    examples: list[str]
    empty: int
    is_unique: bool
    problems: list[RowProblemModel]


class FileReferenceModel(ReplyModel):
    column: str
    table: str
    key: str


class ChangedTypeModel(ReplyModel):
    column: str
    before: ColumnType
    after: ColumnType


class DifferencesModel(ReplyModel):
    table: str
    rows_before: int
    rows_after: int
    new_columns: list[str]
    missing_columns: list[str]
    changed_types: list[ChangedTypeModel]


class DraftTableModel(ReplyModel):
    sheet: str = Field(description="Tells it from the other tables of the file")
    title: str
    name: str = Field(description="In SQL")
    include: bool
    rows: int
    encoding: GuessModel | None = Field(description="null for a workbook's sheet")
    delimiter: GuessModel | None
    header_row: int = Field(description="0: there is none")
    header_rows: int
    header_reason: str
    first_row: int = Field(description="Of the data")
    titles: list[str] = Field(description="What stands above the header")
    keeps_totals: bool
    columns: list[DraftColumnModel]
    key: str | None
    references: list[FileReferenceModel]
    problems: list[RowProblemModel]
    differences: DifferencesModel | None = Field(
        description="From the table that it replaces or is appended to; null: it is a new one"
    )


class FileDraftModel(ReplyModel):
    id: str
    status: Literal["draft"]
    name: str
    is_own: bool
    way: LoadMode
    changes: str | None = Field(description="The id of the file that it changes")
    created_at: Timestamp
    tables: list[DraftTableModel]


class FileColumnModel(ReplyModel):
    name: str
    title: str
    type: ColumnType


class FileTableModel(ReplyModel):
    name: str
    title: str
    sql_name: str = Field(description="Its name as a statement writes it")
    rows: int
    bytes: int
    columns: list[FileColumnModel]
    key: str | None
    references: list[FileReferenceModel]


class LeftOutModel(ReplyModel):
    column: str
    count: int
    rows: list[int]


class LoadedTableModel(ReplyModel):
    table: str
    rows: int
    added: int
    left_out: list[LeftOutModel] = Field(
        description="Values that were left empty because the type does not hold them"
    )
    notes: list[str] = Field(description="What could not be done: a key, a reference")


class FileModel(ReplyModel):
    id: str
    status: Literal["ready"]
    name: str
    is_own: bool
    groups: list[str] = Field(description="That may ask it; empty for who did not bring it")
    created_at: Timestamp
    changed_at: Timestamp
    tables: list[FileTableModel]
    loaded: Sometimes[list[LoadedTableModel]] = Field(
        None, description="After `confirm`: what became of each table"
    )


class FileQuotaModel(ReplyModel):
    bytes: int
    max_bytes: int
    tables: int
    max_tables: int


class FileListModel(ReplyModel):
    files: list[FileModel]
    drafts: list[FileDraftModel]
    quota: FileQuotaModel


class DeletedFileModel(ReplyModel):
    id: str
