"""Imported last by the process that is forked: reads what every fork would read for itself, and
takes all that is loaded out of what the garbage collector scans, because scanning copies it.
"""

import gc

from llm.transport import trusted_certificates
from rules.words import speech

trusted_certificates()
speech.prepare()
gc.collect()
gc.freeze()
