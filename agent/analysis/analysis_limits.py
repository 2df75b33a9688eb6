"""How much one analysis may take; beside these, every statement has the timeout and the limits of
any other.
"""

MOST_MEASURES = 4
"""Measures that are analysed when none is named."""

MOST_PERIODS = 2_000
"""Of a series; a longer one is not analysed."""

MOST_NAMED = 10
"""Contributors and outliers that are told by name."""

MOST_NAME_CHARS = 200
"""Of a name; a longer one is cut."""

MOST_HORIZON = 36
"""Periods of a forecast."""

MOST_FITTED = 400
"""The latest periods, by which a forecast is made."""

FORECAST_S = 20.0
"""Seconds for one forecast with its back-test."""
