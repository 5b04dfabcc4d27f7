# SPDX-License-Identifier: MIT
"""The drawing of the results: each goal and how far it was met or missed, and what grows with the number of devices.

Plain SVG 1.1 without scripts or foreign fonts, with a background of its own, so that it looks the same in a dark page.
Both parts are on logarithmic axes.
"""
import math
import re
from xml.sax.saxutils import escape

from report import figures, goal, judged, margin, number, title

WIDTH, LEFT, RIGHT, ROW = 960, 400, 190, 20
INK, SOFT, LINE, MET, MISSED = "#24292f", "#57606a", "#d0d7de", "#2da44e", "#cf222e"
COLOURS = ("#0969da", "#bf3989", "#9a6700", "#1a7f37", "#8250df", "#cf222e")
LEAST, MOST = 0.1, 1000  # margins that are drawn; what lies beyond is drawn there
GROWTH = re.compile(r"growth: (.+), ([\d,]+) devices$")


def text(x, y, words, size=12, anchor="start", colour=INK, bold=False):
    return '<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s" fill="%s"%s>%s</text>' % (
        x, y, size, anchor, colour, ' font-weight="600"' if bold else "", escape(words))


def line(x1, y1, x2, y2, colour=LINE, width=1.0, dash=""):
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f"%s/>' % (
        x1, y1, x2, y2, colour, width, ' stroke-dasharray="%s"' % dash if dash else "")


def scale(v, low, high, begin, end):
    """Where v is drawn on a logarithmic axis; what lies beyond its ends is drawn at the end."""
    v = min(max(v, low), high)
    return begin + (math.log(v) - math.log(low)) / (math.log(high) - math.log(low)) * (end - begin)


# --- goals


def bars(results, top):
    """One bar for each figure with a goal, from the line "just met": to the right if better. Returns (parts, y)."""
    judged = [f for f in figures(results) if margin(f) is not None]
    if not judged:
        return [], top
    low, high = reach([margin(f) for f in judged])
    x = lambda v: scale(v, low, high, LEFT, WIDTH - RIGHT)  # noqa: E731
    ticks = [v for v in (0.1, 0.2, 0.5, 1, 2, 5, 10, 100, 1000) if low <= v <= high]
    out, y, target = [text(16, top + 18, "How many times better than its goal", 15, bold=True)], top + 44, None
    first = y
    for f in judged:
        if f["target"] != target:
            target = f["target"]
            out.append(text(16, y + 14, title(target), 12, bold=True))
            y += ROW + 2
        out += bar(f, x, y)
        y += ROW
    grid = [line(x(v), first - 4, x(v), y, INK if v == 1 else LINE, 1.2 if v == 1 else 0.8)
            for v in ticks]
    grid += [text(x(v), first - 9, "goal" if v == 1 else number(v) + "x", 10, "middle", SOFT)
             for v in ticks]
    return grid + out, y + 16


def reach(margins):
    """The axis that has room for them, and for a half and four in any case."""
    steps = (LEAST, 0.2, 0.5, 4, 10, 30, 100, 300, MOST)
    least, most = max(min(margins), LEAST), min(max(margins), MOST)
    return (max(v for v in steps if v <= min(least, 0.5)), min(v for v in steps if v >= max(most, 4)))


def bar(f, x, y):
    m = margin(f)
    from_x, to_x = sorted((x(1), x(m)))
    words = "%s %s  (%s)" % (number(judged(f)), f["unit"], goal(f))
    return [text(LEFT - 10, y + 13, f["label"], 11, "end"),
            '<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="2" fill="%s"/>' % (
                from_x, y + 3, max(to_x - from_x, 2), ROW - 7, MET if f["met"] else MISSED),
            text(max(to_x, x(1)) + 6, y + 13, words, 11, colour=SOFT if f["met"] else MISSED)]


# --- growth


