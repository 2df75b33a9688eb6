"""What an intent means: its bound form, and the interpreter that gives its rows."""
