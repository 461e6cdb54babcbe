"""The HTML report in a real Chromium: it opens without a complaint or a request, draws, filters, and is read by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_ascend_e2e.report.html import write_html
from tests.fakes.browser import Browser, browser, chromium
from tests.fakes.reports import broken_run, green_run, hostile_run, red_run

pytestmark = pytest.mark.skipif(chromium() is None, reason="needs Chromium (Debian: apt-get install chromium)")

RED = "run-test_grpo-2"
# What part of a chart's pixels is painted, in thousandths.
PAINTED = """
[...document.querySelectorAll("section:target figure[data-chart] canvas")].map((canvas) => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let painted = 0;
  for (let i = 3; i < pixels.length; i += 4) painted += pixels[i] > 0;
  return Math.round(4000 * painted / pixels.length);
})
"""
SHOWN = "[...document.querySelectorAll('#overview tbody tr:not([hidden]) a')].map((link) => link.textContent)"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    path = root / "report.html"
    write_html([green_run(root), red_run(root), broken_run(root), hostile_run(root)], path)
    return path


@pytest.fixture(scope="module")
def shared_page() -> Iterator[Browser]:
    with browser() as page:
        yield page


@pytest.fixture
def page(shared_page: Browser, report: Path) -> Iterator[Browser]:
    """Give the report opened at its overview; whatever a test does with it, nothing was complained of and nothing asked for."""
    shared_page.open("about:blank")
    shared_page.requests.clear()
    shared_page.resize(1280, 900)
    shared_page.open(report.as_uri())

    yield shared_page

    assert shared_page.complaints == []
    assert shared_page.requests == [report.as_uri()]


def open_run(page: Browser, anchor: str) -> None:
    page.evaluate(f"location.hash = {anchor!r}")
    page.wait_for(f"document.getElementById({anchor!r}).dataset.drawn")


def test_only_the_overview_shows_at_first(page: Browser) -> None:
    shown = page.evaluate("[...document.querySelectorAll('section')].filter((s) => s.offsetHeight).map((s) => s.id)")

    assert shown == ["overview"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_run_s_charts_are_drawn_when_its_page_opens(page: Browser, scheme: str) -> None:
    page.prefer(scheme)
    assert page.evaluate("document.querySelectorAll('canvas').length") == 0

    open_run(page, RED)

    painted = page.evaluate(PAINTED)
    assert len(painted) == page.evaluate("document.querySelectorAll('section:target figure[data-chart]').length") > 12
    assert min(painted) > 3
    assert page.evaluate("document.getElementById('overview').offsetHeight") == 0
    assert page.evaluate("document.activeElement.tagName") == "H2"
    assert page.evaluate("document.title").startswith("test_grpo, test_grpo-2")


def test_every_page_opens_even_one_whose_every_text_is_markup(page: Browser) -> None:
    anchors = page.evaluate("[...document.querySelectorAll('#overview tbody a')].map((link) => link.getAttribute('href').slice(1))")

    for anchor in anchors:
        open_run(page, anchor)
        page.evaluate("document.querySelectorAll('section:target details').forEach((details) => { details.open = true; })")

    assert len(anchors) == 4
    assert page.evaluate("document.querySelectorAll('img, iframe, section b script').length") == 0


def test_a_red_page_shows_what_lines_cannot(page: Browser) -> None:
    open_run(page, RED)

    told = page.evaluate("document.querySelector('section:target').innerText")
    assert "actor/grad_norm: NaN at step 4" in told
    assert "actor/entropy: no value at steps 6..7" in told


@pytest.mark.parametrize(
    ("control", "value", "shown"),
    [
        ("text", "DAPO memory", ["test_dapo"]),
        ("text", "nothing like it", []),
        ("verdict", "passed", ["test_grpo"]),
        ("runner", "a3-4", ["test_grpo", "test_grpo", "test_dapo"]),
    ],
)
def test_the_filters_leave_the_rows_that_fit(page: Browser, control: str, value: str, shown: list[str]) -> None:
    page.evaluate(
        f"(() => {{ const control = document.querySelector('[name={control}]'); control.value = {value!r};"
        "control.dispatchEvent(new Event('input')); })()"
    )

    assert page.evaluate(SHOWN) == shown
    assert page.evaluate("document.querySelector('.filters output').textContent") == f"{len(shown)} of 4 runs shown"


def test_a_column_sorts_up_and_down(page: Browser) -> None:
    button = "[...document.querySelectorAll('#overview thead button')].find((button) => button.textContent === 'steps')"
    page.evaluate(f"{button}.click()")
    upwards = page.evaluate(SHOWN)
    page.evaluate(f"{button}.click()")

    assert upwards[0] == "test_dapo"
    assert page.evaluate(SHOWN)[-1] == "test_dapo"
    assert page.evaluate(f"{button}.parentElement.getAttribute('aria-sort')") == "descending"


def test_the_keyboard_leads_from_the_overview_into_a_chart(page: Browser) -> None:
    page.evaluate("document.querySelector('#overview tbody a').focus()")
    page.press("Enter")
    page.wait_for("document.querySelector('section:target')?.dataset.drawn")
    page.evaluate("document.querySelector('section:target .plot').focus()")
    page.press("End")
    page.press("ArrowLeft")

    said = page.evaluate("document.querySelector('section:target figure .unseen').textContent")

    assert said.startswith("step 14: critic/rewards/mean 0.")


def test_values_are_there_as_a_table_too(page: Browser) -> None:
    open_run(page, RED)
    find = "[...document.querySelectorAll('section:target figure')].find((f) => f.innerText.startsWith('Gradient norm'))"
    page.evaluate(f"{find}.querySelector('details').open = true")
    page.wait_for(f"{find}.querySelector('table')")

    rows = page.evaluate(f"[...{find}.querySelectorAll('tbody tr')].map((row) => row.innerText)")

    assert len(rows) == 15
    assert rows[3].split() == ["4", "NaN"]
    assert rows[8].split() == ["9", "inf"]


def test_any_metric_can_be_drawn(page: Browser) -> None:
    open_run(page, RED)
    page.evaluate(
        "(() => { const select = document.querySelector('section:target .any select'); select.value = 'response/aborted_ratio';"
        "select.dispatchEvent(new Event('change')); })()"
    )

    assert page.evaluate("document.querySelector('section:target .any .key').textContent").strip() == "response/aborted_ratio"
    assert page.evaluate("document.querySelectorAll('section:target .any canvas').length") == 1


def test_a_phone_shows_everything_without_scrolling_sideways(page: Browser) -> None:
    page.resize(390, 844, is_phone=True)
    for anchor in ("overview", RED):
        page.evaluate(f"location.hash = {anchor!r}")
        page.wait_for(f"document.getElementById({anchor!r}).offsetHeight")

        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_every_control_has_a_name_and_every_table_a_caption(page: Browser) -> None:
    page.call("Accessibility.enable")
    open_run(page, RED)
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]

    nameless = [
        node["role"]["value"]
        for node in nodes
        if node.get("role", {}).get("value") in {"button", "link", "combobox", "searchbox", "image", "region", "table"}
        and not node.get("ignored")
        and not node.get("name", {}).get("value")
    ]

    assert nameless == []
