# SPDX-License-Identifier: Apache-2.0
"""What cannot be done, in the worker's words: a code, a sentence, a remedy."""


class Problem(Exception):
    """code: run.skipped (not here, and why), run.memory, run.failed, run.cancelled, model.*; hint: the remedy."""

    def __init__(self, code, message, hint="", place=""):
        super().__init__(message)
        self.code, self.message, self.hint, self.place = code, message, hint, place

    def to_json(self):
        return {"code": self.code, "message": self.message, "hint": self.hint, "place": self.place}


def skipped(message, hint, place=""):
    """place: the parameter that cannot be had."""
    return Problem("run.skipped", message, hint, place)


def first_line(error):
    """Of an exception's text; its type where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
