"""Lists the parts of PostgreSQL's grammar that a query may consist of, and names statements that
are no queries.

A tree is JSON. A node is a dict with one capitalised key, its type, and a dict of fields as its
value; a field whose type is fixed holds the fields of its node directly. Every key in a tree must
be listed here, so that what a newer grammar adds is refused until someone has looked at it.
"""

import re
from collections.abc import Mapping
from typing import Any

from postgast import scan

from common.errors import InvalidSql
from common.word_files import words

QUERY_NODES = words(
    # queries and what they read from
    "SelectStmt WithClause CommonTableExpr CTESearchClause CTECycleClause RangeVar "
    "RangeSubselect RangeFunction "
    "RangeTableSample RangeTableFunc RangeTableFuncCol JoinExpr Alias ColumnDef ResTarget SortBy "
    "GroupingSet WindowDef "
    # expressions
    "A_Expr BoolExpr SubLink ColumnRef A_Star A_Const A_ArrayExpr A_Indices A_Indirection "
    "ParamRef FuncCall "
    "NamedArgExpr TypeCast TypeName CollateClause CaseExpr CaseWhen CoalesceExpr MinMaxExpr "
    "NullTest BooleanTest "
    "RowExpr GroupingFunc SQLValueFunction SetToDefault List String Integer Float Boolean "
    "BitString "
    # XML and JSON
    "XmlExpr XmlSerialize JsonTable JsonTableColumn JsonTablePathSpec JsonFuncExpr JsonValueExpr "
    "JsonFormat JsonOutput "
    "JsonReturning JsonBehavior JsonArgument JsonParseExpr JsonScalarExpr JsonSerializeExpr "
    "JsonObjectConstructor "
    "JsonArrayConstructor JsonArrayQueryConstructor JsonAggConstructor JsonObjectAgg "
    "JsonArrayAgg JsonKeyValue "
    "JsonIsPredicate"
)

# Fields that hold further nodes; scalars (names, kinds, positions) need no listing.
QUERY_FIELDS = words(
    "targetList fromClause whereClause groupClause havingClause windowClause valuesLists "
    "sortClause limitOffset "
    "limitCount distinctClause withClause larg rarg ctes ctequery aliascolnames search_clause "
    "cycle_clause "
    "search_col_list cycle_col_list cycle_mark_value cycle_mark_default alias colnames subquery "
    "functions coldeflist "
    "relation method args repeatable namespaces docexpr rowexpr columns colexpr coldefexpr quals "
    "usingClause "
    "join_using_alias val indirection node useOp content partitionClause orderClause startOffset "
    "endOffset "
    "name lexpr rexpr testexpr operName subselect fields ival fval sval bsval boolval elements "
    "lidx uidx arg "
    "funcname agg_order agg_filter over typeName names typmods arrayBounds collname expr result "
    "defresult items "
    "named_args xmloption context_item pathspec passing on_empty on_error string raw_expr "
    "formatted_expr format output "
    "returning path value key exprs query constructor func collClause number str"
)

# Words that became syntax in a version: an older server reads them as calls of a function of that
# name. Other new syntax (`IS JSON`, `AT LOCAL`, CYCLE, GROUP BY DISTINCT, `JOIN … USING (…) AS`, …)
# is an error in an older server.
SYNTAX_SINCE: Mapping[str, int] = {
    "normalize": 13,
    **dict.fromkeys(
        ("json_array", "json_arrayagg", "json_object", "json_objectagg", "system_user"), 16
    ),
    **dict.fromkeys(
        ("json", "json_exists", "json_query", "json_scalar", "json_serialize", "json_table"), 17
    ),
    **dict.fromkeys(("json_value", "merge_action"), 17),
}
# The nodes of such words; JsonFuncExpr says in its `op` which one it is.
_WORDS = {
    "JsonArrayConstructor": "json_array",
    "JsonArrayQueryConstructor": "json_array",
    "JsonArrayAgg": "json_arrayagg",
    "JsonObjectConstructor": "json_object",
    "JsonObjectAgg": "json_objectagg",
    "JsonParseExpr": "json",
    "JsonScalarExpr": "json_scalar",
    "JsonSerializeExpr": "json_serialize",
    "JsonTable": "json_table",
}
SYNTAX_NODES = frozenset((*_WORDS, "JsonFuncExpr"))
# A server older than this reads some numbers as a number and a name: `1_000` as `1 AS _000`, `0x1F`
# as `0 AS x1F`.
NUMBERS_SINCE = 16
_NUMBER_STARTS = frozenset("0123456789.")
_NEW_NUMBER = re.compile(r"0[xob]|\d_\d", re.IGNORECASE)


