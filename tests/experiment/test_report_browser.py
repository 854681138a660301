"""The site in a real browser, from disk: what is drawn, answers and fits, at three widths, dark and light."""

import csv
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import support.runs
from PIL import Image
from support.command import p4perf
from support.runs import make_run

from p4perf.experiment.campaign_report import write_report
from p4perf.experiment.evaluate import evaluate_run, point_rows
from p4perf.experiment.report.site import find_sources, write_site
from p4perf.experiment.sizing import Cell
from p4perf.results import Run
from p4perf.results.campaign import CampaignDirectory

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")
DRAWN = "html[data-figures=drawn]"
MARK_COLOUR = (0x00, 0x72, 0xB2)
"""Of medians, on a light ground."""
WIDTHS, THEMES = (400, 900, 1400), ("light", "dark")
PAGES = {
    "index": "index.html",
    "matrix": "matrix.html",
    "run": "runs/mat*dpdk-c*20261103*.html",
    "comparison": "experiments/mat*.html",
    "history": "history/*.html",
    "prediction": "predictions/*.html",
    "campaign": "catalogue*/report.html",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    with pytest.MonkeyPatch.context() as patch:
        for day, target, step in ((1, "dpdk-c", 1.0), (2, "dpdk-c", 1.0), (3, "dpdk-c", 1.3), (3, "xdp", 2.0)):
            patch.setattr(support.runs, "NOW", datetime(2026, 11, day, tzinfo=UTC))
            curve = lambda x, step=step: (100 if x < 1000 else 300) + step * x**0.3  # noqa: E731
            table = {"working_set": {"fixed_bytes": 0, "bytes_per_entry": 64}}
            caches = {"cache_l1_bytes": "32768", "cache_l2_bytes": "1048576", "cache_l3_bytes": "20185088"}
            run = make_run(folder / "runs", curve, target=target, noise=0.05, node=caches, manifest=table)
            evaluate_run(Run.open(run), plots=False)
        make_run(folder / "runs", lambda x: 90 + x, spec="parser/headers", overrides=(), testbed="netns", starts=2)
    asked = ("predict", "mat/exact-entries", "--target", "dpdk-c", "--points", "1", "-o", "predicted")
    done = p4perf(*asked, cwd=folder)
    assert done.code == 0, done.err
    campaign = a_campaign(folder)
    return write_site(find_sources([folder / "runs", folder / "predicted", campaign]), folder / "site").path


def a_campaign(folder: Path) -> Path:
    """A campaign of three targets, of which one cannot be used, with its report and its figures."""
    name = "parser/headers"
    request = {"experiments": [name], "sources": [name], "targets": ["dpdk-c", "xdp", "bmv2"], "testbed": "local",
               "budget_s": None, "overrides": [], "points": None}  # fmt: skip
    campaign = CampaignDirectory.create(folder, "catalogue", request, datetime(2026, 11, 4, tzinfo=UTC))
    cells = []
    for target, step in (("dpdk-c", 1), ("xdp", 3)):
        run = make_run(
            campaign.runs, lambda x, step=step: 90 + step * x, spec=name, overrides=(), target=target, starts=2
        )
        evaluate_run(Run.open(run), plots=False)
        points = len(Run.open(run).manifest.points)
        cells.append(Cell(name, target, "measured", run=f"runs/{run.name}", points=points, accepted=points))
    why = "simple_switch is not on the PATH: install the package p4lang-bmv2, then resume the campaign"
    cells.append(Cell(name, "bmv2", "unavailable", reason=why))
    campaign.update({"cells": [asdict(cell) for cell in cells], "spent_s": 60.0})
    write_report(campaign, cells)
    return campaign.path


def address(site: Path, name: str) -> str:
    (path,) = (site.parent if name == "campaign" else site).glob(PAGES[name])
    return path.as_uri()


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


def wait_until(page: Any, condition: str) -> None:
    """As wait_for_function of playwright, which the policy of the pages forbids."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(condition)


def picture(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("L"), dtype=float)


def ink(image: np.ndarray, cells: int = 12) -> np.ndarray:
    """How much is drawn in each cell of a grid, whatever is the ground: blurred, so that fonts do not matter."""
    drawn = (np.abs(image - np.median(image)) > 40).astype(float)
    rows = np.array_split(drawn, cells)
    return np.array([[block.mean() for block in np.array_split(row, cells, axis=1)] for row in rows])


def alike(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.corrcoef(ink(one).ravel(), ink(other).ravel())[0, 1])


STRUCTURE = """() => {
  const seen = (e) => e.checkVisibility({visibilityProperty: true}) && e.getBoundingClientRect().width > 0;
  const name = (e) => `${e.tagName} ${e.getAttribute("class") || ""} ${e.textContent.trim().slice(0, 30)}`;
  const kinds = ["button", "h1", "h2", "p", "input", "select", "figcaption", "td", "tbody th", "li", ".plot text"];
  const texts = [...document.querySelectorAll(kinds.map((kind) => `main ${kind}`).join(", "))]
    .filter(seen).filter((e) => e.textContent.trim() || e.matches("input"));
  const boxes = texts.map((e) => [e, e.getBoundingClientRect()]).sort((a, b) => a[1].top - b[1].top);
  const wrong = [];
  for (let i = 0; i < boxes.length; i++) {
    const [a, one] = boxes[i];
    const outside = one.left < -1 || one.right > innerWidth + 1;
    if (outside && !a.closest("table.matrix, pre")) wrong.push(`outside: ${name(a)}`);
    if (a.matches("td, th") && a.scrollWidth > a.clientWidth + 1) wrong.push(`cut: ${name(a)}`);
    for (let j = i + 1; j < boxes.length && boxes[j][1].top < one.bottom - 2; j++) {
      const [b, other] = boxes[j];
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (across > 2 && down > 2 && !a.contains(b) && !b.contains(a)) wrong.push(`overlap: ${name(a)} / ${name(b)}`);
    }
  }
  for (const table of [...document.querySelectorAll(".scroll > table")].filter(seen)) {
    const whole = table.getBoundingClientRect().right <= table.parentElement.getBoundingClientRect().right + 1;
    if (!whole && !(table.matches(".matrix") && innerWidth >= 800)) wrong.push(`cut: ${table.parentElement.ariaLabel}`);
  }
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) wrong.push(`the page is ${wide} px wide`);
  return wrong;
}"""


@pytest.mark.parametrize(
    "name", [n if n in ("index", "run") else pytest.param(n, marks=pytest.mark.thorough) for n in PAGES]
)
def test_nothing_is_cut_or_lies_over_anything_at_any_width_dark_or_light(page: Any, site: Path, name: str) -> None:
    page.goto(address(site, name))
    figures = page.locator(".plot").count()
    if figures:
        page.wait_for_selector(DRAWN, timeout=90_000)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 1000})
        shots = []
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            if figures:
                page.wait_for_selector(f".live[data-ground='{'#fff' if theme == 'light' else '#15171a'}']")
                wait_until(page, "document.querySelector('.live svg').clientWidth <= innerWidth")
            page.wait_for_timeout(50)
            page.evaluate("scrollTo(0, 0)")
            assert page.evaluate(STRUCTURE) == [], f"{width} px, {theme}"
            shots.append(picture(page.screenshot()))
            for figure in page.locator(".plot").all():
                drawn = picture(figure.screenshot())
                assert drawn.std() > 10, "the figure is not empty"
                assert (ink(drawn) > 0).mean() > 0.3, "and it fills its place"
        light, dark = shots
        assert np.median(light) > 200 > 60 > np.median(dark)
        assert alike(light, dark) > 0.9, f"dark and light differ in more than colours at {width} px"


PICTURES = Path(__file__).parents[1] / "data" / "report_pictures.json"
"""How much is drawn in each cell of figures that were looked at, from 0 to 9, by page and width.

