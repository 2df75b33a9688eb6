"""What models may cost in a day: the operator's file, the sums in the store, and who is charged.

Runs look at the budget before they begin (`DailyBudget.begin`), every call of a model is charged
(`ChargedModel`), and answers tell what is left. A question that has begun is always finished.
"""
