"""Takes the file of a multipart request to disk, without holding it in memory."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from flask import Request
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.formparser import FormDataParser
from werkzeug.http import parse_options_header

from api.fields import UNUSABLE
from common.errors import BodyTooLarge, InvalidRequest
from common.text import Text

FORM_BYTES = 64 * 1024
"""Of a multipart body, beside the file."""
_MOST_PARTS = 10
_LONGEST_NAME = 200
_MEGABYTE = 1024 * 1024
_NO_FILE = Text(
    '缺少 file：请用 multipart/form-data 上传，例如 curl -F "file=@销售.csv"。',
    'file is missing: send it as multipart/form-data, for example curl -F "file=@sales.csv".',
)


@dataclass(frozen=True)
class Upload:
    """A file that has come.

    Attributes:
        path: where it is; whoever takes it moves or removes it.
        name: what its user calls it, without folders.
        fields: the other fields of the form.
    """

    path: Path
    name: str
    fields: dict[str, Any]


def taken_upload(request: Request, begin: Callable[[], Path], max_bytes: int) -> Upload:
    """Write the file of a request to disk.

    Args:
        begin: gives a path that is free.

    Raises:
        BodyTooLarge: it is larger than `max_bytes`.
        InvalidRequest: there is no file in the request, or it was cut off.
    """
    usual = request.max_content_length
    request.max_content_length = max_bytes + FORM_BYTES
    paths: list[Path] = []
    opened: list[IO[bytes]] = []

    def stream(
        total_content_length: int | None,  # noqa: ARG001 - werkzeug names what it gives
        content_type: str | None,  # noqa: ARG001
        filename: str | None,  # noqa: ARG001
        content_length: int | None = None,  # noqa: ARG001
    ) -> IO[bytes]:
        paths.append(begin())
        opened.append(paths[-1].open("w+b"))
        return opened[-1]

    try:
        return _parse_upload(request, stream, paths)
    except BaseException as error:
        for path in paths:
            path.unlink(missing_ok=True)

        if isinstance(error, RequestEntityTooLarge):
            raise _too_large(max_bytes) from error
        if isinstance(error, OSError | ValueError):
            raise InvalidRequest(_NO_FILE, field="file") from error

        raise
    finally:
        for file in opened:
            file.close()

        request.max_content_length = usual  # else whoever reads what is left has it in memory


def _parse_upload(request: Request, stream: Any, paths: list[Path]) -> Upload:
    mimetype, options = parse_options_header(request.headers.get("Content-Type"))
    if mimetype != "multipart/form-data":
        raise InvalidRequest(_NO_FILE, field="file")

    parser = FormDataParser(
        stream_factory=stream,
        max_content_length=request.max_content_length,
        max_form_parts=_MOST_PARTS,
    )
    _, form, files = parser.parse(request.stream, mimetype, request.content_length, options)
    found = files.get("file")
    if found is None or len(paths) != 1:
        raise InvalidRequest(_NO_FILE, field="file")

    name = UNUSABLE.sub("", found.filename or "").replace("\\", "/").rpartition("/")[2]
    return Upload(paths[0], name[-_LONGEST_NAME:] or "file", form.to_dict())


def _too_large(max_bytes: int) -> BodyTooLarge:
    size = f"{max_bytes / _MEGABYTE:g} MB"
    return BodyTooLarge(
        Text(f"文件过大，最多 {size}。", f"The file is too large; at most {size}."), field="file"
    )
