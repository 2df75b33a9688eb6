"""The file of row rules: every mistake is named with its line, and no text makes reading it fail
otherwise.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.actor import NOBODY, Actor, attributes_of
from guard.row_rules import OPEN, RowRules, RowRulesError
from guard.row_rules.rule_file import RuleFile, read_text
from tests.support.cases import all_cases

FILE = """
tables:
  public.orders:
    - groups: [clerks]
      rows: region = ANY (:groups) AND owner = :user_id
      masks: {phone: "left(phone, 3) || '****'", cost: null}
    - groups: everyone
      rows: is_public
    - groups: [auditors]
      rows: all
  '"a.b".c': []
open:
  views: [public.totals]
  functions: [public.rate]
"""

MISTAKES = {
    "tables: []": "1: tables must be a mapping",
    "{}": "1: the file has no tables",
    "tables: {}\ntabels: {}": "2: the file has no key 'tabels': there are tables, open",
    "tables:\n  orders: []": "2: 'orders' is no name with its schema: write public.orders",
    "tables:\n  a.b.c: []": "2: 'a.b.c' is no name",
    "tables:\n  a.*: []": "2: 'a.*' is no name",
    "tables:\n  a.b: {}": "2: a.b must be a list of grants",
    'tables:\n  a.b: []\n  "\\"a\\".b": []': "3: a.b stands in line 2 already",
    "tables: {}\nopen: {views: [v]}": "2: 'v' is no name with its schema",
    "tables: {}\nopen: {functions: f.g}": "2: open.functions must be a list of texts",
    "tables: {}\nopen: {tables: []}": "2: open has no key 'tables': there are views, functions",
    "tables: {}\ntables: {}": "2: the key 'tables' stands here twice",
    "tables: !x {}": "1: tags",
    "tables: {": "1: not YAML",
}
GRANTS = {
    "rows: all": "3: a grant has no groups",
    "groups: everyone": "3: a grant has no rows",
    "groups: sales, rows: all": (
        "3: groups must be a list of groups, groups: [sales], or the word everyone"
    ),
    "groups: [], rows: all": "3: groups is empty: name the groups, or write everyone",
    "groups: [x], rows: all, row: all": (
        "3: a grant has no key 'row': there are groups, rows, masks"
    ),
    "groups: [x], rows: [a]": "3: rows must be a text with an SQL expression",
    "groups: [x], rows: all, masks: [a]": "3: masks must be a mapping of columns",
    "groups: [x], rows: all, masks: {p: '***'}": "3: the mask of p: it is no SQL expression",
    "groups: [x], rows: all, masks: {p: (SELECT 1)}": (
        "3: the mask of p: a mask may not have subqueries"
    ),
    "groups: [x], rows: all, masks: {p: sum(q) OVER ()}": (
        "3: the mask of p: a mask may not have window functions"
    ),
}
CONDITIONS = {
    "": "it is no SQL expression",
    "a = ": "it is no SQL expression",
    "everything AND all": "it is no SQL expression",
    "a; b": "it is no SQL expression",
    "a) OR (b": "it is no SQL expression",
    "a, b": "it is not one SQL expression",
    "a FROM b": "it is no",
    "a AS b": "it is no",
    "a -- b": "comments are not allowed",
    "1": "it is no condition",
    "u = $1": "write :user_id, :groups or :attribute.name instead of $1",
    "u = :user": "there is no placeholder :user: there are :user_id, :groups and :attribute.name",
    "u = :attribute": "an attribute is written :attribute.name",
    "u = :attribute .a": "an attribute is written :attribute.name",
    "u = :attribute.'a'": "an attribute is written :attribute.name",
    "u = :attributes.a": "there is no placeholder :attributes",
    "a IN (SELECT b FROM c FOR UPDATE)": "Operation not allowed: FOR UPDATE",
}


def _read(text: str) -> RuleFile:
    return read_text(text.encode(), "rules.yaml")


def _fails(text: str, said: str) -> None:
    with pytest.raises(RowRulesError) as caught:
        _read(text)
    assert str(caught.value).splitlines()[0].startswith(f"rules.yaml:{said}")


def test_every_mistake_is_named_with_its_line() -> None:
    with all_cases() as cases:
        for text, said in MISTAKES.items():
            with cases.case(text):
                _fails(text, said)
        for grant, said in GRANTS.items():
            with cases.case(grant):
                _fails(f"tables:\n  a.b:\n  - {{{grant}}}", said)
        for condition, said in CONDITIONS.items():
            with cases.case(condition):
                _fails(
                    f"tables:\n  a.b:\n  - groups: [x]\n    rows: {condition}", f"4: rows: {said}"
                )


def test_all_mistakes_are_told_at_once() -> None:
    text = "tables:\n  a: []\n  b: []\n" + "".join(f"  c{n}: []\n" for n in range(30))
    with pytest.raises(RowRulesError) as caught:
        _read(text)
    lines = str(caught.value).splitlines()
    assert (len(lines), lines[-1]) == (21, "… and 12 more")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RowRulesError, match=r"gone\.yaml:1: the file can't be read: No such file"):
        RowRules.load(tmp_path / "gone.yaml")


@given(
    st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(lambda text: f"tables:\n  a.b: {text}".encode()),
    )
)
def test_any_bytes_are_rules_or_a_mistake(data: bytes) -> None:
    try:
        read_text(data, "rules.yaml")
    except RowRulesError as error:
        assert str(error).startswith("rules.yaml:")


@given(st.text(max_size=60))
def test_any_condition_is_read_or_refused(text: str) -> None:
    quoted = text.replace("'", "''").replace("\n", " ")
    try:
        _read(f"tables:\n  a.b:\n  - groups: [x]\n    rows: '{quoted}'")
    except RowRulesError as error:
        assert str(error).startswith("rules.yaml:")


def test_what_counts_for_an_actor() -> None:
    rules = RowRules(_read(FILE))
    clerk = rules.of(Actor("ann", ("clerks",)))
    orders = ("public", "orders")
    assert clerk.ruled == {orders, ("a.b", "c")}
    assert clerk.masked == {(*orders, "phone"), (*orders, "cost")}
    assert rules.of(Actor("ann", ("auditors",))).ruled == {("a.b", "c")}
    assert (
        rules.of(Actor("ann", ("clerks", "auditors"))).masked == frozenset()
    )  # a grant without masks shows all rows
    assert rules.of(NOBODY).ruled == {orders, ("a.b", "c")}
    assert RowRules(_read("tables: {}")).of(NOBODY) == OPEN


def test_a_grant_counts_only_for_who_has_the_attributes_it_names() -> None:
    rules = RowRules(
        _read(
            """
tables:
  a.b:
    - groups: everyone
      rows: r IS DISTINCT FROM :attribute.region
    - groups: everyone
      rows: NOT (r = ANY (:attribute.closed))
    - groups: everyone
      rows: open
      masks: {p: ":attribute.level"}
"""
        )
    )

    def places(**values: tuple[str, ...]) -> tuple[int, ...]:
        ((_, found),) = rules.of(Actor("ann", attributes=attributes_of(values))).grants
        return found

    assert places() == ()
    assert places(region=()) == ()
    assert places(region=("n",), level=("1",)) == (0, 2)
    assert places(region=("n", "s")) == ()  # which of them is meant?
    assert places(closed=("n", "s"), other=("x",)) == (1,)


def test_actors_who_see_the_same_are_equal() -> None:
    rules = RowRules(_read(FILE))
    ann, bob = (rules.of(Actor(user, ("clerks",))) for user in ("ann", "bob"))
    assert ann != bob  # the condition for clerks looks at the user
    visitors = {
        rules.of(Actor(user, groups)) for user in ("ann", "bob") for groups in ((), ("visitors",))
    }
    assert len(visitors) == 1
    assert ann == rules.of(Actor("ann", ("clerks", "clerks")))
