"""Words of the two languages, as data: `english.toml`, `chinese.toml`, and what a domain adds in `domains/`."""

from pathlib import Path

from common.word_files import Languages

WORDS = Languages(Path(__file__).parent)
"""The words that questions use."""
