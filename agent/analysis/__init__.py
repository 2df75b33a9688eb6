"""Figures about an answer's rows, computed by SQL over all of them or by statsmodels; no model has
a part in it.

`analysing.py` runs the statements that `analysis_sql.py` writes; the other modules
make findings of what these give. Limits stand in `analysis_limits.py`.
"""
