"""The contract of what is learnt, held by every adapter on a real server."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.learning import (
    Document,
    EtlExample,
    Example,
    Feedback,
    Lesson,
    Rating,
    Trust,
    document_id,
    example_id,
)
from store import InvalidCursor, Learned, LearnedFilter, Learning, LearntState, Visible
from tests.support.effort import tries
from tests.support.learnt import drafted, drafted_learning, example, learning, lesson, second
from tests.support.store_servers import StoreServer

# Ids and texts that users choose may hold anything.
STRANGE = "O'Brien \\ \x00\ud800 '); DROP 表 {} %s"


@pytest.fixture
def source() -> str:
    """A new datasource."""
    return f"source {uuid.uuid4().hex}"


def play(
    place: StoreServer, scenario: Callable[[Learned], Awaitable[None]], **retention: Any
) -> None:
    store = place.open(**retention)

    async def main() -> None:
        try:
            await scenario(store.learned)
        finally:
            await store.aclose()

    asyncio.run(main())


async def sqls(learned: Learned, source: str, user: str = "ann") -> list[str]:
    return [each.sql for each in (await learned.visible(source, user)).examples]


async def lessons(learned: Learned, source: str, user: str = "ann") -> list[str | None]:
    return [each.sql for each in (await learned.visible(source, user)).lessons]


# ------------------------------------------------------------------------------
# feedback


def test_what_is_learnt_comes_back_as_it_was(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        said = learning(
            source, "need_modification", user=STRANGE, run=STRANGE, question=STRANGE, sql=STRANGE
        )
        assert await learned.keep(said) == "kept"
        seen = await learned.visible(source, STRANGE)
        assert seen.examples == (said.example,)
        assert seen.lessons == (said.lesson,)
        assert await learned.feedback(STRANGE, STRANGE) == said.feedback
        assert await learned.feedback("ann", STRANGE) is None
        assert said.example is not None
        assert await learned.find(source, said.example.example_id) == said.example
        assert await learned.find("another", said.example.example_id) is None

    play(place, scenario)


def test_drafts_are_kept_beside_answers_and_never_mixed_with_them(
    place: StoreServer, source: str
) -> None:
    async def scenario(learned: Learned) -> None:
        said = learning(source, "need_modification", question=STRANGE)
        await learned.keep(said)
        answers = await learned.visible(source, "ann")
        of_draft = drafted_learning(replace(said, feedback=replace(said.feedback, run_id="r2")))
        for _ in range(2):
            assert await learned.keep(of_draft) == "kept"
            drafts = await learned.visible(source, "ann", "etl")
            assert drafts.examples == (of_draft.example,)
            assert drafts.lessons == (of_draft.lesson,)
        assert (await learned.visible(source, "ann")).own is answers.own
        assert (await learned.visible(source, "bob", "etl")).examples == ()
        assert of_draft.example is not None
        await learned.review(source, of_draft.example.example_id, "rev", "approve")
        (shared,) = (await learned.visible(source, "bob", "etl")).examples
        assert (type(shared), shared.trust) == (EtlExample, "reviewed")
        assert (await learned.visible(source, "bob")).examples == ()
        # What was asked is what it means: other words for it replace what stood there.
        other = learning(source, run="r3", question="other words", sql="SELECT 3")
        another = drafted_learning(other, of_draft.meaning)
        await learned.keep(another)
        assert another.example in (await learned.visible(source, "ann", "etl")).own.examples
        await learned.keep(replace(another, example=None, feedback=_unsatisfied(another)))
        assert (await learned.visible(source, "ann", "etl")).own.examples == ()

    play(place, scenario)


def _unsatisfied(said: Learning) -> Feedback:
    return replace(said.feedback, run_id="r4", rating="unsatisfied")


def test_what_one_user_says_is_seen_by_nobody_else(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        before = await learned.visible(source, "bob")
        await learned.keep(learning(source, "need_modification"))
        after = await learned.visible(source, "bob")
        assert after.shared is before.shared
        assert after.own is before.own
        assert not after.examples
        assert not after.lessons
        assert not (await learned.visible("another", "ann")).examples

    play(place, scenario)


def test_the_latest_feedback_for_a_run_replaces_the_earlier(
    place: StoreServer, source: str
) -> None:
    async def scenario(learned: Learned) -> None:
        await learned.keep(learning(source, "satisfied"))
        assert await sqls(learned, source) == ["SELECT 1"]
        await learned.keep(learning(source, "unsatisfied", at=second(1)))
        assert await sqls(learned, source) == []
        assert await lessons(learned, source) == ["SELECT 1"]
        await learned.keep(
            learning(source, "need_modification", corrected="SELECT 3", at=second(2))
        )
        assert await sqls(learned, source) == ["SELECT 3"]
        assert await lessons(learned, source) == ["SELECT 1"]
        await learned.keep(learning(source, "skip", at=second(3)))
        assert await sqls(learned, source) == []
        assert await lessons(learned, source) == []
        said = await learned.feedback("ann", "run_1")
        assert said is not None
        assert said.rating == "skip"

    play(place, scenario)


def test_feedback_that_teaches_nothing_changes_nothing_learnt(
    place: StoreServer, source: str
) -> None:
    async def scenario(learned: Learned) -> None:
        await learned.keep(learning(source, "need_modification"))
        once = (await learned.visible(source, "ann")).own
        for rating in ("unsatisfied", "skip"):
            said = replace(learning(source, rating, sql="SELECT 2"), lesson=None, teaches=False)
            assert await learned.keep(said) == "kept"
        assert (await learned.visible(source, "ann")).own is once
        kept = await learned.feedback("ann", "run_1")
        assert kept is not None
        assert kept.rating == "skip"
        await learned.keep(learning(source, "skip"))
        assert not (await learned.visible(source, "ann")).examples

    play(place, scenario)


def test_repeating_feedback_changes_nothing(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        said = learning(source, "need_modification")
        await learned.keep(said)
        once = await learned.visible(source, "ann")
        await learned.keep(said)
        assert (await learned.visible(source, "ann")).own is once.own

    play(place, scenario)


def test_feedback_settles_what_was_said_of_the_same_question(
    place: StoreServer, source: str
) -> None:
    async def scenario(learned: Learned) -> None:
        await learned.keep(learning(source, run="r1", question="How  Many?", sql="SELECT 1"))
        await learned.keep(
            learning(source, run="r2", question="how many?", sql="SELECT 2", at=second(1))
        )
        await learned.keep(
            learning(source, run="r3", question="who?", sql="SELECT 1", at=second(2))
        )
        assert await sqls(learned, source) == ["SELECT 1", "SELECT 2"]
        await learned.keep(
            learning(source, "unsatisfied", run="r4", question="how many?", sql="SELECT 2")
        )
        assert await sqls(learned, source) == ["SELECT 1"]
        await learned.keep(
            learning(source, run="r5", question="how many?", sql="SELECT 2", at=second(3))
        )
        assert await lessons(learned, source) == []

    play(place, scenario)


def test_what_a_reviewer_reads_changes_under_no_id(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        said = learning(source, "unsatisfied", question="How Many?")
        read = lesson(source, question="How Many?")
        await learned.keep(said)
        other = lesson(source, question="how  many?", root_cause="Obey me.", created_at=second(1))
        for run in ("run_1", "run_2"):  # the same answer, and another one
            await learned.keep(
                replace(said, feedback=replace(said.feedback, run_id=run), lesson=other)
            )
            assert (
                await learned.review(source, read.lesson_id, "rev", "approve")
            ).outcome == "unknown"
            assert [each.root_cause for each in (await learned.visible(source, "ann")).lessons] == [
                "Obey me."
            ]
        assert not (await learned.visible(source, "bob")).lessons

        await learned.keep(learning(source, question="Who is IT?", run="run_3"))
        await learned.keep(learning(source, question="who is it?", run="run_4", at=second(2)))
        assert [each.question for each in (await learned.visible(source, "ann")).examples] == [
            "Who is IT?"
        ]

    play(place, scenario)


def test_the_oldest_go_candidates_first(place: StoreServer, source: str) -> None:
    user = f"user {source}"

    async def scenario(learned: Learned) -> None:
        one = example(
            source, user, question="q0", trust="candidate", source="agent", created_at=second(50)
        )
        await learned.add(source, [one])
        for number in range(1, 4):
            said = learning(
                source, user=user, run=f"r{number}", question=f"q{number}", at=second(number)
            )
            await learned.keep(said)
        assert [each.question for each in (await learned.visible(source, user)).examples] == [
            "q3",
            "q2",
            "q1",
        ]
        await learned.keep(learning(source, user=user, run="r4", question="q4", at=second(4)))
        assert [each.question for each in (await learned.visible(source, user)).examples] == [
            "q4",
            "q3",
            "q2",
        ]
        assert await learned.find(source, one.example_id) is None
        for number in (1, 2, 3):
            assert bool(await learned.feedback(user, f"r{number}")) == (number == 3)

    play(place, scenario, own_examples=3, feedback=2)


def test_a_full_datasource_keeps_the_feedback_and_learns_nothing(
    place: StoreServer, source: str
) -> None:
    async def scenario(learned: Learned) -> None:
        assert await learned.keep(learning(source, user="ann")) == "kept"
        assert await learned.keep(learning(source, user="bob", run="r2")) == "full"
        assert await learned.feedback("bob", "r2") is not None
        assert await sqls(learned, source, "bob") == []
        assert await sqls(learned, source, "ann") == ["SELECT 1"]

    play(place, scenario, all_examples=1)


def test_users_at_once_lose_nothing(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        said = [learning(source, run=f"r{number}", question=f"q{number}") for number in range(20)]
        others = [
            learning(source, run="same", question="same", at=second(number)) for number in range(8)
        ]
        assert set(await asyncio.gather(*map(learned.keep, said + others))) == {"kept"}
        assert len(await sqls(learned, source)) == 21

    play(place, scenario)


# ------------------------------------------------------------------------------
# reviews


def test_only_reviewed_examples_are_seen_by_others(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        mine = example(source)
        await learned.add(source, [mine])
        assert await sqls(learned, source, "bob") == []
        approved = await learned.review(source, mine.example_id, "rev", "approve")
        assert approved.outcome == "done"
        assert approved.item == replace(mine, trust="reviewed", reviewer="rev")
        assert await sqls(learned, source, "bob") == ["SELECT 1"]
        assert await sqls(learned, source, "ann") == ["SELECT 1"]
        certified = await learned.review(source, mine.example_id, "rev2", "certify")
        assert certified.item == replace(mine, trust="certified", reviewer="rev2")
        rejected = await learned.review(source, mine.example_id, "rev", "reject")
        assert rejected.item == replace(mine, trust="candidate", reviewer="rev", is_rejected=True)
        assert await sqls(learned, source, "bob") == []
        assert await sqls(learned, source, "ann") == []
        back = await learned.review(source, mine.example_id, "rev", "approve")
        assert back.item == replace(mine, trust="reviewed", reviewer="rev")

    play(place, scenario)


def test_nobody_reviews_their_own(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        mine = example(source)
        await learned.add(source, [mine])
        for verdict in ("approve", "certify", "reject"):
            outcome = await learned.review(source, mine.example_id, "ann", verdict)
            assert outcome.outcome == "own"
            assert outcome.item == mine
        assert (await learned.review(source, "ex_none", "rev", "approve")).outcome == "unknown"
        assert (
            await learned.review("another", mine.example_id, "rev", "approve")
        ).outcome == "unknown"

    play(place, scenario)


def test_of_two_reviewers_at_once_one_wins(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        for number in range(6):
            mine = example(source, question=f"q{number}")
            await learned.add(source, [mine])
            verdicts = [
                learned.review(source, mine.example_id, "one", "approve", seen="personal"),
                learned.review(source, mine.example_id, "two", "reject", seen="personal"),
            ]
            done = await asyncio.gather(*verdicts)
            assert sorted(each.outcome for each in done) == ["changed", "done"]
            assert done[0].item == done[1].item == await learned.find(source, mine.example_id)

    play(place, scenario)


def test_a_repeated_verdict_is_done_and_an_outdated_one_is_not(
    place: StoreServer, source: str
) -> None:
    async def scenario(learned: Learned) -> None:
        mine = example(source)
        await learned.add(source, [mine])
        for _ in range(2):
            assert (
                await learned.review(source, mine.example_id, "rev", "approve", seen="personal")
            ).outcome == "done"
        late = await learned.review(source, mine.example_id, "two", "approve")
        assert late.outcome == "changed"
        assert isinstance(late.item, Example)
        assert late.item.trust == "reviewed"
        assert (
            await learned.review(source, mine.example_id, "two", "certify", seen="personal")
        ).outcome == "changed"

    play(place, scenario)


def test_the_author_changes_nothing_shared(place: StoreServer, source: str) -> None:
    """Neither by other feedback for the same run, nor by bringing it again, nor by deleting it."""

    async def scenario(learned: Learned) -> None:
        said = learning(source)
        await learned.keep(said)
        assert said.example is not None
        known = said.example.example_id
        await learned.review(source, known, "rev", "approve")
        before = (await learned.visible(source, "bob")).shared
        for rating in ("unsatisfied", "skip", "need_modification", "satisfied"):
            await learned.keep(learning(source, rating, at=second(9)))
        assert not await learned.delete(source, known, "ann")
        assert (await learned.add(source, [said.example]))[known] == "known"
        assert (await learned.visible(source, "bob")).shared is before
        assert await learned.delete(source, known, None)
        assert not await learned.delete(source, known, None)
        assert await sqls(learned, source, "bob") == []

    play(place, scenario)


def test_what_is_rejected_stays_rejected(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        said = learning(source)
        await learned.keep(said)
        assert said.example is not None
        known = said.example.example_id
        await learned.review(source, known, "rev", "reject")
        await learned.keep(learning(source, at=second(1)))
        await learned.add(source, [said.example])
        assert await sqls(learned, source) == []
        page = await learned.page(source, "example", LearnedFilter("ann"), 10)
        assert [each.is_rejected for each in page.items] == [True]
        # What is rejected takes no other example's place either.
        await learned.keep(learning(source, run="r2", sql="SELECT 7", at=second(2)))
        await learned.keep(learning(source, run="r3", at=second(3)))
        assert await sqls(learned, source) == ["SELECT 7"]
        assert await learned.delete(source, known, "ann")

    play(place, scenario)


def test_lessons_are_shared_by_reviewers(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        mine = lesson(source)
        await learned.add(source, [mine])
        assert await lessons(learned, source, "bob") == []
        assert (await learned.review(source, mine.lesson_id, "rev", "certify")).outcome == "unknown"
        await learned.review(source, mine.lesson_id, "rev", "approve")
        assert await lessons(learned, source, "bob") == ["SELECT 1"]
        await learned.review(source, mine.lesson_id, "rev", "reject")
        assert await lessons(learned, source, "bob") == []

    play(place, scenario)


def test_no_more_is_shared_than_may_be(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        both = [example(source, question=f"q{number}") for number in range(2)]
        await learned.add(source, both)
        assert (
            await learned.review(source, both[0].example_id, "rev", "approve")
        ).outcome == "done"
        full = await learned.review(source, both[1].example_id, "rev", "approve")
        assert full.outcome == "full"
        assert full.item == both[1]
        assert (
            await learned.review(source, both[0].example_id, "rev", "certify")
        ).outcome == "done"
        more = [
            example(source, question=f"q{number}", trust="certified", author="op")
            for number in (5, 6)
        ]
        assert set((await learned.add(source, more)).values()) == {"full"}

    play(place, scenario, shared_examples=1)


# ------------------------------------------------------------------------------
# loads and lists


def test_loads_may_be_repeated(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        many = [
            example(source, question=f"q{number}", trust="certified", source="load")
            for number in range(150)
        ]
        assert set((await learned.add(source, many)).values()) == {"added"}
        assert set((await learned.add(source, many)).values()) == {"known"}
        assert len((await learned.visible(source, "bob")).examples) == 150
        # What is loaded with more trust raises what is there; with less, it changes nothing.
        mine = example(source, question="mine")
        await learned.add(source, [mine])
        assert set((await learned.add(source, [replace(mine, trust="certified")])).values()) == {
            "added"
        }
        assert set((await learned.add(source, [mine])).values()) == {"known"}
        assert "mine" in [each.question for each in (await learned.visible(source, "bob")).examples]

    play(place, scenario)


def test_a_load_displaces_nothing(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        many = [example(source, question=f"q{number}", source="load") for number in range(5)]
        outcomes = await learned.add(source, many)
        assert [outcomes[each.example_id] for each in many] == ["added"] * 3 + ["full"] * 2
        assert sorted(
            each.question for each in (await learned.visible(source, "ann")).examples
        ) == ["q0", "q1", "q2"]

    play(place, scenario, own_examples=3)


def test_documents_of_a_source_are_replaced(place: StoreServer, source: str) -> None:
    def documents(name: str, *headings: str) -> list[Document]:
        titles = [f"{name} › {heading}" for heading in headings]
        return [
            Document(document_id(source, title), source, title, STRANGE, "text", name)
            for title in titles
        ]

    async def scenario(learned: Learned) -> None:
        async def titles() -> list[str]:
            return [each.title for each in (await learned.visible(source, "bob")).shared.documents]

        await learned.replace_documents(source, "a.md", documents("a.md", "one", "two", "three"))
        await learned.replace_documents(source, "b.md", documents("b.md", "one"))
        assert await titles() == ["b.md › one", "a.md › one", "a.md › two", "a.md › three"]
        await learned.replace_documents(source, "a.md", documents("a.md", "three"))
        assert await titles() == ["a.md › three", "b.md › one"]
        full = await learned.replace_documents(source, "c.md", documents("c.md", *"xyz"))
        assert set(full.values()) == {"full"}
        await learned.replace_documents(source, "a.md", [])
        assert await titles() == ["b.md › one"]

    play(place, scenario, documents=4)


def test_proofs_and_uses(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        one, other = (example(source, question=question) for question in ("a", "b"))
        await learned.add(source, [one, other])
        await learned.mark_stale(source, {one.example_id: "gone", "ex_none": "gone"})
        stale = replace(one, is_stale=True, stale_reason="gone")
        assert await learned.find(source, one.example_id) == stale
        before = await learned.visible(source, "ann")
        assert {each.is_stale for each in before.examples} == {True, False}
        await learned.count_use(source, [one.example_id, one.example_id, "ex_none"])
        await learned.count_use(source, [one.example_id])
        await learned.count_use(source, [])
        assert (await learned.visible(source, "ann")).own is before.own
        assert await learned.find(source, one.example_id) == replace(stale, uses=3)
        await learned.mark_proven(source, {one.example_id: "new"}, second(1))
        proven = replace(one, tables_hash="new", proven_at=second(1), uses=3)
        assert await learned.find(source, one.example_id) == proven
        await learned.review(source, one.example_id, "rev", "approve")
        assert (await learned.visible(source, "bob")).examples == (
            replace(proven, trust="reviewed", reviewer="rev"),
        )

    play(place, scenario)


def test_lists_have_pages(place: StoreServer, source: str) -> None:
    async def scenario(learned: Learned) -> None:
        made = [
            example(
                source,
                author,
                question=f"{author}{number}",
                created_at=second(number % 7),
                trust=trust,
            )
            for author in ("ann", "bob")
            for number, trust in enumerate(["personal", "reviewed", "candidate", "certified"] * 4)
        ]
        made = [drafted(each) if number % 3 == 0 else each for number, each in enumerate(made)]
        await learned.add(source, made)

        async def listed(wanted: LearnedFilter, limit: int = 3) -> list[Example | Lesson]:
            found: list[Example | Lesson] = []
            cursor = None
            while True:
                page = await learned.page(source, "example", wanted, limit, cursor)
                assert len(page.items) <= limit
                found += page.items
                cursor = page.next_cursor
                if cursor is None:
                    return found

        for seen_by in (None, "ann"):
            for trusts in (("personal",), ("reviewed", "certified"), LearnedFilter(None).trusts):
                seen = [
                    each
                    for each in made
                    if seen_by is None or each.is_shared or each.author == seen_by
                ]
                expected = {each.example_id for each in seen if each.trust in trusts}
                found = await listed(LearnedFilter(seen_by, trusts))  # type: ignore[arg-type]
                assert [each.created_at for each in found] == sorted(
                    (e.created_at for e in found), reverse=True
                )
                assert len(found) == len(expected)
                assert {each.example_id for each in found if isinstance(each, Example)} == expected
        stale: tuple[LearntState, ...] = ("stale",)
        active: tuple[LearntState, ...] = ("active",)
        await learned.mark_stale(source, {made[1].example_id: "x"})
        assert await listed(LearnedFilter(None, states=stale)) == [
            replace(made[1], is_stale=True, stale_reason="x")
        ]
        assert len(await listed(LearnedFilter("bob", states=active), 100)) == 16 + 8 - 1
        with pytest.raises(InvalidCursor):
            await learned.page(source, "example", LearnedFilter(None), 3, "x")

    play(place, scenario)


def test_what_the_store_has_lost_is_shown_no_longer(place: StoreServer, source: str) -> None:
    if place.lose is None:
        pytest.skip("the server is not ours to empty")

    async def scenario(learned: Learned) -> None:
        await learned.keep(learning(source))
        assert await sqls(learned, source) == ["SELECT 1"]
        assert place.lose is not None
        place.lose()
        assert await sqls(learned, source) == []
        await learned.keep(learning(source, sql="SELECT 2"))
        assert await sqls(learned, source) == ["SELECT 2"]

    play(place, scenario)


def test_workers_see_each_others_changes(place: StoreServer, source: str) -> None:
    one, other = place.open(), place.open()

    async def main() -> None:
        mine = example(source)
        assert not (await other.learned.visible(source, "bob")).examples
        await one.learned.add(source, [mine])
        await one.learned.review(source, mine.example_id, "rev", "approve")
        first = await other.learned.visible(source, "bob")
        assert len(first.examples) == 1
        assert (await other.learned.visible(source, "ann")).shared is first.shared
        await one.learned.delete(source, mine.example_id, None)
        assert not (await other.learned.visible(source, "bob")).examples
        await one.aclose()
        await other.aclose()

    asyncio.run(main())


# ------------------------------------------------------------------------------
# poisoning


async def _seen(learned: Learned, source: str, user: str) -> tuple[Any, ...]:
    answers = await learned.visible(source, user)
    drafts = await learned.visible(source, user, "etl")
    return (*_of(answers), *_of(drafts))


def _of(visible: Visible) -> tuple[Any, ...]:
    return visible.examples, visible.lessons, visible.shared.documents


QUESTIONS, SQLS = (
    st.sampled_from(["q1", "Q1", "q2"]),
    st.sampled_from(["SELECT 1", "SELECT 2", "SELECT 3"]),
)
RATINGS: st.SearchStrategy[Rating] = st.sampled_from(
    ["satisfied", "unsatisfied", "need_modification", "skip"]
)
TRUSTS: st.SearchStrategy[Trust] = st.sampled_from(["candidate", "personal"])
ARE_DRAFTS = st.booleans()
FEEDBACK = st.tuples(
    st.just("keep"),
    ARE_DRAFTS,
    RATINGS,
    st.sampled_from(["r1", "r2", "shared run"]),
    QUESTIONS,
    SQLS,
    SQLS,
)
ADDITION = st.tuples(st.just("add"), ARE_DRAFTS, TRUSTS, QUESTIONS, SQLS)
ASKED = QUESTIONS | st.just("meaning of q1")
DELETION = st.tuples(st.just("delete"), st.sampled_from(["mallory", "bob", "ann"]), ASKED, SQLS)
USE = st.tuples(st.just("use"), ASKED, SQLS)
CALLS: Any = st.lists(FEEDBACK | ADDITION | DELETION | USE, max_size=12)


@settings(max_examples=tries(10), deadline=None)
@given(calls=CALLS)
def test_no_calls_of_one_user_change_what_another_sees(
    place: StoreServer, calls: list[Any]
) -> None:
    """Whatever one user says, brings, deletes and uses; rights are not the store's concern, so none
    is given.
    """
    source, user = f"source {uuid.uuid4().hex}", "mallory"

    async def act(learned: Learned, call: Any) -> None:
        kind, *values = call
        if kind == "keep":
            is_draft, rating, run, question, sql, corrected = values
            said = learning(
                source, rating, user=user, run=run, question=question, sql=sql, corrected=corrected
            )
            await learned.keep(drafted_learning(said) if is_draft else said)
        elif kind == "add":
            is_draft, trust, question, sql = values
            made = example(source, user, question, sql, trust=trust)
            await learned.add(source, [drafted(made) if is_draft else made])
        elif kind == "delete":
            author, question, sql = values
            await learned.delete(source, example_id(source, author, question, sql), user)
        else:
            await learned.count_use(
                source, [example_id(source, author, *values) for author in ("bob", "ann", user)]
            )

    async def scenario(learned: Learned) -> None:
        said = learning(source, "need_modification", user="bob", run="shared run", question="q1")
        await learned.keep(said)
        await learned.keep(drafted_learning(said))
        await learned.add(
            source,
            [
                example(source, "ann", "q1", trust="certified"),
                drafted(example(source, "ann", "q1", trust="certified")),
                lesson(source, "ann", "q1", is_shared=True),
            ],
        )
        mine = example(source, user, "q1", "SELECT 3")
        await learned.add(source, [mine])
        await learned.review(source, mine.example_id, "rev", "approve")
        before = await _seen(learned, source, "bob")
        for call in calls:
            await act(learned, call)
        assert await _seen(learned, source, "bob") == before
        fresh = place.open()
        assert _uncounted(await _seen(fresh.learned, source, "bob")) == _uncounted(before)
        await fresh.aclose()

    play(place, scenario)


def _uncounted(seen: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(map(_unused, items)) for items in seen)


def _unused(item: Any) -> Any:
    return replace(item, uses=0) if isinstance(item, Example) else item
