"""`unified_api.py` with one flow more, which SIGTERM ends as soon as `GRACE_S` says."""

import os
import sys

from agent.bootstrap import FLOWS
from serving.worker import Worker
from tests.support.survey.survey_flow import SurveyFlow
from unified_api import main

FLOWS.append(SurveyFlow)
Worker.grace_s = float(os.environ.get("GRACE_S", Worker.grace_s))

if __name__ == "__main__":
    sys.exit(main())
