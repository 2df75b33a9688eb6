"""Binds the target of an intent: its names, its columns, how it is written."""

import hashlib
import re
from collections.abc import Sequence
from typing import get_args

from common.text import Text
from common.values import PeriodUnit
from etl.binding.binding_state import BindingState
from etl.binding.intent_checks import (
    CheckedOperation,
    check_name,
    fitting_name,
    lookback_days,
    require,
)
from etl.binding.result_binding import repeated_keys
from etl.binding.scope import IntentScope
from etl.meaning.bound import (
    BoundColumn,
    BoundKey,
    BoundTarget,
    Step,
    Watermark,
    WindowStep,
    aggregate_of,
)
from etl.meaning.decisions import NoRows, TargetRows
from etl.schemas.parameters import SinkParameters
from etl.schemas.requirement import IntentTarget, Layer, Materialization

_MODEL_LENGTH = 55
_NOT_IN_MODEL = re.compile(r"[^a-z0-9_]+")
_LATIN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BLANKS = re.compile(r"[\s\-]+")
_PERIOD_UNITS = get_args(PeriodUnit)
_RESERVED = "pg_"
_PATH_SIGNS = ("/", "\\", "..", "~", ":", "\0", "\n")


def relation_name(text: str) -> str:
    """Return a name as given; Latin letters in lower snake case, others unchanged."""
    parted = _LATIN_WORDS.sub("_", text.strip())
    return _BLANKS.sub("_", parted).lower()


def model_name(relation: str, parts: Sequence[str], computed: Sequence[str]) -> str:
    """Return the name of the node that builds a relation: `[a-z0-9_]`, the same every time.

    Args:
        parts: what a relation without such a name is made of: its layer, table and grain.
        computed: what names it, with a mark that tells it from others, where these say nothing.
    """
    plain = _plain(relation)
    if plain == relation and len(plain) <= _MODEL_LENGTH:
        return plain

    words = list(filter(None, map(_plain, parts)))
    has_names = not set(words[1:]) <= set(_PERIOD_UNITS)
    if not has_names:
        words += computed

    readable = "_".join(words)
    if has_names and len(readable) <= _MODEL_LENGTH:
        return readable

    mark = hashlib.sha256(relation.encode()).hexdigest()[:8]
    begin = readable[: _MODEL_LENGTH - len(mark) - 1].rstrip("_")
    return f"{begin}_{mark}"


def _plain(text: str) -> str:
    return _NOT_IN_MODEL.sub("_", text.lower()).strip("_")


