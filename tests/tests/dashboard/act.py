# Opens every view of the dashboard in Chromium, in both themes and at a phone's width, and performs the actions of a user. Prints
# the observations as one JSON document. Arguments: the dashboard's address, Chromium, a token, a member of the pool `members`, and
# the URLs of two requests that the firewall blocks: one by rules, one by the check `file_type`. `WEIR_SCREENSHOTS` is the path of a
# folder for pictures of all views.

import json
import os
import sys
import urllib.error
import urllib.request

from playwright.sync_api import sync_playwright

BASE, CHROMIUM, TOKEN, MEMBER, ATTACK, CHECKED = sys.argv[1:]
VIEWS = ["", "servers", "servers/main", "map", "pools", "pools/members", "policies", "firewall", "requests", "explain", "certificates", "configuration", "reports"]
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
seen = {"errors": [], "titles": [], "too_wide": [], "findings": []}


def open_page(browser, **options):
    page = browser.new_context(**options).new_page()
    # The browser reports each answer 409, with which weir asks whether the last member is meant.
    is_question = lambda message: "status of 409" in message.text
    is_bad = lambda message: message.type in ("error", "warning") and not is_question(message)
    page.on("console", lambda message: is_bad(message) and seen["errors"].append(message.text))
    page.on("pageerror", lambda error: seen["errors"].append(str(error)))
    return page


def look(browser, theme, size):
    # axe is injected, which the page's Content-Security-Policy would forbid.
    axe = os.environ.get("WEIR_AXE")
    width, height = SIZES[size]
    page = open_page(browser, viewport={"width": width, "height": height}, color_scheme=theme, bypass_csp=bool(axe))
    log_in(page)
    for view in VIEWS:
        page.goto(f"{BASE}/#/{view}")
        page.wait_for_selector(f"#content[data-key='{view if '/' in view else view + '/'}'] h1")
        take_picture(page, f"{view.replace('/', '-') or 'overview'}-{theme}-{size}")
        if theme == "light" and size == "desk":
            seen["titles"].append(page.inner_text("h1").strip())
        if page.evaluate("document.documentElement.scrollWidth") > width:
            seen["too_wide"].append(f"{view} at {size}")
        if axe:
            page.evaluate(open(axe).read())
            found = page.evaluate("axe.run()")["violations"]
            seen["findings"] += [f"{theme} {view}: {it['impact']} {it['id']}" for it in found]
    page.context.close()


def take_picture(page, name):
    folder = os.environ.get("WEIR_SCREENSHOTS")
    if folder:
        # Waits for two more points in the charts.
        page.wait_for_timeout(4500 if name.startswith(("overview", "servers-main")) else 300)
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def log_in(page):
    page.goto(f"{BASE}/")
    page.click("#login")
    page.fill("#asked", TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_selector("#login:has-text('Log out ann')")


def confirm(page):
    page.locator("#dialog button[type=submit]").click()


def status_of(url):
    try:
        return urllib.request.urlopen(url).status
    except urllib.error.HTTPError as error:
        return error.code


def act(browser):
    page = open_page(browser, viewport={"width": 1280, "height": 900})
    page.goto(f"{BASE}/#/pools/members")
    drain = page.get_by_role("button", name=f"Drain {MEMBER}")
    drain.wait_for()
    seen["disabled_without_login"] = drain.is_disabled()
    log_in(page)
    page.goto(f"{BASE}/#/pools/members")
    drain.click()
    # The action must not start before the confirmation.
    page.get_by_role("button", name="Cancel").click()
    drain.click()
    confirm(page)
    page.get_by_role("button", name=f"Enable {MEMBER}").wait_for()
    seen["drained"] = page.locator(f"tr[data-key='{MEMBER}'] .state").inner_text()
    # The other one is the last: weir warns, and nothing happens.
    page.locator("button[aria-label^='Drain ']").first.click()
    confirm(page)
    page.wait_for_selector("#dialog:has-text('No other member of pool')")
    page.get_by_role("button", name="Cancel").click()
    seen["left_in_service"] = page.locator("button[aria-label^='Drain ']").count()
    page.goto(f"{BASE}/#/configuration")
    page.get_by_role("button", name="Reload the file").click()
    confirm(page)
    page.wait_for_selector("tbody tr:has-text('in effect')")
    seen["reloaded"] = True
    exclude(page)
    read_report(page)
    see_slow(page)
    hide(page)
    page.context.close()


def exclude(page):
    """Excludes the firewall's findings, and then rolls the exclusions back."""
    page.goto(f"{BASE}/#/firewall")
    buttons = page.get_by_role("button", name="Exclude this: ARGS:text of /item")
    buttons.first.wait_for()
    for left in range(buttons.count() - 1, -1, -1):
        buttons.first.click()
        confirm(page)
        page.wait_for_function("left => document.querySelectorAll('button[aria-label^=Exclude]').length <= left", arg=left)
    seen["excluded"] = status_of(ATTACK)
    page.get_by_role("button", name="Only log it: the check file_type").click()
    confirm(page)
    page.get_by_role("button", name="Switch it off: the check file_type").wait_for()
    seen["only_logged"] = status_of(CHECKED)
    page.goto(f"{BASE}/#/configuration")
    page.get_by_role("button", name="Return to the files").click()
    confirm(page)
    page.wait_for_selector("#told p:has-text('that of the files')")
    seen["rolled_back"] = [status_of(ATTACK), status_of(CHECKED)]


def read_report(page):
    page.goto(f"{BASE}/#/reports")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="2026-11-01-host").click()
    report = opened.value
    seen["report"] = report.inner_text("h1")
    answer = page.request.get(report.url)
    policy = answer.headers["content-security-policy"]
    seen["report_scripts"] = "none ran" if policy.startswith("sandbox;") else policy
    report.close()


def see_slow(page):
    """Opens a request in the list of slow requests, and its explanation."""
    page.goto(f"{BASE}/#/requests")
    page.get_by_role("link", name="GET /slow").first.click()
    page.wait_for_selector("h1:has-text('Request')")
    seen["slow"] = page.locator("h2.target").inner_text()
    take_picture(page, "request-light-desk")
    page.get_by_role("link", name="Explain").last.click()
    page.wait_for_selector("h2:has-text('What comes of it')")
    seen["explained"] = page.get_by_text("the pool of the virtual server").inner_text()
    take_picture(page, "explained-light-desk")


def hide(page):
    """Checks that a hidden tab sends no requests."""
    page.goto(f"{BASE}/#/")
    page.wait_for_selector("#content[data-key='/'] h1")
    page.evaluate("""() => {
        Object.defineProperty(document, "hidden", { get: () => true });
        document.dispatchEvent(new Event("visibilitychange"));
    }""")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(3000)
    seen["stream_while_hidden"] = asked or "none"


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    for theme, size in (("light", "desk"), ("dark", "desk"), ("light", "phone"), ("dark", "phone")):
        look(chromium, theme, size)
    act(chromium)
    chromium.close()
print(json.dumps(seen))
