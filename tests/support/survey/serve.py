"""`unified_api.py` with one flow more."""

import sys

from agent.bootstrap import FLOWS
from tests.support.survey.survey_flow import SurveyFlow
from unified_api import main

FLOWS.append(SurveyFlow)

if __name__ == "__main__":
    sys.exit(main())
