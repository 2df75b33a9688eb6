"""The part of each role that a model may do: what it is asked, and what of its work is taken.

Every role has one tool to submit its work; what the tool takes has passed the same checks as the
rules' own work.
"""
