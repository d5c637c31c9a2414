"""The page in a browser without a graphics card: first view, time to the picture of a model, frames while it turns.

    python benchmarks/page.py [FILE…]

Chromium draws 1280 × 800 pixels in software. Without files, the example and bumpy spheres of 100 000 and a million
triangles are opened, whose seam has thousands of open edges. The time to a picture counts from the choice of the file
until the facts are shown: it contains upload, reading and preview. Each model turns for some seconds, a step per frame;
the CPU time of a frame is that of all processes of the browser.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from playwright.sync_api import sync_playwright  # noqa: E402

from engine import write_sphere  # noqa: E402
from page_visits import serving  # noqa: E402

BROWSER_ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
SIZE = {"width": 1280, "height": 800}
FIRST_VIEW_COUNT = 5
TURN_S = 5
REST_S = 1
TIMEOUT_MS = 90_000
GOAL_FPS = 20
"""Frames per second of a model of a million triangles."""

TURN = """([x, y, seconds]) => new Promise((done) => {
  const canvas = document.querySelector("canvas");
  const begin = performance.now();
  let count = 0;
  const step = () => {
    count++;
    const place = { clientX: x + 150 * Math.sin(count / 20), clientY: y + 60 * Math.cos(count / 17) };
    const options = { ...place, pointerId: 1, pointerType: "mouse", buttons: 1, button: -1, bubbles: true };
    canvas.dispatchEvent(new PointerEvent("pointermove", options));
    if (performance.now() - begin < 1000 * seconds) requestAnimationFrame(step);
    else done(count / seconds);
  };
  requestAnimationFrame(step);
})"""


def measure_browser_cpu() -> float:
    """Return the seconds of CPU time of all processes of Chromium."""
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"playwright_chromiumdev" in (folder / "cmdline").read_bytes():
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def measure_first_view(browser: Any, address: str) -> float:
    """Return the seconds from the request to the button that chooses files."""
    page = browser.new_page(viewport=SIZE)
    begin = time.perf_counter()
    page.goto(address)
    page.get_by_role("button", name="Choose files").wait_for()
    elapsed = time.perf_counter() - begin
    page.close()
    return elapsed


def measure_model(browser: Any, address: str, file: Path) -> float:
    """Open a model and turn it, print the figures, and return the frames per second."""
    page = browser.new_page(viewport=SIZE)
    page.goto(address)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose files").click()
    begin = time.perf_counter()
    chooser.value.set_files(file)
    busy = page.locator(".dot.busy").first
    busy.wait_for(timeout=TIMEOUT_MS)
    busy.wait_for(state="detached", timeout=TIMEOUT_MS)
    picture_s = time.perf_counter() - begin
    shown = re.search(r"Shown with ([\d,]+)", page.locator(".stage").inner_text())
    time.sleep(REST_S)
    box = page.locator("canvas").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    before = measure_browser_cpu()
    rate = float(page.evaluate(TURN, [x, y, TURN_S]))
    cpu_ms = 1000 * (measure_browser_cpu() - before) / (rate * TURN_S)
    page.mouse.up()
    page.close()
    triangles = shown[1].replace(",", " ") if shown else "all"
    size_mb = file.stat().st_size / 1e6
    print(f"| {file.name} | {size_mb:.1f} | {triangles} | {picture_s:.2f} | {rate:.0f} | {cpu_ms:.0f} |", flush=True)
    return rate


def main() -> int:
    executable = os.environ.get("MESHHUB_TEST_CHROMIUM") or shutil.which("chromium")
    limits = {"MESHHUB_PLAN_FREE_MAX_FILE_BYTES": "200000000"}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        generated = {"sphere-100k.stl": 100_000, "sphere-1M.stl": 1_000_000}
        files = [Path(name) for name in sys.argv[1:]] or [
            ROOT / "examples" / "bracket.stl",
            *(write_sphere(Path(folder, name), count) for name, count in generated.items()),
        ]
        browser = playwright.chromium.launch(executable_path=executable, args=BROWSER_ARGUMENTS)
        with serving(Path(folder), **limits) as address:
            views = [measure_first_view(browser, address) for _ in range(FIRST_VIEW_COUNT)]
            print(f"first view: {statistics.median(views):.2f} s (median of {FIRST_VIEW_COUNT})\n")
            print("| model | MB | triangles shown | picture after s | frames/s | CPU ms per frame |")
            print("|---|---|---|---|---|---|")
            rates = [measure_model(browser, address, file) for file in files]
        browser.close()
    return 1 if min(rates) < GOAL_FPS else 0


if __name__ == "__main__":
    sys.exit(main())
