"""A secret key that all processes of a host share, made by whichever of them needs it first."""

import secrets
from contextlib import suppress
from pathlib import Path

_KEY_BYTES = 32


def kept_key(path: Path) -> str:
    """Return the key that is kept in a file, which is made where there is none.

    All processes that share the folder get the same one, whichever of them comes first.
    """
    with suppress(FileNotFoundError):
        return path.read_text().strip()

    path.parent.mkdir(parents=True, exist_ok=True)
    own = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    own.touch(mode=0o600)
    own.write_text(secrets.token_hex(_KEY_BYTES))
    try:
        path.hardlink_to(own)
    except FileExistsError:
        pass  # another process was faster
    finally:
        own.unlink()

    return path.read_text().strip()