def series(results):
    """{unit: {what: [(devices, figure)]}} of the figures that are labelled as growth."""
    found = {}
    for f in figures(results):
        m = GROWTH.match(f["label"])
        if m and f["median"] > 0:
            points = found.setdefault(f["unit"], {}).setdefault(m[1], [])
            points.append((int(m[2].replace(",", "")), f))
            points.sort(key=lambda p: p[0])
    return found


def decades(low, high):
    """The axis that holds both: 1, 2 or 5 times a power of ten."""
    ticks = [m * 10.0 ** e for e in range(-3, 13) for m in (1, 2, 5)]
    first = max([t for t in ticks if t <= low], default=ticks[0])
    last = min([t for t in ticks if t >= high and t > first], default=ticks[-1])
    return first, last, [t for t in ticks if first <= t <= last]


def short(n):
    return "%d M" % (n / 1e6) if n >= 1e6 else "%d k" % (n / 1e3) if n >= 1e3 else "%d" % n


def panel(unit, lines, x0, x1, top, bottom):
    """One plot: what it costs against how many devices there are."""
    everything = [p for points in lines.values() for p in points]
    fewest, most = min(n for n, _ in everything), max(n for n, _ in everything)
    low, high, ticks = decades(min(f["min"] for _, f in everything), max(f["max"] for _, f in everything))
    x = lambda n: scale(n, fewest, max(most, fewest * 10), x0, x1)  # noqa: E731
    y = lambda v: scale(v, low, high, bottom, top)  # noqa: E731
    out = [text(x0 - 40, top - 12, unit, 11, colour=SOFT)]
    for t in ticks:
        out += [line(x0, y(t), x1, y(t)), text(x0 - 8, y(t) + 4, number(t), 10, "end", SOFT)]
    for n in sorted({n for n, _ in everything}):
        out += [line(x(n), bottom, x(n), bottom + 4, SOFT), text(x(n), bottom + 18, short(n), 10, "middle", SOFT)]
    for colour, (what, points) in zip(COLOURS * len(lines), lines.items()):
        out.append('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' % (
            colour, " ".join("%.1f,%.1f" % (x(n), y(f["median"])) for n, f in points)))
        for n, f in points:
            out += [line(x(n), y(f["min"]), x(n), y(f["max"]), colour, 1.2),
                    '<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x(n), y(f["median"]), colour)]
    return out + legend(lines, x0, bottom + 40)


def legend(lines, x, y):
    out = []
    for k, (colour, (what, points)) in enumerate(zip(COLOURS * len(lines), lines.items())):
        ends = "%s to %s" % (number(points[0][1]["median"]), number(points[-1][1]["median"]))
        out += [line(x, y + 18 * k - 4, x + 18, y + 18 * k - 4, colour, 2.5),
                text(x + 24, y + 18 * k, "%s: %s" % (what, ends), 11)]
    return out


def growth(results, top):
    """A panel for each unit, side by side. Returns (parts, y)."""
    found = series(results)
    if not found:
        return [], top
    out = [text(16, top + 18, "What grows with the number of devices", 15, bold=True)]
    wide = (WIDTH - 40) / len(found)
    upper, lower = top + 60, top + 260
    for k, (unit, lines) in enumerate(found.items()):
        out += panel(unit, lines, 70 + k * wide, (k + 1) * wide, upper, lower)
    return out, lower + 50 + 18 * max(len(lines) for lines in found.values())


# --- the whole


def draw(results):
    """The picture, as text."""
    parts, y = bars(results, 8)
    more, y = growth(results, y + (12 if parts else 0))
    parts += more
    m = results["machine"]
    parts.append(text(16, y + 14, "%s, %d cores, Linux %s. Medians; logarithmic." % (
        m["cpu"], m["cores"], m["kernel"]), 11, colour=SOFT))
    y += 28
    return "\n".join([
        '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d"'
        ' font-family="Helvetica, Arial, sans-serif">' % (WIDTH, y, WIDTH, y),
        '<rect width="100%" height="100%" fill="#ffffff"/>', *parts, "</svg>", ""])