class TargetBinding:
    """Binds the target of an intent, and its sink if it has one."""

    def __init__(
        self, state: BindingState, target: IntentTarget, operation: CheckedOperation | None
    ) -> None:
        self._scope = state.scope
        self._findings = state.findings
        self._catalog = state.catalog
        self._steps = state.steps
        self._base = state.tree.base
        self._target = target
        self._sink = SinkParameters()
        if operation is not None and isinstance(operation.parameters, SinkParameters):
            self._sink = operation.parameters

        self._order = None if operation is None else operation.order
        self._field = "intent.operations" if operation is None else operation.field

    def check(self) -> None:
        """Check what needs no result.

        Raises:
            NotBound: nothing may be written there.
            InvalidRequest: it is no name.
        """
        if self._target.table_name is not None:
            self._given_relation(self._target.table_name)

    def bind(self, materialization: Materialization | None) -> BoundTarget:
        """Return the bound target.

        Raises:
            NotBound
            InvalidRequest: parts of it don't go together.
        """
        layer = self._target.layer or _layer_of(self._steps)
        relation = self._relation(layer)
        columns = self._columns()
        return BoundTarget(
            relation=relation,
            model=model_name(relation, self._name_parts(layer), self._computed()),
            layer=layer,
            materialization=self._materialization(materialization),
            mode=self._sink.mode,
            columns=columns,
            unique_key=self._unique_key(columns),
            watermark=self._watermark(),
            has_surrogate_key=self._sink.surrogate_key,
            order=self._order,
        )

    # names

    def _relation(self, layer: Layer) -> str:
        if self._target.table_name is not None:
            return self._given_relation(self._target.table_name)

        name = self._default_name(layer)
        text = Text(f"目标表命名为 {name}。", f"The target is called {name}.")
        self._findings.assume("target_name", text, decides=NoRows())
        return name

    def _given_relation(self, name: str) -> str:
        self._check_allowed(name)
        relation = relation_name(name)
        field = "intent.data_target.table_name"
        require(relation != "", field, "需要一个表名。", "a name of a table is needed.")
        check_name(relation, field)
        return relation

    def _check_allowed(self, name: str) -> None:
        """Refuse paths, and schemas: where the target lies is decided where it is built."""
        self._check_plain(name)
        is_path = any(sign in name for sign in _PATH_SIGNS)
        schema, dot, own_name = name.rpartition(".")
        if not is_path and not dot:
            return

        reason = Text(
            f"不能写入 {name}：目标只能是一个表名，不能带模式或路径。",
            f"{name} can't be written: the target is a name of a table, without a schema or path.",
        )
        if schema in {table.schema for table in self._catalog.tables}:
            reason = Text(
                f"不能写入 {name}：{schema} 是数据源的模式，数据源只读。",
                f"{name} can't be written: {schema} is a schema of the datasource, which is only "
                f"read.",
            )

        suggestions = []
        suggestion = relation_name(own_name)
        if suggestion and not is_path:
            suggestions.append(suggestion)

        raise self._findings.refuse("sink_refused", reason, suggestions)

    def _check_plain(self, name: str) -> None:
        """Refuse names that PostgreSQL keeps for itself, or that programs write apart."""
        if '"' not in name and not relation_name(name).startswith(_RESERVED):
            return

        reason = Text(
            f"不能写入 {name}：表名不能含双引号，也不能以 {_RESERVED} 开头。",
            f"{name} can't be written: a name has no double quote, and does not begin with "
            f"{_RESERVED}.",
        )
        raise self._findings.refuse("sink_refused", reason, [])

    def _default_name(self, layer: Layer) -> str:
        name = relation_name("_".join(self._name_parts(layer)))
        return fitting_name(name).rstrip("_")

    def _computed(self) -> tuple[str, ...]:
        """Return the functions of the target's figures, each once."""
        aggregate = aggregate_of(self._steps)
        if aggregate is None:
            return ("rows",)

        functions = [measure.function for measure in aggregate.measures]
        return tuple(dict.fromkeys(functions))

    def _name_parts(self, layer: Layer) -> list[str]:
        """Return what tells the target from others: its layer, its base, what its rows are."""
        parts = [layer.lower(), _without_layer(self._base, layer)]
        for key in self._keys():
            parts.append(key.unit or key.name)

        return parts

    def _keys(self) -> tuple[BoundKey, ...]:
        """Return the keys of the aggregate, if there is one."""
        aggregate = aggregate_of(self._steps)
        if aggregate is None:
            return ()

        return aggregate.keys

    # columns

    def _columns(self) -> tuple[str, ...]:
        if self._sink.columns is None:
            return self._all_columns()

        names = self._result_names(self._sink.columns)
        target_columns = tuple(dict.fromkeys(names))
        self._assume_keys_left_out(target_columns)
        return target_columns

    def _all_columns(self) -> tuple[str, ...]:
        """Return the columns of the result, but those that joins make equal to another."""
        result = self._scope.result or {}
        # What an aggregate groups by tells its rows apart, also where a join went by it.
        if aggregate_of(self._steps) is not None:
            return tuple(result)

        repeated = repeated_keys(self._steps)
        all_names = []
        for name, one in result.items():
            if one.column not in repeated:
                all_names.append(name)

        return tuple(all_names)

    def _result_names(self, texts: Sequence[str]) -> tuple[str, ...]:
        names = []
        for text in texts:
            names.append(self._scope.result_name(text, self._order or 0))

        return tuple(names)

    def _assume_keys_left_out(self, target_columns: Sequence[str]) -> None:
        """Note where the target lacks a column of its grain, so that rows look alike."""
        for key in self._keys():
            if key.name not in target_columns:
                text = Text(
                    f"目标表不含分组列 {key.name}，每个分组仍各占一行。",
                    f"The target lacks {key.name}, by which its rows are grouped.",
                )
                self._findings.assume("key_left_out", text, decides=TargetRows())

    def _unique_key(self, columns: Sequence[str]) -> tuple[str, ...]:
        if self._sink.unique_key is not None:
            key = self._result_names(self._sink.unique_key)
        elif self._sink.mode == "merge":
            key = self._grain()
        else:
            return ()

        is_complete = len(key) > 0 and set(key).issubset(columns)
        require(
            is_complete,
            f"{self._field}.unique_key",
            "merge 需要 unique_key，且其列都在目标表中。",
            "merge needs a unique_key whose columns are all in the target.",
        )
        return key

    def _grain(self) -> tuple[str, ...]:
        """Return the columns of the result that tell its rows apart."""
        if aggregate_of(self._steps) is not None:
            return tuple(key.name for key in self._keys())

        return primary_key_names(self._scope, self._base)

    # how it is written

    def _materialization(self, asked: Materialization | None) -> Materialization:
        mode = self._sink.mode
        is_built_anew = mode == "replace"
        default: Materialization = "table" if is_built_anew else "incremental"
        chosen = asked or self._target.materialization or default
        part = "options" if asked is not None else "intent.data_target"
        if is_built_anew:
            require(
                chosen != "incremental",
                f"{part}.materialization",
                "incremental 需要 sink 的 mode 为 merge 或 append。",
                "the materialization incremental needs the mode merge or append.",
            )
        else:
            require(
                chosen == "incremental",
                f"{part}.materialization",
                f"{mode} 需要 materialization incremental，而不是 {chosen}。",
                f"{mode} needs the materialization incremental, not {chosen}.",
            )

        return chosen

    def _watermark(self) -> Watermark | None:
        watermark = self._sink.watermark
        if watermark is None:
            return None

        column = self._watermark_column(watermark.column)
        days = lookback_days(watermark.lookback, f"{self._field}.watermark.lookback")
        return Watermark(column, days)

    def _watermark_column(self, text: str) -> BoundColumn:
        """Return the source's column that a watermark means by `text`.

        A name of a grouping key or of a result's column stands for the column behind it.
        """
        for key in self._keys():
            if key.name == text:
                return key.column

        result = self._scope.result or {}
        if text in result:
            stored = result[text].column
            if stored is not None:
                return stored

        return self._scope.column(text, self._order or 0)


def _without_layer(name: str, layer: Layer) -> str:
    """Return a table's name without the layer with which the target's begins."""
    return name.lower().removeprefix(f"{layer.lower()}_")


def _layer_of(steps: Sequence[Step]) -> Layer:
    if aggregate_of(steps) is None:
        return "DWD"

    has_window = any(isinstance(step, WindowStep) for step in steps)
    return "ADS" if has_window else "DWS"


def primary_key_names(scope: IntentScope, source: str) -> tuple[str, ...]:
    """Return the result's names of the columns of a source's primary key.

    Empty when it has none, or not all of it is there.
    """
    result = scope.result or {}
    names = {one.column: name for name, one in result.items()}
    key_names = []
    for column in scope.sources[source].table.primary_key:
        name = names.get(BoundColumn(source, column))
        if name is None:
            return ()

        key_names.append(name)

    return tuple(key_names)
