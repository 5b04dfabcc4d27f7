#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Draws docs/way.svg: where the time of a heartbeat and of a death goes. What is drawn is said here, with where it was
measured; docs/performance.md says the same in words.

    bench/way.py > docs/way.svg
"""
from picture import LINE, SOFT, line, text

WIDTH, HEIGHT, LEFT, RIGHT = 960, 430, 40, 40
READ, CORE, WAIT, SEND, OTHER = "#9a6700", "#0969da", "#57606a", "#1a7f37", "#8250df"

# CPU of a heartbeat in us, behind mosquitto, as the table has it (ingest): the reader's thread, and all but it.
READER_US, LOOP_US, PLAIN_US = 0.48, 0.47, 7.4
# Shares of the core's instructions (bench/run --only instructions, callgrind).
IN_CORE = (("topic", 41), ("hash of the id", 25), ("look-up", 12), ("last seen, counters", 22))
# A death, in ms: at most a tick until its slot is due; then as much as a goodbye takes on an idle machine.
TICK_MS, REST_MS = 1000 / 31, 1.1


def box(x1, x2, y, colour, words, below=None, height=30):
    out = ['<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="2" fill="%s"/>' % (x1, y, max(1, x2 - x1 - 1), height, colour),
           text((x1 + x2) / 2, y + height / 2 + 4, words, 11, "middle", "#ffffff", True)]
    return out + ([text((x1 + x2) / 2, y + height + 15, below, 10, "middle", SOFT)] if below else [])


def row(parts, y, begin, end):
    """Boxes side by side: (words, size, colour, below)."""
    out, x, whole = [], begin, sum(size for _, size, _, _ in parts)
    for words, size, colour, below in parts:
        width = (end - begin) * size / whole
        out += box(x, x + width, y, colour, words, below)
        x += width
    return out


def zoom(y1, from1, from2, y2, to1, to2):
    return [line(from1, y1, to1, y2, LINE, 1, "4 3"), line(from2, y1, to2, y2, LINE, 1, "4 3")]


def heartbeat():
    begin, end, all_us = LEFT, WIDTH - RIGHT, READER_US + LOOP_US
    out = [text(LEFT, 34, "A heartbeat: %.1f us of CPU behind mosquitto (a plain libmosquitto subscriber: %.1f us)" % (
        all_us, PLAIN_US), 15, bold=True)]
    out += row((("read: system calls, packets, ring", READER_US, READ, "the reader's thread, %.2f us" % READER_US),
                ("the loop: batches, core", LOOP_US, CORE, "%.2f us" % LOOP_US)), 48, begin, end)
    split = begin + (end - begin) * READER_US / all_us
    out += zoom(98, split, end, 124, begin, end)
    out += row(tuple((words, share, CORE, "%d %%" % share) for words, share in IN_CORE), 124, begin, end)
    out.append(text(LEFT, 188, "The core's part: 576 instructions, 47 ns of a million devices in random order, of which the "
                    "look-up with its hash is 30; the two cache lines that it", 11, colour=SOFT))
    out.append(text(LEFT, 203, "touches take 14 by themselves. Nothing is allocated, the wheel is not touched, Redis is not asked.",
                    11, colour=SOFT))
    return out


def death():
    begin, end = LEFT, WIDTH - RIGHT
    out = [text(LEFT, 252, "A death: from its timeout to its status (not to scale)", 15, bold=True)]
    tick_end = begin + (end - begin) * 0.86
    out += box(begin, tick_end, 266, WAIT, "until the wheel's slot is due: 0 to %.0f ms, %.0f in the middle" % (
        TICK_MS, TICK_MS / 2))
    out += box(tick_end, end, 266, OTHER, "%.1f ms" % REST_MS)
    out += zoom(298, tick_end, end, 330, begin, end)
    out += row((("barrier there and back", 1, OTHER, "what was sent before has been read"),
                ("barrier there and back", 1, OTHER, "of all readers, and again"),
                ("Redis", 0.8, SEND, "state, mark, event: one script"),
                ("status", 0.8, SEND, "PUBLISH, retained")), 330, begin, end)
    out.append(text(LEFT, 396, "A goodbye waits for no slot: the second row alone. Many who die together share barriers, scripts and "
                    "writes.", 11, colour=SOFT))
    return out


def main():
    print('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif">' % (
        WIDTH, HEIGHT, WIDTH, HEIGHT))
    print('<rect width="%d" height="%d" rx="6" fill="#ffffff" stroke="%s"/>' % (WIDTH, HEIGHT, LINE))
    print("\n".join(heartbeat() + [line(LEFT, 224, WIDTH - RIGHT, 224, LINE)] + death()))
    print("</svg>")


main()
