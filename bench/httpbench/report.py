"""The table: figures, ratio, goal, and whether it was reached."""

import json
import shutil

PRODUCTS = ("weir", "nginx", "haproxy", "relay")


class Row:
    """One figure of every product, and weir's ratio (or difference, or figure) against its goal."""

    def __init__(self, what, unit, values, judged, goal, against):
        self.what = what
        self.unit = unit
        self.values = values
        self.judged = judged
        self.goal = goal
        self.against = against

    def verdict(self):
        if self.goal is None:
            return ""
        if self.judged is None:
            return "not run"
        return "PASS" if self.judged <= self.goal else "short"

    def cells(self):
        figures = [number(self.values.get(name)) for name in PRODUCTS]
        goal = "" if self.goal is None else f"<= {self.goal:g}"
        return [self.what, self.unit, *figures, number(self.judged), self.against, goal,
                self.verdict()]


def number(value):
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


HEADINGS = ["measurement", "unit", *PRODUCTS, "judged", "against", "goal", "verdict"]


def table(rows):
    """A Markdown table that also reads well as text."""
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    def text(line):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([text(lines[0]), rule, *(text(line) for line in lines[1:])]) + "\n"


def write(plan, command, machine_facts, rows):
    """Keeps what a reader needs to judge or repeat the run."""
    directory = plan.directory
    (directory / "report.md").write_text(
        f"# HTTP benchmark\n\n`{command}`\n\n"
        + "".join(f"- {name}: {value}\n" for name, value in machine_facts.items())
        + f"\n{table(rows)}")
    (directory / "raw.json").write_text(json.dumps(
        {"command": command, "machine": machine_facts, "parts": plan.raw,
         "rows": [dict(vars(row), verdict=row.verdict()) for row in rows]}, indent=1))
    keep_configurations(directory)


def keep_configurations(directory):
    """Copies each part's configurations, as they were used, out of the working folder."""
    working = directory / "tmp"
    for pattern in ("*.conf", "*.cfg", "*.yaml"):
        for path in sorted(working.rglob(pattern)):
            target = directory / "configurations" / path.relative_to(working)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
