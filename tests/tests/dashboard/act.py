# Opens every view of the dashboard in Chromium, in both themes and at a phone's width, and acts in it as a user would. Prints one
# JSON document: what was seen. Arguments: the dashboard's address, Chromium, a token, a member of the pool `members`.

import json
import os
import sys

from playwright.sync_api import sync_playwright

BASE, CHROMIUM, TOKEN, MEMBER = sys.argv[1:]
VIEWS = ["", "servers", "servers/main", "map", "pools", "pools/members", "policies", "explain", "certificates", "configuration"]
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
seen = {"errors": [], "titles": [], "too_wide": [], "findings": []}


def open_page(browser, **options):
    page = browser.new_context(**options).new_page()
    is_bad = lambda message: message.type in ("error", "warning")
    page.on("console", lambda message: is_bad(message) and seen["errors"].append(message.text))
    page.on("pageerror", lambda error: seen["errors"].append(str(error)))
    return page


def look(browser, theme, size):
    # axe is injected, which the policy of the page forbids otherwise.
    axe = os.environ.get("WEIR_AXE")
    width, height = SIZES[size]
    page = open_page(browser, viewport={"width": width, "height": height}, color_scheme=theme, bypass_csp=bool(axe))
    for view in VIEWS:
        page.goto(f"{BASE}/#/{view}")
        page.wait_for_selector("h1")
        if theme == "light" and size == "desk":
            seen["titles"].append(page.inner_text("h1").strip())
        if page.evaluate("document.documentElement.scrollWidth") > width:
            seen["too_wide"].append(f"{view} at {size}")
        if axe:
            page.evaluate(open(axe).read())
            found = page.evaluate("axe.run()")["violations"]
            seen["findings"] += [f"{theme} {view}: {it['impact']} {it['id']}" for it in found]
    page.context.close()


def act(browser):
    page = open_page(browser, viewport={"width": 1280, "height": 900})
    page.goto(f"{BASE}/#/pools/members")
    drain = page.get_by_role("button", name=f"Drain {MEMBER}")
    drain.wait_for()
    seen["disabled_without_login"] = drain.is_disabled()
    page.click("#login")
    page.fill("#asked", TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_selector("#login:has-text('Log out ann')")
    drain.click()
    # Nothing is done before it is confirmed.
    page.get_by_role("button", name="Cancel").click()
    drain.click()
    page.locator("#dialog button[type=submit]").click()
    page.get_by_role("button", name=f"Enable {MEMBER}").wait_for()
    seen["drained"] = page.locator(f"tr[data-key='{MEMBER}'] .state").inner_text()
    page.goto(f"{BASE}/#/configuration")
    page.get_by_role("button", name="Reload the file").click()
    page.locator("#dialog button[type=submit]").click()
    page.wait_for_selector("tbody tr:has-text('in effect')")
    seen["reloaded"] = True
    page.context.close()


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    for theme, size in (("light", "desk"), ("dark", "desk"), ("light", "phone")):
        look(chromium, theme, size)
    act(chromium)
    chromium.close()
print(json.dumps(seen))
