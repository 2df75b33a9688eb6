"""How `gunicorn unified_api:app` serves Citu; `python unified_api.py` uses the same options.

Every running question holds one thread while its client is connected, so MAX_STREAMS decides the
number of threads.
"""

import sys
from typing import Any

from dotenv import load_dotenv

from api.access.key_file import KeyFile
from api.shared_key_store import fetch_shared_keys
from app_config import ConfigurationError, Settings
from serving.listen_address import OpenToOthers, PortUnavailable, refuse_strangers
from serving.measuring_workers import begin_measuring
from serving.worker import gunicorn_options

load_dotenv()
try:
    _settings = Settings.from_env()
except ConfigurationError as error:
    sys.exit(f"Citu can't start. {error}")
bind = (
    f"[{_settings.host}]:{_settings.port}"
    if ":" in _settings.host
    else f"{_settings.host}:{_settings.port}"
)
globals().update(
    gunicorn_options(
        _settings.max_streams,
        question_s=_settings.request_timeout_s,
        drain_s=_settings.drain_s,
        connections_per_address=_settings.max_connections_per_address,
        trusted_proxies=_settings.trusted_proxies,
        is_measured=_settings.is_measured,
    )
)


def on_starting(_arbiter: Any) -> None:
    """Gunicorn calls it once, in the master process, before it starts workers."""
    try:
        begin_measuring(_settings)
    except PortUnavailable as error:
        sys.exit(f"Citu can't start. {error}")


def when_ready(arbiter: Any) -> None:
    """Gunicorn calls it before it starts workers; checks the open sockets, wherever their addresses
    were set.
    """
    fetch_shared_keys(_settings)
    try:
        refuse_strangers(
            arbiter.LISTENERS,
            keys=KeyFile(_settings.api_keys_path),
            is_open=_settings.allow_anonymous or _settings.knows_callers,
        )
    except OpenToOthers as error:
        sys.exit(f"Citu can't start. {error}")

    sys.stdout.write(f"Citu is ready: {', '.join(map(str, arbiter.LISTENERS))}\n")
    sys.stdout.flush()
