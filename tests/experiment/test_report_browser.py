"""The site in a real browser, from disk: figures are drawn, answer, follow the theme, and complain of nothing."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command import p4perf
from support.runs import make_run

from p4perf.experiment.evaluate import evaluate_run
from p4perf.experiment.report.site import find_sources, write_site
from p4perf.results import Run

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")
DRAWN = "html[data-figures=drawn]"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    for target, step in (("dpdk-c", 1.0), ("xdp", 2.0)):
        run = make_run(
            folder / "runs", lambda x, step=step: (100 if x < 1000 else 300) + step * x**0.3, target=target, noise=0.05
        )
        evaluate_run(Run.open(run), plots=False)
    asked = ("predict", "mat/exact-entries", "--target", "dpdk-c", "--points", "1", "-o", "predicted")
    done = p4perf(*asked, cwd=folder)
    assert done.code == 0, done.err
    return write_site(find_sources([folder / "runs", folder / "predicted"]), folder / "site").path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page whose errors, failed requests and requests of a network fail the test."""
    found = browser.new_page(viewport={"width": 1100, "height": 900})
    wrong: list[str] = []
    found.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("request", lambda r: wrong.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None)
    found.on("requestfailed", lambda r: wrong.append(f"failed: {r.url}"))
    yield found
    found.close()
    assert wrong == []


def run_page(site: Path) -> str:
    (path,) = site.glob("runs/*dpdk-c*.html")
    return path.as_uri()


def test_the_index_leads_to_pages_that_are_there(page: Any, site: Path) -> None:
    page.goto((site / "index.html").as_uri())
    for link in page.eval_on_selector_all("main a", "all => all.map(a => a.href)"):
        assert Path(link.removeprefix("file://")).is_file()
    page.click("td a >> nth=0")
    assert "mat/exact-entries on dpdk-c" in page.inner_text("h1")


@pytest.mark.thorough
def test_hovering_shows_a_repetition_and_the_switch_changes_the_axis(page: Any, site: Path) -> None:
    page.goto(run_page(site))
    page.wait_for_selector(DRAWN)
    axis = "document.querySelector('.plot')._fullLayout.xaxis.type"
    assert page.evaluate(axis) == "log"
    place = page.evaluate(
        """() => {
          const plot = document.querySelector(".plot"), full = plot._fullLayout, box = plot.getBoundingClientRect();
          const named = (name) => plot.data.find((trace) => (trace.name || "").startsWith(name));
          const trials = named("repetitions"), medians = named("median");
          const away = (at) => Math.abs(full.yaxis.d2p(trials.y[at])
            - full.yaxis.d2p(medians.y[medians.x.indexOf(trials.x[at])]));
          const at = trials.x.map((_, index) => index).sort((a, b) => away(b) - away(a))[0];
          return [box.x + full.xaxis._offset + full.xaxis.d2p(trials.x[at]),
                  box.y + full.yaxis._offset + full.yaxis.d2p(trials.y[at])];
        }"""
    )
    page.mouse.move(*place)
    page.wait_for_selector(".hoverlayer .hovertext")
    assert "repetition" in page.text_content(".hoverlayer")
    button = page.locator("button[data-switch=logx]")
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert page.evaluate(axis) == "linear"


@pytest.mark.thorough
def test_switches_take_residuals_away(page: Any, site: Path) -> None:
    page.goto(run_page(site))
    page.wait_for_selector(DRAWN)
    assert page.evaluate("'yaxis2' in document.querySelector('.plot').layout")
    page.click("button[data-switch=lower]")
    assert not page.evaluate("'yaxis2' in document.querySelector('.plot').layout")


@pytest.mark.thorough
def test_the_comparison_has_every_target(page: Any, site: Path) -> None:
    page.goto(next(site.glob("experiments/*.html")).as_uri())
    page.wait_for_selector(DRAWN)
    assert {"dpdk-c", "xdp"} <= set(page.evaluate("document.querySelector('.plot').data.map((t) => t.name)"))


@pytest.mark.thorough
def test_a_prediction_shows_its_breakdown(page: Any, site: Path) -> None:
    page.goto(next(site.glob("predictions/*.html")).as_uri())
    page.wait_for_selector(DRAWN)
    shown = page.evaluate("document.querySelector('.plot').data.flatMap((t) => t.y)")
    rows = page.locator("[aria-label='Cost breakdown'] tbody th").all_inner_texts()
    assert len(shown) == len(rows) > 1
    assert "baseline" in shown


@pytest.mark.thorough
def test_labels_of_splits_leave_their_points_free(page: Any, site: Path) -> None:
    page.goto(run_page(site))
    page.wait_for_selector(DRAWN)
    gaps = page.evaluate(
        """() => {
          const plot = document.querySelector(".plot"), full = plot._fullLayout, left = plot.getBoundingClientRect().x;
          return full.annotations.map((label, at) => [label, at]).filter(([label]) => label.text.startsWith("break"))
            .map(([label, at]) => {
              const box = plot.querySelector(`.annotation[data-index="${at}"] .bg`).getBoundingClientRect();
              return left + full.xaxis._offset + full.xaxis.r2p(label.x) - box.right;
            });
        }"""
    )
    assert gaps
    assert all(4 < gap < 20 for gap in gaps), gaps


@pytest.mark.thorough
def test_dark_mode_and_print_have_figures_of_their_own(page: Any, site: Path) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(run_page(site))
    page.wait_for_selector(DRAWN)
    ground = "document.querySelector('.plot')._fullLayout.paper_bgcolor"
    assert page.evaluate(ground) == "#15171a"
    page.emulate_media(color_scheme="dark", media="print")
    page.wait_for_selector(".plot[data-ground='#fff']")
    assert page.evaluate(ground) == "#fff"
    assert page.is_hidden(".switches")
    assert page.evaluate("document.querySelector('.plot')._fullLayout.width") <= 700, "as wide as paper"
    page.emulate_media(color_scheme="dark", media="screen")
    page.wait_for_selector(".plot[data-ground='#15171a']")
    assert page.pdf(format="A4")[:5] == b"%PDF-"


@pytest.mark.thorough
def test_pages_fit_a_telephone_and_the_first_tab_stop_skips_to_the_content(page: Any, site: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(run_page(site))
    page.wait_for_selector(DRAWN)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"


def test_without_a_script_the_tables_are_there(browser: Any, site: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(run_page(site))
    assert "needs JavaScript" in page.inner_text("noscript, figure")
    assert page.locator("table tbody tr").count() > 13
    page.close()
