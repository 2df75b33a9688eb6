"""Why a file can't be read, in both languages."""

from common.text import Text


class UnreadableFile(Exception):
    """The file can't become tables; the message says why and what to do."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


def refusal(zh: str, en: str) -> UnreadableFile:
    """Return the error with this message."""
    return UnreadableFile(Text(zh, en))
