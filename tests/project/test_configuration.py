"""Settings: what the environment may say, and that the documentation says the same as the code."""

import re
import runpy
from dataclasses import fields
from pathlib import Path

import pytest

from app_config import ConfigurationError, Settings
from common.logs import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
NAMES = [field.name.upper() for field in fields(Settings)]


def test_the_page_and_the_example_file_are_made_from_the_settings() -> None:
    made = runpy.run_path(str(ROOT / "docs/make_settings.py"))
    advice = "run `python docs/make_settings.py`"
    assert made["page"]() == (ROOT / "docs/configuration.md").read_text(), advice
    assert made["example"]() == (ROOT / ".env.example").read_text(), advice
    documented = re.findall(r"^\| `([A-Z_]+)` \|", made["page"](), re.MULTILINE)
    assert sorted(documented) == sorted(NAMES), "a section has no table on the page"
    assert made["page_in_chinese"]() == (ROOT / "docs/zh/configuration.md").read_text(), advice
    assert list(made["meanings_in_chinese"]()) == NAMES, "the meaning in Chinese is missing"


def test_every_setting_is_read_somewhere() -> None:
    sources = [
        *ROOT.glob("*.py"),
        *(path for top in PACKAGES for path in (ROOT / top).rglob("*.py")),
    ]
    code = "\n".join(path.read_text() for path in sources if path.name != "app_config.py")
    code = code.replace("data_path", "data_dir").replace("api_keys_path", "api_keys_file")
    unread = [name for name in NAMES if f".{name.lower()}" not in code]
    assert unread == []


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Settings.from_env({}) == Settings()
    assert Settings.from_env(dict.fromkeys(NAMES, " ")) == Settings()


def test_values_are_converted() -> None:
    settings = Settings.from_env(
        {
            "PORT": "9000",
            "STATEMENT_TIMEOUT_S": "1.5",
            "ENABLE_AUTO_REPAIR": "off",
            "LLM_MAX_RETRIES": "0",
        }
    )
    assert (settings.port, settings.statement_timeout_s) == (9000, 1.5)
    assert (settings.enable_auto_repair, settings.llm_max_retries) == (False, 0)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("PORT", "0", "between 1 and 65535"),
        ("PORT", "http", "between 1 and 65535"),
        ("PORT", "70000", "between 1 and 65535"),
        ("MAX_ROWS", "-1", "positive"),
        ("MAX_ROWS", "2.5", "whole number"),
        ("STATEMENT_TIMEOUT_S", "nan", "positive number"),
        ("STATEMENT_TIMEOUT_S", "inf", "positive number"),
        ("PING_INTERVAL_S", "16", "at most 15"),
        ("HISTORY_TURNS", "51", "at most 50"),
        ("LLM_MAX_RETRIES", "-1", "0 or more"),
        ("ENABLE_RESULT_SUMMARY", "maybe", "true or false"),
        ("ROUTING_MODE", "fast", "hybrid, llm_only"),
        ("LOG_LEVEL", "chatty", "DEBUG"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(name: str, value: str, allowed: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Settings.from_env({name: value})
    assert name in str(caught.value)
    assert allowed in str(caught.value)
