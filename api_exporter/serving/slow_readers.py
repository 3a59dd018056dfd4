"""Slow readers: how long each is waited for, judged by looking again and again."""

from msgspec import Struct

INTERVAL = 20.0
"""Seconds between two looks."""

STANDSTILL = 3
"""Looks in a row that must find a reader where it was for it to count as gone."""

LONGEST_ANSWER = 300.0
"""Seconds that a client may take for one answer. No scrape lasts as long, and whoever
reads for ever would keep the pages of the past in memory."""


class Progress(Struct, frozen=True):
    """How far a connection has come with its answers.

    Attributes:
        answered: answers that are complete.
        sent: bytes of the next one that the transport has been given.
        unsent: bytes that the client has not acknowledged.
        closing: whether the end of the connection waits for the client, as in TLS.
    """

    answered: int
    sent: int
    unsent: int
    closing: bool = False

    @property
    def waits(self) -> bool:
        """Whether it is the client's turn."""
        return self.unsent > 0 or self.closing


class Patience(Struct, frozen=True):
    """What looks in a row have found of a connection that waits for its client.

    Attributes:
        answer: how many looks before found the same answer.
        standing: how many of these, to the newest, found no progress at all.
    """

    seen: Progress
    answer: int = 0
    standing: int = 0

    def after(self, seen: Progress) -> "Patience":
        """With what the next look has found."""
        if seen.answered != self.seen.answered:
            return Patience(seen)
        standing = self.standing + 1 if seen == self.seen else 0
        return Patience(seen, self.answer + 1, standing)

    @property
    def end(self) -> str:
        """Why the reader is waited for no longer, "" while it is."""
        if self.answer * INTERVAL >= LONGEST_ANSWER:
            return "the answer took too long"
        if self.standing >= STANDSTILL:
            return (
                "the client read nothing for one minute"
                if self.seen.unsent
                else "the client did not close it"
            )
        return ""
