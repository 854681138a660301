"""How long a site of a campaign takes, how large it is, and how soon a browser shows it.

    python benchmarks/report_site.py CAMPAIGN

Prints seconds, MB and pages, and of the first page and some others console errors and first paint (Performance API).
Needs playwright and chromium for the latter.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from p4perf.experiment.report.site import Site, find_sources, write_site

MOST_MB, MOST_S, MOST_PAINT_MS = 15.0, 20.0, 1000.0


def main() -> None:
    """Build the site, then look at it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", type=Path, nargs="*", help="campaign folders, or whatever p4perf report takes")
    parser.add_argument("--looks", type=int, default=5, help="pages of runs that are opened")
    arguments = parser.parse_args()
    if not arguments.campaign:
        print("skipped: name the folder of a campaign")
        return
    with tempfile.TemporaryDirectory(prefix="p4perf-bench-") as folder:
        began = time.perf_counter()
        site = write_site(find_sources(arguments.campaign), Path(folder) / "site")
        spent_s = time.perf_counter() - began
        size_mb, pages = site.size_bytes / 1e6, sum(site.pages.values())
        print(f"built in {spent_s:.2f} s (at most {MOST_S:g}), {size_mb:.2f} MB (at most {MOST_MB:g}), {pages} pages")
        for note in site.notes:
            print(f"note: {note}")
        look(site, arguments.looks)


def look(site: Site, count: int) -> None:
    """Open pages from disk and tell what the browser says of them."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("not looked at: needs playwright and chromium")
        return
    runs = sorted((site.path / "runs").glob("*.html"))
    chosen = [site.index, *sorted(site.path.glob("matrix.html")), *runs[:: max(1, len(runs) // count)][:count]]
    chosen += sorted((site.path / "experiments").glob("*.html"))[:2]
    errors: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for path in chosen:
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            page.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.goto(path.as_uri())
            drawn = page.locator("figure.interactive").count() > 0
            began = time.perf_counter()
            if drawn:
                page.wait_for_selector("html[data-figures=drawn]")
            page.wait_for_timeout(100)
            paints = page.evaluate("performance.getEntriesByType('paint').map((entry) => entry.startTime)")
            figure_s = time.perf_counter() - began - 0.1
            first_ms = min(paints) if paints else float("nan")
            more = f", figure after another {figure_s:.2f} s" if drawn else ""
            print(f"{path.relative_to(site.path)}: first paint {first_ms:.0f} ms (at most {MOST_PAINT_MS:g}){more}")
            page.close()
        browser.close()
    print(f"console errors: {len(errors)}")
    for text in errors[:10]:
        print(f"  {text}")


if __name__ == "__main__":
    main()
