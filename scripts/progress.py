"""Tells a terminal how far a program is."""

import os
import sys
import time

REDRAWN_SECONDS = 0.5


def scaled(number):
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"


class ProgressLine:
    """One line that is drawn anew; nothing where standard error is no terminal."""

    def __init__(self, stream=None):
        self._stream = stream or sys.stderr
        self._is_shown = self._stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._begin = self._drawn = time.monotonic()

    def draw(self, text):
        """text(seconds since the begin) is asked for only when it is time."""
        now = time.monotonic()
        if self._is_shown and now - self._drawn >= REDRAWN_SECONDS:
            self._drawn = now
            self._stream.write(f"\r\x1b[Kprepare: {text(now - self._begin)}")
            self._stream.flush()

    def clear(self):
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
