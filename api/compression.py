"""Compresses the page's text on its way: markup, scripts, styles, drawings, OpenAPI.

What is under `/api/` goes as it is. Compressing it would hold back frames of a stream and blocks of
an export, and its bodies put what a caller sends beside what a caller may not know.
"""

from concurrent.futures import ThreadPoolExecutor

import brotli
from flask import Flask, Response, request
from flask_compress import Compress

_TEXTS = (
    "text/html",
    "text/css",
    "text/javascript",
    "application/javascript",
    "application/json",
    "image/svg+xml",
)


def register_compression(app: Flask) -> None:
    """Make `app` compress the page's text for clients that take it compressed."""
    app.config.update(
        COMPRESS_REGISTER=False,
        COMPRESS_MIMETYPES=list(_TEXTS),
        COMPRESS_ALGORITHM=["br", "gzip"],
        COMPRESS_BR_LEVEL=6,  # a tenth smaller than by 4, for 8 ms more of the largest file
        COMPRESS_STREAMS=False,
    )
    compress = Compress(app)
    smallest = _SmallestFiles()

    def compressed(response: Response) -> Response:
        if (
            request.path.startswith("/api/")
            or response.status_code != 200
            or response.mimetype not in _TEXTS
        ):
            return response

        response.direct_passthrough = False
        # Reads the file: one that is sent piece by piece counts as a stream, and stays as it is
        whole = response.get_data()
        response = compress.after_request(response)
        if response.content_encoding == "br" and request.path.startswith("/static/"):
            small = smallest.of(request.path, whole)
            if small is not None:
                response.set_data(small)

        return response

    app.after_request(compressed)


class _SmallestFiles:
    """Files of the page as small as they get, a tenth smaller than at the level of each request.

    That takes up to half a second of a file, once, in a thread beside the requests; until then they
    are sent as they are compressed for each.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, bytes | None]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="compression")

    def of(self, path: str, whole: bytes) -> bytes | None:
        """Return the file's smallest form if it is there already, else have it made."""
        version = hash(whole)
        known, small = self._found.get(path, (None, None))
        if known != version:
            self._found[path] = (version, None)
            self._thread.submit(self._make, path, version, whole)

        return small if known == version else None

    def _make(self, path: str, version: int, whole: bytes) -> None:
        self._found[path] = (version, brotli.compress(whole))
