"""What clients of other protocols get of an answer: all that the HTTP API promises of it."""

from api.answer_fields import _OF_THE_WAY, answer_fields
from api.answer_markdown import answer_text
from api.models.asking_models import AnswerFields
from api.models.etl_models import EtlAnswerFields

PROMISED = {*AnswerFields.model_fields, *EtlAnswerFields.model_fields}


def test_nothing_of_any_answer_is_lost() -> None:
    answer = dict.fromkeys(PROMISED, "something")
    kept = answer_fields({**answer, "nothing": None})
    assert {"sql", "query_result", "status", "artefact", "questions", "evidence"} <= kept.keys()
    assert kept.keys() == PROMISED - _OF_THE_WAY
    assert _OF_THE_WAY - {"type"} <= PROMISED, "each name that is left out is one of an answer"


def test_a_text_names_the_query_behind_each_of_its_figures() -> None:
    queries = {"1": "SELECT 1", "2": "SELECT 2", "3": "SELECT 3"}
    answer = {
        "response": "3, of 1",
        "sql": "SELECT 3",
        "figures": [{"figure": "1", "call_id": "1"}, {"figure": "3", "call_id": "3"}],
        "sources": [{"call_id": name, "sql": sql} for name, sql in queries.items()],
    }
    said = answer_text(answer, "en")
    assert said.count("SELECT 3") == 1
    assert "Other figures of the text come from:\n\n```sql\nSELECT 1\n```" in said
    assert "SELECT 2" not in said
