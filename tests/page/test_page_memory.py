"""What the page keeps in memory after files are closed."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from page_visits import Visit, chromium_only

pytestmark = pytest.mark.once

EXAMPLES = Path(__file__).parents[2] / "examples"
COUNT = """
window.live = { buffers: 0, textures: 0 };
for (const [kind, name] of [["buffers", "Buffer"], ["textures", "Texture"]]) {
  const prototype = WebGL2RenderingContext.prototype;
  for (const [verb, step] of [["create", 1], ["delete", -1]]) {
    const original = prototype[verb + name];
    prototype[verb + name] = function (...objects) {
      window.live[kind] += step;
      return original.apply(this, objects);
    };
  }
}
"""


DROP = """([name, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob(text), c => c.charCodeAt(0))], name));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true }));
}"""


def measure(page: Any, session: Any) -> dict[str, int]:
    """Return the nodes of the document and the objects of the graphics card that are in memory."""
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
        page.wait_for_timeout(200)
    metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    return {"nodes": int(metrics["Nodes"]), **page.evaluate("window.live")}


@chromium_only(reason="Firefox does not tell its memory")
def test_memory_falls_back_after_files_are_closed(visit: Visit) -> None:
    visit.context.add_init_script(COUNT)
    page = visit.open()
    session = visit.context.new_cdp_session(page)
    session.send("Performance.enable")

    def add(name: str) -> None:
        # Playwright keeps the element of a file chooser
        page.evaluate(DROP, [name, base64.b64encode((EXAMPLES / name).read_bytes()).decode()])
        page.locator(".file-tab", has_text=name).locator(".dot:not(.busy)").wait_for()

    add("bracket-clean.stl")
    usage = []
    for _ in range(4):
        add("bracket.stl")
        page.get_by_role("button", name="Overhangs").click()
        page.locator(".coloring .scale").wait_for()
        page.get_by_role("button", name="Model", exact=True).click()
        page.get_by_role("button", name="Remove bracket.stl").click()
        page.locator(".file-tab", has_text="bracket.stl").wait_for(state="detached")
        usage.append(measure(page, session))
    first, last = usage[0], usage[-1]
    assert {kind for kind in first if last[kind] > 1.05 * first[kind] + 2} == set(), usage
    page.get_by_role("button", name="Remove bracket-clean.stl").click()
    page.get_by_role("button", name="Choose files").wait_for()
    assert measure(page, session)["nodes"] < first["nodes"] / 2
