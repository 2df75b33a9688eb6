"""Words of the two languages, as data: `english.toml` and `chinese.toml`."""

from pathlib import Path

from common.word_files import Languages

WORDS = Languages(Path(__file__).parent)
"""The words that questions use."""
