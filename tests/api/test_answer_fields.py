"""What clients of other protocols get of an answer: all that the HTTP API promises of it."""

from api.answer_fields import _OF_THE_WAY, answer_fields
from api.models.asking_models import AnswerFields
from api.models.etl_models import EtlAnswerFields

PROMISED = {*AnswerFields.model_fields, *EtlAnswerFields.model_fields}


def test_nothing_of_any_answer_is_lost() -> None:
    answer = dict.fromkeys(PROMISED, "something")
    kept = answer_fields({**answer, "nothing": None})
    assert {"sql", "query_result", "status", "artefact", "questions", "evidence"} <= kept.keys()
    assert kept.keys() == PROMISED - _OF_THE_WAY
    assert _OF_THE_WAY - {"type"} <= PROMISED, "each name that is left out is one of an answer"
