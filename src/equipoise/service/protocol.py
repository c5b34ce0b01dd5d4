"""HTTP as uvicorn's fast parser reads it, but not without end: a request's head has a limit."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["LimitedProtocol"]

HEAD_LIMIT = 64 << 10


class LimitedProtocol(HttpToolsProtocol):
    """Hang up on whoever sends more than 64 KB before the head of a request is complete."""

    _in_head = True  # of a request
    _head = 0  # bytes since the last request was complete
    _progress = False  # whether a request was completed by what came

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self._progress = False
        super().data_received(data)
        self._head = self._head + len(data) if self._in_head and not self._progress else 0
        if self._head > HEAD_LIMIT:
            self.transport.abort()

    def on_headers_complete(self) -> None:
        """Begin to read a body."""
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Wait for the next request."""
        self._in_head = self._progress = True
        super().on_message_complete()
