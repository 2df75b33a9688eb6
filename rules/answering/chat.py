"""Small talk by rules, and examples of questions that the connected database can really answer."""

from collections.abc import Iterable
from dataclasses import dataclass

from common.cpu_clock import within
from common.inquiry import Inquiry
from common.text import Text
from knowledge.language.spoken_names import spoken_name
from rules.answering.about_results import asked_of_last, result_pieces, without_model
from rules.answering.offers import about_mentioned, example_questions, main_tables
from rules.conversation.conversation import earlier_query
from rules.conversation.follow_ups import goes_on, likely_change
from rules.schema.lexicon import lexicon_for
from rules.words import WORDS
from rules.words.limits import OFFERS_S, STEP_S, with_bounded_questions
from rules.words.talk import ABOUT_CITU, SMALL_TALK

_THANKS, _FAREWELL = WORDS.found("talk.small.gratitude"), WORDS.found("talk.small.farewells")
_MAX_TABLES = 6
_WELCOME = Text(
    "不客气！还想查什么数据，直接问我就好。", "You're welcome! Ask me anything else about the data."
)
_GREETING = Text("你好！我是 Citu。", "Hello! I'm Citu. ")
_CITU = Text(
    "我是 Citu，用中文或英文回答数据库里的问题。",
    "I'm Citu; I answer questions about a database in plain words. ",
)
_ONLY_DATA = Text(
    "{}，我只能根据数据库中的数据回答问题。",
    "{} I can only answer questions about the data. ",
)
_NO_TABLES = Text(
    "当前数据库中没有可以查询的表。", "The connected database has no table I may read."
)
_FOR_EXAMPLE = Text("例如：\n", "For example:\n")
_NOTHING_TO_CONTINUE = Text(
    "这个对话里还没有可以接着追问的数据问题，请把问题说完整。",
    "This conversation has no question about the data to go on from yet: "
    "please ask the whole question. ",
)
_TAKEN_AS_TALK = Text(
    "这句话我当作聊天来理解，{}如果您想查询数据，可以这样问：\n",
    "I took this as conversation. {}If you meant the data, ask for example:\n",
)


@dataclass(frozen=True)
class OfflineReply:
    """An answer to what is not about the data, in pieces to concatenate.

    Attributes:
        offers: questions about the data that it names as examples.
    """

    pieces: tuple[str, ...]
    offers: tuple[str, ...] = ()


def chat_reply(inquiry: Inquiry) -> OfflineReply:
    """Answer a question that is not about the data."""
    inquiry = with_bounded_questions(inquiry)
    question = inquiry.question.strip()
    if _THANKS.search(question):
        return OfflineReply((_WELCOME.to(inquiry.lang),))
    if _FAREWELL.search(question):
        return OfflineReply((Text("再见！", "Goodbye!").to(inquiry.lang),))
    if SMALL_TALK.match(question):
        return _with_examples(
            Text("你好！我是 Citu。", "Hello! I'm Citu. ").to(inquiry.lang), inquiry
        )

    asked = asked_of_last(inquiry)
    if asked is not None:
        turn, doubt = asked
        return OfflineReply(tuple(result_pieces(inquiry, turn, earlier_query(inquiry), doubt)))

    if ABOUT_CITU.search(question):
        return _with_examples(_CITU.to(inquiry.lang), inquiry)

    offers = within(OFFERS_S, lambda: about_mentioned(inquiry), [])
    if offers:
        taken = _TAKEN_AS_TALK.to(inquiry.lang).format(_only_data(inquiry))
        return OfflineReply((taken, _bullet_list(offers)), tuple(offers))
    if _lacks_beginning(inquiry):
        return _with_examples(_NOTHING_TO_CONTINUE.to(inquiry.lang), inquiry)

    return _with_examples(_only_data(inquiry), inquiry)


def _only_data(inquiry: Inquiry) -> str:
    """Say that there is no model, or that it is down."""
    return _ONLY_DATA.to(inquiry.lang).format(without_model(inquiry))


def _lacks_beginning(inquiry: Inquiry) -> bool:
    """Tell whether it goes on from a question about the data which this conversation lacks."""
    if any(turn.question_type == "DATABASE" for turn in inquiry.history):
        return False

    lexicon, question = lexicon_for(inquiry), inquiry.question
    change = within(STEP_S, lambda: likely_change(question, lexicon, inquiry.table), None)
    if change is None:
        return False

    return goes_on(change, question, lambda: False)


def _with_examples(sentence: str, inquiry: Inquiry) -> OfflineReply:
    """Say which tables may be asked about after what is said, with example questions."""
    lang = inquiry.lang
    tables = main_tables(inquiry.catalog)
    if not tables:
        return OfflineReply((sentence, _NO_TABLES.to(lang)))

    names = [spoken_name(table, lang) for table in tables[:_MAX_TABLES]]
    about = Text(f"可以查询：{'、'.join(names)}。", f"There is data about: {', '.join(names)}. ")
    examples = example_questions(inquiry.catalog, lang)
    if not examples:
        return OfflineReply((sentence, about.to(lang)))

    return OfflineReply(
        (sentence, about.to(lang), _FOR_EXAMPLE.to(lang), _bullet_list(examples)), examples
    )


def _bullet_list(questions: Iterable[str]) -> str:
    return "\n".join(f"- {question}" for question in questions)
