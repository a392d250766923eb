# Measures the dashboard with a large configuration: bytes of the first load and of each update, the time until a view is painted,
# the time until an update is drawn, and the memory of the page after use. Prints one JSON document. Arguments: the dashboard's
# address, Chromium.

import json
import sys
import urllib.request

from playwright.sync_api import sync_playwright

BASE, CHROMIUM = sys.argv[1:]
VIEWS = {
    "overview": "", "servers": "servers", "server": "servers/server-0500", "pools": "pools", "pool": "pools/pool-0500", "map": "map",
}
UPDATES = 3
ROUNDS = 10
seen = {"errors": [], "views": {}}

# Records the size of each event, and the time from its arrival until it is drawn.
PROBE = """
window.noted = { bytes: [], draw_ms: [] };
const fetched = window.fetch;
window.fetch = async (...asked) => {
  const response = await fetched(...asked);
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
  window.noted = { bytes: [], draw_ms: [] };
  const noted = window.noted;
  const count = new TransformStream({
    transform(chunk, out) {
      if (chunk.length > 3) {
        noted.bytes.push(chunk.length);
        const at = performance.now();
        requestAnimationFrame(() => noted.draw_ms.push(performance.now() - at));
      }
      out.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(count), response);
};
"""


def measure(page, view):
    page.goto("about:blank")
    page.goto(f"{BASE}/#/{view}")
    key = view if "/" in view else f"{view}/"
    page.wait_for_selector(f"#content[data-key='{key}'] h1")
    first_paint_ms = page.evaluate("performance.now()")
    page.wait_for_function("needed => window.noted.draw_ms.length >= needed", arg=UPDATES + 1, timeout=30000)
    noted = page.evaluate("window.noted")
    # A large event arrives in several chunks. The updates are the last chunks.
    first, updates = noted["bytes"][:-UPDATES], noted["bytes"][-UPDATES:]
    return {
        "first_bytes": sum(first), "update_bytes": max(updates), "painted_after_ms": round(first_paint_ms),
        "update_drawn_after_ms": round(max(noted["draw_ms"][-UPDATES:]), 1),
    }


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--enable-precise-memory-info"])
    page = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.on("console", lambda message: message.type == "error" and seen["errors"].append(message.text))
    page.on("pageerror", lambda error: seen["errors"].append(str(error)))
    page.add_init_script(PROBE)
    for name, view in VIEWS.items():
        seen["views"][name] = measure(page, view)
    seen["status_bytes"] = len(urllib.request.urlopen(f"{BASE}/v1/status").read())
    heap = []
    for _ in range(ROUNDS):
        for view in VIEWS.values():
            page.evaluate("view => { location.hash = `#/${view}`; }", view)
            page.wait_for_selector(f"#content[data-key='{view if '/' in view else view + '/'}'] h1")
        heap.append(page.evaluate("performance.memory.usedJSHeapSize"))
    seen["heap_bytes"] = heap
    seen["elements_after_use"] = page.evaluate("document.querySelectorAll('*').length")
    chromium.close()
print(json.dumps(seen))
