#!/usr/bin/env python3
"""Draws what run.py measured: lag, saves, memory and log over time, as one SVG.

    Tests/Benchmarks/catching-up/plot.py MEASURED.json PICTURE.svg
"""
import json, sys

WIDTH, HEIGHT, LEFT, RIGHT, GAP = 860, 130, 80, 70, 34
COLOURS = {"a": "#1b6ca8", "b": "#6a994e", "c": "#bc4749", "d": "#8a5a9e", "": "#333333"}


def nice(value):
    """The least of 1, 2 or 5 times a power of ten that is at least `value`."""
    step = 1.0
    while step * 10 < value:
        step *= 10
    return next(step * by for by in (1, 2, 5, 10) if step * by >= value)


def panel(top, title, lines, scale):
    """One panel: `lines` are (name, [(seconds, value)])."""
    most = nice(max((value for _, line in lines for _, value in line), default=1) or 1)
    out = [f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{title}</text>']
    for part in (0, 0.5, 1):
        y = top + HEIGHT * (1 - part)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{most * part:,.0f}</text>')
    places = []
    for name, line in lines:
        if not line:
            continue
        colour, pieces, before = COLOURS[name], [], None
        for x, value in line:
            # Where nothing was measured for a while, nothing is drawn.
            if before is None or x - before > 5:
                pieces.append([])
            pieces[-1].append(f"{scale(x):.1f},{top + HEIGHT * (1 - value / most):.1f}")
            before = x
        for piece in pieces:
            out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{" ".join(piece)}"/>')
        if name:
            places.append((top + HEIGHT * (1 - line[-1][1] / most), name, colour))
    # Names stand beside the ends of their lines, never over one another.
    last = -100.0
    for y, name, colour in sorted(places):
        last = max(y + 4, last + 13)
        out.append(f'<text x="{WIDTH - RIGHT + 6}" y="{last:.1f}" fill="{colour}">node {name}</text>')
    return out


def main():
    with open(sys.argv[1]) as file:
        measured = json.load(file)
    samples, origin = measured["samples"], measured["loadBegan"]
    end = max(one["time"] for one in samples) - origin
    first = min(one["time"] for one in samples) - origin

    def scale(seconds):
        return LEFT + (WIDTH - LEFT - RIGHT) * (seconds - first) / (end - first)

    def lines(key):
        names = sorted({name for one in samples for name in one[key]})
        return [(name, [(one["time"] - origin, one[key][name] / 1e6) for one in samples if name in one[key]])
                for name in names]

    panels = [
        ("Entries that the node lacks", [("", [(one["time"] - origin, one["lag"]) for one in samples
                                               if one["lag"] is not None])]),
        ("Saves a second", [("", [(place, one["done"]) for place, one in enumerate(measured["seconds"])
                                  if place <= end])]),
        ("Memory of a node, MB", lines("memory")),
        ("Log of a node, MB", lines("log")),
    ]
    height = 40 + len(panels) * (HEIGHT + GAP) + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
           'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>']
    bottom = 50 + len(panels) * (HEIGHT + GAP) - GAP
    phases = []
    for one in samples:
        if not phases or phases[-1][0] != one["phase"]:
            phases.append([one["phase"], one["time"] - origin, one["time"] - origin])
        phases[-1][2] = one["time"] - origin
    for name, begin, finish in phases:
        out.append(f'<rect x="{scale(begin):.1f}" y="32" width="{max(1, scale(finish) - scale(begin)):.1f}" '
                   f'height="{bottom - 32}" fill="#f3efe4"/>')
        out.append(f'<text x="{scale(begin):.1f}" y="16">{name}</text>')
    for place, (title, drawn) in enumerate(panels):
        out += panel(50 + place * (HEIGHT + GAP), title, drawn, scale)
    for seconds in range(0, int(end) + 1, 30 if end > 150 else 10):
        out.append(f'<text x="{scale(seconds):.1f}" y="{height - 20}" text-anchor="middle">{seconds} s</text>')
    out.append("</svg>")
    with open(sys.argv[2], "w") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
