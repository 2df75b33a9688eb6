"""Makes pictures of the page as its users see it, on the demo database and by rules, or with a
scripted model.

python -m tests.page.pictures               the two of the READMEs, into docs/images
python -m tests.page.pictures --all FOLDER  every scene in both languages, wide and narrow, light
                                            and dark: to look at
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from common.text import language_of
from tests.page.browsers import browser_path, flags
from tests.page.browsing import ASK, ask, opened
from tests.support.live import ROOT, serving_afresh
from tests.support.openai_replies import Reply, Request
from tests.support.openai_server import OpenAiServer
from tests.support.tool_scripts import calling, following

LANGUAGES = {"zh": "zh-CN", "en": "en-US"}
DOCS = {"zh": "page.png", "en": "page-en.png"}
WIDE, NARROW = {"width": 1100, "height": 1180}, {"width": 390, "height": 844}
_SQL = (
    "SELECT category, count(*) AS shops FROM shop WHERE NOT is_deleted GROUP BY category "
    "ORDER BY shops DESC"
)
_TOLD = {
    "zh": "小吃和餐饮类店铺最多。",
    "en": "Snack bars and restaurants are the most common kinds of shops.",
}


def _using_tools(request: Request) -> Reply:
    """Asks for the rows, then says what is in them."""
    lang = language_of(
        next(message["content"] for message in request.messages[::-1] if message["role"] == "user")
    )
    return following((calling("run_sql", sql=_SQL), Reply(_TOLD[lang])))(request)


@dataclass(frozen=True)
class Scene:
    """What is done on the page before its picture is taken; `questions` by language.

    Attributes:
        needs_model: whether it is shown by the Citu that has a model.
        prepare: is called with the page before the questions.
        finish: is called afterwards.
    """

    questions: Mapping[str, tuple[str, ...]]
    needs_model: bool = False
    prepare: Callable[[Page], Any] = lambda _: None
    finish: Callable[[Page], Any] = lambda _: None


def _choose_tools(page: Page) -> None:
    page.locator("#settings > summary").click()
    page.locator("#agent").select_option("tool_loop")
    page.locator("#settings > summary").click()


def _unfold(page: Page) -> None:
    page.locator(".turn .steps > summary").last.click()


def _reload(page: Page) -> None:
    page.reload()
    expect(page.locator(".turn.past").last).to_be_visible()


def _cut_off(page: Page) -> None:
    page.route(ASK, lambda route: route.abort())


def _open_semantic(page: Page) -> None:
    page.locator("#show-reviews").click()
    page.locator(".to-semantic").click()
    page.locator(".semantic-entry").nth(1).locator("summary").click()


_CHART = {"zh": ("上个月各经营类别的营业收入",), "en": ("revenue by shop category last month",)}
_REFUSED = {"zh": ("删除所有店铺",), "en": ("delete all shops",)}
SCENES = {
    "welcome": Scene({"zh": (), "en": ()}),
    "chart": Scene(_CHART),
    "series": Scene(
        {
            "zh": ("2026年每月营业收入", "趋势怎么样"),
            "en": ("revenue per month in 2026", "what is the trend?"),
        }
    ),
    "number": Scene({"zh": ("上个月的营业收入",), "en": ("revenue last month",)}),
    "refusal": Scene(_REFUSED),
    "unclear": Scene({"zh": ("最好的服务区",), "en": ("the best service area",)}),
    "error": Scene(_CHART, prepare=_cut_off),
    "wrong-sql": Scene({"zh": ("SELECT nam FROM shop",), "en": ("SELECT nam FROM shop",)}),
    "reopened": Scene(
        {lang: (*_REFUSED[lang], *_CHART[lang]) for lang in LANGUAGES}, finish=_reload
    ),
    "semantic": Scene({"zh": (), "en": ()}, finish=_open_semantic),
    "tools": Scene(
        {"zh": ("哪类店铺最多？",), "en": ("Which kinds of shops are most common?",)},
        needs_model=True,
        prepare=_choose_tools,
        finish=_unfold,
    ),
}


@contextmanager
def _citus(folder: Path) -> Iterator[Callable[[Scene], str]]:
    """Gives the base URL of a Citu for a scene; one without a model, and one with a scripted one,
    over one demo.
    """
    with ExitStack() as stack:
        model = stack.enter_context(OpenAiServer(_using_tools))
        endpoint = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "scripted"}
        made: dict[bool, str] = {}

        def url(scene: Scene) -> str:
            if scene.needs_model not in made:
                given = endpoint if scene.needs_model else {}
                log = folder / f"log-{scene.needs_model}"
                citu = stack.enter_context(
                    serving_afresh(log, DATA_DIR=str(folder / "var"), **given)
                )
                made[scene.needs_model] = f"http://127.0.0.1:{citu.port}"
            return made[scene.needs_model]

        yield url


def take(
    browser: Browser, base_url: str, scene: Scene, lang: str, path: Path, **context: Any
) -> None:
    """Plays the scene in a new window and writes its picture; fails where the page reports a
    problem.
    """
    with opened(browser, base_url, locale=LANGUAGES[lang], **context) as page:
        expect(page.locator(".example").first).to_be_visible()
        scene.prepare(page)
        for question in scene.questions[lang]:
            turn = ask(page, question)
            expect(turn).not_to_have_attribute("data-state", "running")
        scene.finish(page)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
            f"{path.name} scrolls sideways"
        )
        page.screenshot(path=path)


def _for_docs(browser: Browser, url: Callable[[Scene], str], folder: Path) -> None:
    scene = SCENES["chart"]
    for lang, name in DOCS.items():
        take(browser, url(scene), scene, lang, folder / name, viewport=WIDE)


def _all(browser: Browser, url: Callable[[Scene], str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    looks: dict[str, dict[str, Any]] = {
        "wide": {"viewport": WIDE},
        "wide-dark": {"viewport": WIDE, "color_scheme": "dark"},
        "narrow": {"viewport": NARROW},
        "narrow-dark": {"viewport": NARROW, "color_scheme": "dark"},
    }
    for name, scene in SCENES.items():
        for lang in LANGUAGES:
            for look, context in looks.items():
                take(
                    browser,
                    url(scene),
                    scene,
                    lang,
                    folder / f"{name}-{lang}-{look}.png",
                    **context,
                )


def main() -> None:
    """Makes them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", metavar="FOLDER", type=Path, help="every scene, into this folder")
    wanted: Path | None = parser.parse_args().all
    expect.set_options(timeout=60_000)  # for busy machines
    os.chdir(ROOT)
    with (
        tempfile.TemporaryDirectory(prefix="citu-pictures-") as folder,
        _citus(Path(folder)) as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=browser_path(), args=flags())
        if wanted is None:
            _for_docs(browser, url, ROOT / "docs/images")
        else:
            _all(browser, url, wanted.resolve())
        browser.close()


if __name__ == "__main__":
    main()
