"""The drawer of files: a file is dropped, checked, loaded and asked."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.page.browsing import ask, axe_violations, expect_state, load_axe, opened
from tests.support.live import serving

SALES = "report,,\nNo,region,price\n1,north,1200\n2,south,x\nTotal,,1500\n"


@pytest.fixture(scope="module")
def address(
    make_database: Callable[[str], str],
    make_app_database: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("page_files")
    shop = make_database("CREATE TABLE product (product_id int PRIMARY KEY, colour text);")
    settings = {
        "DATABASE_URL": shop,
        "WORKSPACE_URL": make_app_database(),
        "DATA_DIR": str(folder),
    }
    with serving(folder / "log", model=None, **settings) as citu:
        yield f"http://127.0.0.1:{citu.port}"


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), pytest.param(390, "dark", marks=pytest.mark.slow)]
)
def test_a_file_is_checked_loaded_asked_and_deleted(
    browser: Browser, address: str, tmp_path: Path, width: int, scheme: str
) -> None:
    file, other = tmp_path / "sales.csv", tmp_path / "other.pdf"
    file.write_text(SALES, "utf-8")
    other.write_bytes(b"%PDF-1.4")
    view = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    with opened(browser, address, locale="en-GB", **view) as page:
        page.get_by_role("button", name="Files").click()
        drawer = page.locator("#files")
        chooser = drawer.get_by_label("Drop a CSV")
        chooser.set_input_files(str(other))
        expect(drawer.locator(".failure")).to_contain_text("PDF files can't be read")
        chooser.set_input_files(str(file))
        form = drawer.locator(".file-draft")
        expect(form.get_by_label("Header row")).to_have_value("2")
        expect(form.get_by_label("Type of price")).to_have_value("text")
        expect(form).to_contain_text("the last row sums the others, and is left out (row 5)")
        form.get_by_label("Type of price").select_option("numeric")
        form.get_by_role("button", name="Read again").click()
        expect(form).to_contain_text("values that are no numeric would be left empty (row 4)")
        load_axe(page)
        assert axe_violations(page) == []
        form.get_by_label("Table").fill("orders")
        form.get_by_role("button", name="Confirm and load").press("Enter")
        item = drawer.locator(".file-item")
        expect(item).to_contain_text("orders · 2 rows")
        expect(item).to_contain_text("price: 1 value left empty")
        assert axe_violations(page) == []
        item.get_by_role("button", name="Ask about it").click()
        expect(page.get_by_label("Database")).to_have_value("files")
        turn = ask(page, "total price by region")
        expect_state(turn, "done")
        expect(turn).to_contain_text("1,200")
        held: list[Route] = []
        page.route("**/api/v0/files?*", lambda route: held.append(route), times=1)
        with page.expect_request("**/api/v0/files?*"):
            page.get_by_role("button", name="Files").click()
        expect(item).to_have_count(0)  # nothing of the list before is offered meanwhile
        held[0].continue_()
        page.on("dialog", lambda dialog: dialog.accept())
        item.get_by_role("button", name="Delete").click()
        expect(item).to_have_count(0)
        expect(page.get_by_label("Database")).to_be_hidden()
