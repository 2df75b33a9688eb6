"""Which encoding a text file has: found by reading all of it strictly, not by guessing from a part.

A file is UTF-8 or UTF-16 if it decodes as that, since other encodings hardly ever do by chance.
Statistical detectors were left out: on short Chinese files they take GBK for Big5 or Korean.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from common.text import Text
from files.reading.unreadable import refusal

ENCODINGS = ("utf-8", "gb18030", "utf-16", "big5", "cp1252")
"""Encodings that a caller may name."""

_PIECE = 1024 * 1024
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig", "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "utf-16"),
)
_MOST_NULS = 0.001  # part of the bytes of a text that is not UTF-16


@dataclass(frozen=True)
class Encoding:
    """An encoding, and why it is taken to be that.

    Attributes:
        codec: by which Python reads it.
        name: as callers know it, one of `ENCODINGS`.
    """

    codec: str
    name: str
    reason: Text


def encoding_of(path: Path) -> Encoding:
    """Return the encoding of a text file.

    Raises:
        UnreadableFile: it is no text in any of the encodings.
    """
    with path.open("rb") as file:
        head = file.read(_PIECE)

    for mark, codec, name in _BOMS:
        if head.startswith(mark):
            return _marked_encoding(path, codec, name)

    wide = _without_mark(head)
    if wide is not None and _decodes(path, wide):
        reason = Text("每隔一个字节为零", "every other byte is zero")
        return Encoding(wide, "utf-16", reason)

    if head.count(0) > _MOST_NULS * len(head):
        raise refusal(
            "这不是文本文件：其中有许多零字节。请上传 CSV、TSV、XLSX 或它们的 ZIP。",
            "This is no text file: it holds many zero bytes. Upload CSV, TSV, XLSX or a ZIP of "
            "these.",
        )

    return _narrow(path)


def named_encoding(path: Path, name: str) -> Encoding:
    """Return the encoding that a caller has named.

    Raises:
        UnreadableFile: the file does not decode as that.
    """
    guessed = encoding_of(path)
    if guessed.name == name:
        return guessed

    codec = {"utf-8": "utf-8-sig"}.get(name, name)
    place = _first_fault(path, codec)
    if place is not None:
        raise refusal(
            f"文件不是 {name}：第 {place} 字节无法解码。它看起来是 {guessed.name}。",
            f"The file is not {name}: byte {place} can't be decoded. It looks like {guessed.name}.",
        )

    return Encoding(codec, name, Text("由您指定", "named by you"))


def _marked_encoding(path: Path, codec: str, name: str) -> Encoding:
    place = _first_fault(path, codec)
    if place is not None:
        raise refusal(
            f"文件带有 {name} 的标记，但第 {place} 字节不是 {name}：请重新导出。",
            f"The file is marked as {name}, but byte {place} is not: export it again.",
        )

    return Encoding(codec, name, Text("文件开头有标记", "the file begins with its mark"))


def _narrow(path: Path) -> Encoding:
    """Return the encoding of a file whose characters are bytes or series of bytes."""
    if _decodes(path, "utf-8"):
        return Encoding("utf-8", "utf-8", Text("全部字节都是 UTF-8", "all of it is UTF-8"))
    if _decodes(path, "gb18030") and _is_mostly_common(path, "gb18030"):
        reason = Text("不是 UTF-8，是常用汉字", "not UTF-8; reads as common Chinese characters")
        return Encoding("gb18030", "gb18030", reason)

    if _decodes(path, "big5") and _is_mostly_common(path, "big5"):
        reason = Text("不是 UTF-8，是繁体汉字", "not UTF-8; reads as traditional Chinese")
        return Encoding("big5", "big5", reason)

    if _decodes(path, "cp1252"):
        reason = Text("既不是 UTF-8 也不是汉字", "neither UTF-8 nor Chinese")
        return Encoding("cp1252", "cp1252", reason)

    place = _first_fault(path, "utf-8")
    raise refusal(
        f"无法识别文本编码：第 {place} 字节不是 UTF-8，也不是 GBK。请另存为 UTF-8。",
        f"The text's encoding is not known: byte {place} is neither UTF-8 nor GBK. Save it as "
        "UTF-8.",
    )


def _without_mark(head: bytes) -> str | None:
    """Return the byte order of UTF-16 without a mark, by where its zero bytes are."""
    sample = head[:4096]
    even, odd = sample[0::2], sample[1::2]
    if len(odd) < 2:
        return None

    zeros_even, zeros_odd = even.count(0) / len(even), odd.count(0) / len(odd)
    if zeros_odd > 0.2 and zeros_even < 0.02:
        return "utf-16-le"
    if zeros_even > 0.2 and zeros_odd < 0.02:
        return "utf-16-be"

    return None


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _first_fault(path: Path, codec: str) -> int | None:
    """Return the number of the first byte that can't be decoded, from 1; None: all can."""
    decoder = codecs.getincrementaldecoder(codec)()
    read = 0
    pending = 0
    try:
        for piece in _pieces(path):
            pending = len(decoder.getstate()[0])
            decoder.decode(piece)
            read += len(piece)

        pending = len(decoder.getstate()[0])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return max(1, read - pending + error.start + 1)

    return None


def _decodes(path: Path, codec: str) -> bool:
    return _first_fault(path, codec) is None


def _is_mostly_common(path: Path, codec: str) -> bool:
    """Tell whether what is not ASCII at the beginning is mostly everyday Chinese.

    Almost any bytes decode as GB18030; of a text in a western encoding most become rare characters.
    """
    decoder = codecs.getincrementaldecoder(codec)(errors="replace")
    foreign = []
    for piece in _pieces(path):
        foreign += [char for char in decoder.decode(piece) if ord(char) > 127]
        if len(foreign) >= 2000:
            break

    common = sum(map(_is_common, foreign))
    return common >= 0.8 * len(foreign)


def _is_common(char: str) -> bool:
    """Tell whether GB2312 has the character in its first level, or it is Chinese punctuation."""
    if "\u3000" <= char <= "\u303f" or "\uff00" <= char <= "\uffef":
        return True
    if char in "“”‘’—…·￥°×":
        return True

    try:
        lead = char.encode("gb2312")[0]
    except UnicodeEncodeError:
        # Traditional characters that GB2312 has not
        return _is_traditional(char)

    return 0xB0 <= lead <= 0xF7


def _is_traditional(char: str) -> bool:
    try:
        lead = char.encode("big5")[0]
    except UnicodeEncodeError:
        return False

    return 0xA4 <= lead <= 0xC6
