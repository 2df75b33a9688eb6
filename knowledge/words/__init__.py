"""Words by which names, values and comments of any database are understood, as data.

`english.toml` and `chinese.toml` hold what names look like and what is personal; `thesaurus.toml`
what means the same; `dictionary.toml` what everyday things are called in the other language;
`han_variants.toml` how characters are written.
"""

from pathlib import Path

from common.word_files import Languages, Words

_FOLDER = Path(__file__).parent
WORDS = Languages(_FOLDER)
THESAURUS = Words(_FOLDER / "thesaurus.toml")
DICTIONARY = Words(_FOLDER / "dictionary.toml")
SIMPLIFIED = str.maketrans(
    {
        pair[1]: pair[0]
        for line in Words(_FOLDER / "han_variants.toml").phrases("pairs")
        for pair in line.split()
    }
)
"""For `str.translate`: traditional characters as simplified ones."""
