"""The costs by which one reading of a question is preferred to another."""

SLIGHT = 0.05
SECOND = 0.5  # a sense that is not the best one of its word
WORSE = 2.0  # by which the difference of two scores counts
DEAREST = 1.2  # a sense that costs more is none
WHOLE_NAME = 0.9
WHOLE, PART = 0.7, 2.0  # the quality of a name below which each tenth costs a fifth
VALUE_OF_NAME = 0.6  # a stored value that reads like a table or column
SHORT = 0.2  # a thing by one character of its name
INTENT_OF_NAME = 0.5  # a word that asks for something and is a name as well
BARE_YEAR = 0.3  # a number that may be a year
YEAR_AS_NUMBER = 1.0  # what is said as a year ("in 2025", "2024 to 2025"), taken for a number
CLEAR_FIGURE = 0.8  # quality of a figure that a word may mean which is a whole table's name
NAMED, CLEAR = 0.7, 0.6  # qualities
ATTRIBUTE = 0.55  # a value or flag within a pattern
TIE = 0.03  # a word passed over between two that belong together

PASSED = {
    "noise": 0.02, "of": 0.02, "list": 0.05, "verb": 0.1, "range:now": 0.1,
    "unit": 0.3, "and": 0.3, "with": 0.3, "cmp:=": 0.3, "inclusion": 0.3, "by_end": 0.4,
    "which": 0.6, "to": 0.6, "from": 0.6, "like:contains": 0.6,
    "named": 1.0, "compare": 1.0, "which:person": 2.0,
}  # fmt: skip
"""A word that no pattern takes, by its intent, alone or with its argument."""
SKIPPED = 0.4  # an unknown word that says nothing of the data: a verb, an adverb, a courtesy
LOST = 6.0  # a word with a meaning that no pattern takes: the question is refused
BEAM = 24  # readings followed at once
READINGS = 12  # readings that are composed
DOUBT = 0.2  # by which a reading of the same words may be worse, and the user is asked
DOUBT_OF_THINGS = 0.1  # by which a reading that answers about other things may be worse, and so
MARGIN = 0.5  # by which a reading may be worse than the best and still answer
