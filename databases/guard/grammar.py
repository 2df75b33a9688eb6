"""Lists the parts of PostgreSQL's grammar that a query may consist of, and names statements that are no queries.

A tree is JSON. A node is a dict with one capitalised key, its type, and a dict of fields as its value; a field whose
type is fixed holds the fields of its node directly. Every key in a tree must be listed here, so that what a newer
grammar adds is refused until someone has looked at it.
"""

import re
from collections.abc import Mapping
from typing import Any

from databases.guard.facts import words

QUERY_NODES = words(
    # queries and what they read from
    "SelectStmt WithClause CommonTableExpr CTESearchClause CTECycleClause RangeVar RangeSubselect RangeFunction "
    "RangeTableSample RangeTableFunc RangeTableFuncCol JoinExpr Alias ColumnDef ResTarget SortBy GroupingSet WindowDef "
    # expressions
    "A_Expr BoolExpr SubLink ColumnRef A_Star A_Const A_ArrayExpr A_Indices A_Indirection ParamRef FuncCall "
    "NamedArgExpr TypeCast TypeName CollateClause CaseExpr CaseWhen CoalesceExpr MinMaxExpr NullTest BooleanTest "
    "RowExpr GroupingFunc SQLValueFunction SetToDefault List String Integer Float Boolean BitString "
    # XML and JSON
    "XmlExpr XmlSerialize JsonTable JsonTableColumn JsonTablePathSpec JsonFuncExpr JsonValueExpr JsonFormat JsonOutput "
    "JsonReturning JsonBehavior JsonArgument JsonParseExpr JsonScalarExpr JsonSerializeExpr JsonObjectConstructor "
    "JsonArrayConstructor JsonArrayQueryConstructor JsonAggConstructor JsonObjectAgg JsonArrayAgg JsonKeyValue "
    "JsonIsPredicate"
)

# Fields that hold further nodes; scalars (names, kinds, positions) need no listing.
QUERY_FIELDS = words(
    "targetList fromClause whereClause groupClause havingClause windowClause valuesLists sortClause limitOffset "
    "limitCount distinctClause withClause larg rarg ctes ctequery aliascolnames search_clause cycle_clause "
    "search_col_list cycle_col_list cycle_mark_value cycle_mark_default alias colnames subquery functions coldeflist "
    "relation method args repeatable namespaces docexpr rowexpr columns colexpr coldefexpr quals usingClause "
    "join_using_alias val indirection node useOp content partitionClause orderClause startOffset endOffset "
    "name lexpr rexpr testexpr operName subselect fields ival fval sval bsval boolval elements lidx uidx arg "
    "funcname agg_order agg_filter over typeName names typmods arrayBounds collname expr result defresult items "
    "named_args xmloption context_item pathspec passing on_empty on_error string raw_expr formatted_expr format output "
    "returning path value key exprs query constructor func collClause number str"
)

# Words that became syntax in a version: an older server reads them as calls of a function of that name. Other new
# syntax (`IS JSON`, `AT LOCAL`, CYCLE, GROUP BY DISTINCT, `JOIN … USING (…) AS`, …) is an error in an older server.
SYNTAX_SINCE: Mapping[str, int] = {
    "normalize": 13,
    **dict.fromkeys(("json_array", "json_arrayagg", "json_object", "json_objectagg", "system_user"), 16),
    **dict.fromkeys(("json", "json_exists", "json_query", "json_scalar", "json_serialize", "json_table"), 17),
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
# A server older than this reads `1_000`, `0x1F`, `0o7` and `0b1` as a number and a name.
NUMBERS_SINCE = 16


def syntax_word(kind: str, node: Mapping[str, Any]) -> str:
    """The word that a node of `SYNTAX_NODES` was written with, in lower case."""
    return _WORDS.get(kind) or str(node.get("op", "")).removesuffix("_OP").lower()


def place_of(node: Mapping[str, Any]) -> int:
    """Where a node of `SYNTAX_NODES` begins, as a byte offset; 0 when the tree doesn't say."""
    place: int = node.get("location", node.get("constructor", {}).get("location", 0))
    return place


# Fields that must not occur. Values of scalar fields are not restricted: they change nothing but the result.
FORBIDDEN_FIELDS: Mapping[str, str] = {"intoClause": "SELECT INTO", "lockingClause": "locking clause"}

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
_FIRST_WORD = re.compile(r"[A-Z][a-z]*")


def operation_of(kind: str, node: Mapping[str, Any]) -> str:
    """What users call the statement of node type `kind`: `DELETE`, `CREATE TABLE AS`, `COMMIT`, …"""
    if kind == "SelectStmt":
        return "SELECT"
    if kind == "TransactionStmt":
        return str(node.get("kind", "")).removeprefix("TRANS_STMT_").replace("_", " ")
    if kind == "VariableSetStmt":
        return "RESET" if "RESET" in str(node.get("kind")) else "SET"
    if kind == "VacuumStmt":
        return "VACUUM" if node.get("is_vacuumcmd") else "ANALYZE"
    if kind in ("GrantStmt", "GrantRoleStmt"):
        return "GRANT" if node.get("is_grant") else "REVOKE"
    if kind == "FetchStmt":
        return "MOVE" if node.get("ismove") else "FETCH"
    first = _FIRST_WORD.match(kind)
    return _OPERATIONS.get(kind) or (first.group().upper() if first else kind)


def lock_of(clauses: list[Any]) -> str:
    """What users call the first of a query's locking clauses."""
    clause = clauses[0].get("LockingClause", {}) if clauses else {}
    return _LOCKS.get(clause.get("strength", ""), "FOR UPDATE")