Written anew by P4PERF_WRITE_PICTURES=1 pytest tests/experiment/test_report_browser.py -k as_it_was.
"""
LIKENESS = 0.95
"""Least correlation with what was looked at: other fonts give 0.98, lost medians 0.86, one lost segment only 0.96."""


def coarse(image: np.ndarray) -> list[str]:
    """A picture as 16 lines of 16 digits."""
    return ["".join(str(min(9, round(30 * cell))) for cell in row) for row in ink(image, 16)]


def likeness(one: list[str], other: list[str]) -> float:
    first, second = (np.array([[int(digit) for digit in row] for row in each]).ravel() for each in (one, other))
    return float(np.corrcoef(first, second)[0, 1]) if first.any() and second.any() else 0.0


def figure_at(page: Any, width: int) -> list[str]:
    page.set_viewport_size({"width": width, "height": 1000})
    wait_until(page, "document.querySelector('.live svg').clientWidth <= innerWidth")
    page.wait_for_timeout(100)
    return coarse(picture(page.locator(".plot").first.screenshot()))


@pytest.mark.parametrize("name", ["run", "comparison", "history"])
def test_figures_look_as_it_was_seen_to_be_right(page: Any, site: Path, name: str) -> None:
    known = json.loads(PICTURES.read_text()) if PICTURES.exists() else {}
    page.goto(address(site, name))
    page.wait_for_selector(DRAWN, timeout=90_000)
    found = {f"{name} {width}": figure_at(page, width) for width in WIDTHS}
    if os.environ.get("P4PERF_WRITE_PICTURES"):
        PICTURES.write_text(json.dumps(dict(sorted((known | found).items())), indent=1) + "\n")
    else:
        assert {key: likeness(grid, known[key]) for key, grid in found.items()} == {
            key: pytest.approx(1, abs=1 - LIKENESS) for key in found
        }


def test_another_font_looks_alike_and_a_figure_without_medians_does_not(page: Any, site: Path) -> None:
    known = json.loads(PICTURES.read_text())["run 900"]
    page.goto(address(site, "run"))
    page.wait_for_selector(DRAWN, timeout=90_000)
    figure_at(page, 900)
    restyle = (
        "(family) => document.querySelectorAll('.plot *').forEach((e) => e.style.setProperty('font-family', family))"
    )
    for family in ("serif", "monospace"):
        page.evaluate(restyle, family)
        assert likeness(coarse(picture(page.locator(".plot").first.screenshot())), known) > LIKENESS
    page.reload()
    page.wait_for_selector(DRAWN, timeout=90_000)
    page.click(".legend button >> text=median")
    assert likeness(figure_at(page, 900), known) < LIKENESS
    assert likeness(json.loads(PICTURES.read_text())["comparison 900"], known) < LIKENESS


def test_a_plain_screenshot_shows_the_figure(site: Path, tmp_path: Path) -> None:
    words = (str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}")
    shot = tmp_path / "shot.png"
    asked = (*words, "--window-size=900,1300", f"--screenshot={shot}", address(site, "run"))
    subprocess.run(asked, check=True, capture_output=True, timeout=120)
    colours = np.asarray(Image.open(shot).convert("RGB"), dtype=int)
    marks = np.abs(colours - MARK_COLOUR).max(axis=2) < 8
    assert marks.sum() > 500, "medians and their intervals"
    assert np.ptp(np.nonzero(marks.any(axis=0))) > 500, "across the page"


def test_without_scripts_there_are_the_same_figure_and_all_tables(browser: Any, page: Any, site: Path) -> None:
    page.set_viewport_size({"width": 900, "height": 900})
    page.goto(address(site, "run"))
    page.wait_for_selector(DRAWN, timeout=90_000)
    plain = browser.new_page(java_script_enabled=False, viewport={"width": 900, "height": 900})
    plain.goto(address(site, "run"))
    still, drawn = (picture(p.locator(".plot").screenshot()) for p in (plain, page))
    assert plain.is_visible("svg.still")
    assert plain.locator("table tbody tr").count() > 13
    assert plain.is_hidden(".switches")
    plain.close()
    assert alike(still[:, : drawn.shape[1]], drawn) > 0.7


def test_the_index_leads_to_pages_that_are_there(page: Any, site: Path) -> None:
    page.goto((site / "index.html").as_uri())
    for link in page.eval_on_selector_all("main a", "all => all.map(a => a.href)"):
        assert Path(link.removeprefix("file://").partition("#")[0]).is_file()
    dots = page.eval_on_selector_all("table.index .thumb .dots", "all => all.map((e) => e.getAttribute('d'))")
    assert len(dots) == 7
    assert all(path.count("h0") > 5 for path in dots), "every median is a dot"
    page.click("table.index td a:not([aria-hidden]) >> nth=0")
    assert "mat/exact-entries on dpdk-c" in page.inner_text("h1")


def test_the_index_is_searched_filtered_and_sorted(page: Any, site: Path) -> None:
    page.goto((site / "index.html").as_uri())
    shown = "[...document.querySelectorAll('table.index tbody tr')].filter((row) => !row.hidden)"
    targets = f"{shown}.map((row) => row.cells[2].textContent)"
    assert page.evaluate(targets) == ["dpdk-c"] * 3 + ["xdp"] + ["dpdk-c"] * 2 + ["xdp"]
    page.fill("input[type=search]", "headers")
    assert page.evaluate(targets) == ["dpdk-c"] * 2 + ["xdp"]
    assert "3 of 7" in page.inner_text(".tools >> nth=0")
    page.fill("input[type=search]", "")
    page.select_option("select[aria-label=target]", "xdp")
    assert page.evaluate(targets) == ["xdp"] * 2
    page.select_option("select[aria-label=target]", "")
    numbers = f"{shown}.map((row) => Number(row.cells[6].dataset.low))"
    page.click("th .sort >> text=first → last")
    first = page.evaluate(numbers)
    assert first == sorted(first)
    page.click("th .sort >> text=first → last")
    assert page.evaluate(numbers) == sorted(first, reverse=True)
    assert page.get_attribute("th[aria-sort]", "aria-sort") == "descending"
    page.set_viewport_size({"width": 400, "height": 900})
    page.click("table.cards th .sort >> text=first → last")
    assert page.evaluate(numbers) == first, "cards are sorted, too"


def test_a_matrix_is_saved_as_numbers_and_bars_with_their_intervals(page: Any, site: Path) -> None:
    page.goto(address(site, "matrix"))
    row = saved(page, page.locator(".tools .csv"))[0]
    assert float(row["xdp first"]) < float(row["xdp last"])
    page.goto(address(site, "prediction"))
    bar = saved(page, page.locator(".tools .csv").first)[0]
    assert (
        float(bar["cycles per packet low"]) <= float(bar["cycles per packet"]) <= float(bar["cycles per packet high"])
    )


def saved(page: Any, button: Any) -> list[dict[str, str]]:
    with page.expect_download() as waiting:
        button.click()
    return list(csv.DictReader(Path(waiting.value.path()).read_text().splitlines()))


def test_every_table_and_figure_is_saved_as_csv(page: Any, site: Path) -> None:
    page.goto(address(site, "run"))
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    tables = page.locator(".scroll > table")
    assert page.locator(".tools .csv").count() == tables.count() >= 3
    found = {}
    for at in range(tables.count()):
        label = page.locator(".scroll:has(> table)").nth(at).get_attribute("aria-label")
        found[label] = saved(page, page.locator(".tools .csv").nth(at))
        assert len(found[label]) == tables.nth(at).locator("tbody tr").count()
    (path,) = (site.parent / "runs").glob("mat*dpdk-c*20261103*")
    medians = [row["median"] for row in point_rows(Run.open(path))[0]]
    points = found["Points"]
    assert [float(row["median"]) for row in points] == pytest.approx(medians, rel=1e-6)
    assert all(float(row["interval low"]) <= float(row["median"]) <= float(row["interval high"]) for row in points)
    figure = saved(page, page.locator("button[data-do=csv]"))
    assert [row["what"] for row in figure].count("repetition") == 3 * len(medians)
    assert {"point", "repetition", "model", "residual [%]"} == {row["what"] for row in figure}


@pytest.mark.thorough
def test_hovering_shows_a_repetition_and_the_switch_changes_the_axis(page: Any, site: Path) -> None:
    page.goto(address(site, "run"))
    page.wait_for_selector(DRAWN)
    axis = "document.querySelector('.live')._fullLayout.xaxis.type"
    assert page.evaluate(axis) == "log"
    place = page.evaluate(
        """() => {
          const plot = document.querySelector(".live"), full = plot._fullLayout, box = plot.getBoundingClientRect();
          const named = (name) => plot.data.find((trace) => trace.name === name && trace.mode === "markers");
          const trials = named("repetitions"), medians = named("medians");
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
def test_switches_and_the_legend_take_things_away_and_bring_them_back(page: Any, site: Path) -> None:
    page.goto(address(site, "run"))
    page.wait_for_selector(DRAWN)
    assert page.evaluate("'yaxis2' in document.querySelector('.live').layout")
    page.click("button[data-switch=lower]")
    assert not page.evaluate("'yaxis2' in document.querySelector('.live').layout")
    names = "document.querySelector('.live').data.map((trace) => trace.name)"
    entry = page.locator(".legend button[data-key=repetitions]")
    assert "repetitions" in page.evaluate(names)
    for there in (False, True):
        entry.click()
        assert ("repetitions" in page.evaluate(names)) == there
        assert entry.get_attribute("aria-pressed") == str(there).lower()


@pytest.mark.thorough
def test_the_comparison_has_every_target_with_its_model_in_the_legend(page: Any, site: Path) -> None:
    page.goto(address(site, "comparison"))
    page.wait_for_selector(DRAWN)
    assert {"dpdk-c", "xdp"} <= set(page.evaluate("document.querySelector('.live').data.map((t) => t.name)"))
    legend = page.locator(".legend li").all_inner_texts()
    assert len(legend) == 2
    assert all(": " in text and any(c.isdigit() for c in text.partition(": ")[2]) for text in legend)


@pytest.mark.thorough
def test_labels_of_breakpoints_leave_their_points_free(page: Any, site: Path) -> None:
    page.goto(address(site, "run"))
    page.wait_for_selector(DRAWN)
    gaps = page.evaluate(
        """() => {
          const plot = document.querySelector(".live"), full = plot._fullLayout, left = plot.getBoundingClientRect().x;
          return full.annotations.map((label, at) => [label, at]).filter(([label]) => /^[0-9]/.test(label.text))
            .map(([label, at]) => {
              const box = plot.querySelector(`.annotation[data-index="${at}"] .bg`).getBoundingClientRect();
              return left + full.xaxis._offset + full.xaxis.r2p(label.x) - box.right;
            });
        }"""
    )
    assert gaps
    assert all(2 < gap < 20 for gap in gaps), gaps


@pytest.mark.thorough
@pytest.mark.parametrize("width", WIDTHS)
def test_labels_of_caches_and_breakpoints_hide_no_median(page: Any, site: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 1000})
    page.goto(address(site, "run"))
    page.wait_for_selector(DRAWN)
    labels, hidden = page.evaluate(
        """() => {
          const plot = document.querySelector(".live"), full = plot._fullLayout, place = plot.getBoundingClientRect();
          const medians = plot.data.find((trace) => trace.name === "medians" && trace.mode === "markers");
          const points = medians.x.map((x, at) => [place.x + full.xaxis._offset + full.xaxis.d2p(x),
            place.y + full.yaxis._offset + full.yaxis.d2p(medians.y[at])]);
          const labels = full.annotations.map((label, at) => [label, at])
            .filter(([label]) => label.textangle === -90)
            .map(([label, at]) => plot.querySelector(`.annotation[data-index="${at}"] .bg`).getBoundingClientRect());
          const inside = ([x, y], box) => x > box.left && x < box.right && y > box.top && y < box.bottom;
          return [labels.length, points.filter((point) => labels.some((box) => inside(point, box))).length];
        }"""
    )
    assert labels == 4
    assert hidden == 0


