"""The meaning of an intent: its bound form, and the interpreter that gives its rows."""