def refuse_new_numbers(text: str) -> None:
    """Return when every number in `text`, which our grammar accepts, is one for older servers too.

    Raises:
        InvalidSql: one is not; with the message of the first PostgreSQL that refused them.
    """
    if not _NEW_NUMBER.search(text):
        return

    data = text.encode("utf-8")
    for token in scan(text).tokens:
        word = data[token.start : token.end].decode("utf-8", "replace")
        is_number = word[:1] in _NUMBER_STARTS
        if not is_number:
            continue
        if not _NEW_NUMBER.search(word):
            continue

        before = data[: token.start].decode("utf-8", "replace")
        raise InvalidSql(
            "trailing junk after numeric literal",
            detail_zh="数字后面有多余的字符",
            sqlstate="42601",
            position=len(before) + 1,
        )


def syntax_word(kind: str, node: Mapping[str, Any]) -> str:
    """Return the word that a node of `SYNTAX_NODES` was written with, in lower case."""
    return _WORDS.get(kind) or str(node.get("op", "")).removesuffix("_OP").lower()


def place_of(node: Mapping[str, Any]) -> int:
    """Return the byte offset of a node of `SYNTAX_NODES`; 0 when the tree doesn't say."""
    place: int = node.get("location", node.get("constructor", {}).get("location", 0))
    return place


# Fields that must not occur. Values of scalar fields are not restricted: they change nothing but
# the result.
FORBIDDEN_FIELDS: Mapping[str, str] = {
    "intoClause": "SELECT INTO",
    "lockingClause": "locking clause",
}

_LOCKS = {
    "LCS_FORUPDATE": "FOR UPDATE",
    "LCS_FORNOKEYUPDATE": "FOR NO KEY UPDATE",
    "LCS_FORSHARE": "FOR SHARE",
    "LCS_FORKEYSHARE": "FOR KEY SHARE",
}

# What users call a statement, where its type's name does not say it.
_OPERATIONS = {
    "AlterSystemStmt": "ALTER SYSTEM",
    "CheckPointStmt": "CHECKPOINT",
    "ClosePortalStmt": "CLOSE",
    "ConstraintsSetStmt": "SET CONSTRAINTS",
    "CreateTableAsStmt": "CREATE TABLE AS",
    "CreatedbStmt": "CREATE DATABASE",
    "DeclareCursorStmt": "DECLARE CURSOR",
    "DefineStmt": "CREATE",
    "DropOwnedStmt": "DROP OWNED",
    "DropdbStmt": "DROP DATABASE",
    "ImportForeignSchemaStmt": "IMPORT FOREIGN SCHEMA",
    "IndexStmt": "CREATE INDEX",
    "LockStmt": "LOCK TABLE",
    "ReassignOwnedStmt": "REASSIGN OWNED",
    "RefreshMatViewStmt": "REFRESH MATERIALIZED VIEW",
    "RenameStmt": "ALTER",
    "ReplicaIdentityStmt": "ALTER",
    "RuleStmt": "CREATE RULE",
    "SecLabelStmt": "SECURITY LABEL",
    "VariableShowStmt": "SHOW",
    "ViewStmt": "CREATE VIEW",
}
# Statements of which a field tells which of two they are.
_OPERATIONS_BY_FLAG = {
    "VacuumStmt": ("is_vacuumcmd", "VACUUM", "ANALYZE"),
    "GrantStmt": ("is_grant", "GRANT", "REVOKE"),
    "GrantRoleStmt": ("is_grant", "GRANT", "REVOKE"),
    "FetchStmt": ("ismove", "MOVE", "FETCH"),
}
_FIRST_WORD = re.compile(r"[A-Z][a-z]*")


def operation_of(kind: str, node: Mapping[str, Any]) -> str:
    """Return what users call a statement of node type `kind`: `DELETE`, `COMMIT`, …"""
    if kind == "SelectStmt":
        return "SELECT"
    if kind == "TransactionStmt":
        return str(node.get("kind", "")).removeprefix("TRANS_STMT_").replace("_", " ")
    if kind == "VariableSetStmt":
        if "RESET" in str(node.get("kind")):
            return "RESET"

        return "SET"

    if kind in _OPERATIONS_BY_FLAG:
        flag, name, other_name = _OPERATIONS_BY_FLAG[kind]
        if node.get(flag):
            return name

        return other_name

    if kind in _OPERATIONS:
        return _OPERATIONS[kind]

    first = _FIRST_WORD.match(kind)
    if first:
        return first.group().upper()

    return kind


def lock_of(clauses: list[Any]) -> str:
    """Return what users call the first of a query's locking clauses."""
    clause = {}
    if clauses:
        clause = clauses[0].get("LockingClause", {})

    return _LOCKS.get(clause.get("strength", ""), "FOR UPDATE")
