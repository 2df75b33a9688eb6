"""The operator's file of row rules."""


class RowRulesError(ValueError):
    """The file can't be used; the message has a line for each mistake, `file:line: what is wrong and what to do`."""
