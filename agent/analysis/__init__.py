"""Figures about an answer's rows, computed by SQL over all of them or by statsmodels; no model has a part in it.

`desk.py` finds the answer and runs the statements that `statements.py` writes; the other modules make findings of what
these give. Limits stand in `limits.py`.
"""