@pytest.mark.thorough
def test_figures_of_a_campaign_are_dark_where_the_page_is(page: Any, site: Path) -> None:
    page.goto(address(site, "campaign"))
    shots = []
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.locator("figure img").scroll_into_view_if_needed()
        wait_until(page, "document.querySelector('figure img').complete")
        shots.append(picture(page.locator("figure img").screenshot()))
    light, dark = shots
    assert np.median(light) == 255
    assert np.median(dark) < 60
    assert alike(light, dark) > 0.9


def test_paper_has_still_figures_without_buttons_and_nothing_is_cut(page: Any, site: Path) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(address(site, "run"))
    page.wait_for_selector(DRAWN, timeout=90_000)
    assert page.is_hidden("svg.still")
    page.set_viewport_size({"width": 690, "height": 900})
    page.emulate_media(color_scheme="dark", media="print")
    assert page.is_visible("svg.still")
    assert page.is_hidden(".live")
    assert page.is_hidden(".switches")
    assert page.is_hidden(".tools >> nth=0")
    assert page.evaluate(STRUCTURE) == [], "as wide as paper"
    heads = page.eval_on_selector_all("th.n", "all => all.map((e) => e.offsetHeight)")
    assert max(heads) < 60, "no word is broken letter by letter"
    paper = picture(page.locator(".plot").screenshot())
    assert np.median(paper) == 255
    assert (ink(paper) > 0).mean() > 0.3
    assert page.pdf(format="A4")[:5] == b"%PDF-"


@pytest.mark.thorough
def test_the_first_tab_stop_skips_to_the_content(page: Any, site: Path) -> None:
    page.goto(address(site, "run"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
