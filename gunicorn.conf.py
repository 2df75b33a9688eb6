"""How `gunicorn unified_api:app` serves Citu; `python unified_api.py` uses the same options.

Every running question holds one thread while its client is connected, so the number of threads follows MAX_STREAMS.
"""

from dotenv import load_dotenv

from app_config import Settings
from common.serving import gunicorn_options

load_dotenv()
_settings = Settings.from_env()
bind = f"{_settings.host}:{_settings.port}"
globals().update(gunicorn_options(_settings.max_streams))
