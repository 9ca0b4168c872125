"""What the command is doing, on stderr: one changing line on a terminal, one line a model elsewhere."""

import sys


class Progress:
    """Use as a context manager; `model(n, of, name)` starts a model, `step(text)` says what happens to it."""

    def __init__(self, stream=None):
        self._stream = stream or sys.stderr
        self._status = None
        self._head = ""
        if self._stream.isatty():
            from rich.console import Console

            self._console = Console(file=self._stream)
            self._status = self._console.status("")

    def __enter__(self):
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *unused):
        if self._status:
            self._status.stop()

    def model(self, number, of, name):
        self._head = f"[{number}/{of}] {name}"
        if not self._status:
            self._print(self._head)

    def step(self, text):
        if self._status:
            self._status.update(f"{self._head.replace('[', chr(92) + '[')}: {text}")
        else:
            self._print(f"{self._head}: {text}")

    def note(self, text):
        """A line that stays."""
        if self._status:
            self._console.print(text, markup=False, highlight=False)
        else:
            self._print(text)

    def _print(self, text):
        print(text, file=self._stream, flush=True)
