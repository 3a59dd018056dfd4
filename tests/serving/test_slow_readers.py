"""How long a reader is waited for, with looks that are only numbers."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.serving.slow_readers import (
    INTERVAL,
    LONGEST_ANSWER,
    Patience,
    Progress,
)

MINUTE = int(60 / INTERVAL)


def looked(*looks: Progress) -> str:
    """What comes of looks in a row."""
    first, *others = looks
    patience = Patience(first)
    for seen in others:
        patience = patience.after(seen)
    return patience.end


class PatienceTests(SynchronousTestCase):
    def test_stands_still(self) -> None:
        """A minute without progress is enough, and less is not."""
        stuck = Progress(answered=3, sent=10, unsent=5)
        self.assertEqual("", looked(*[stuck] * MINUTE))
        self.assertEqual(
            "the client read nothing for one minute", looked(*[stuck] * (MINUTE + 1))
        )

    def test_never_hangs_up(self) -> None:
        """Whoever has everything but does not close is not waited for either."""
        done = Progress(answered=3, sent=0, unsent=0, closing=True)
        self.assertTrue(done.waits)
        self.assertEqual("the client did not close it", looked(*[done] * (MINUTE + 1)))
        self.assertFalse(Progress(answered=3, sent=0, unsent=0).waits)

    def test_any_progress(self) -> None:
        """A byte that was taken, or given to the transport, begins a new minute."""
        for moved in (Progress(3, 10, 4), Progress(3, 11, 5)):
            stuck = Progress(answered=3, sent=10, unsent=5)
            self.assertEqual("", looked(*[stuck] * MINUTE, *[moved] * MINUTE))

    def test_for_ever(self) -> None:
        """One answer may not take for ever, whatever the progress."""
        most = int(LONGEST_ANSWER / INTERVAL)
        slow = [Progress(answered=3, sent=n, unsent=5) for n in range(most + 1)]
        self.assertEqual("", looked(*slow[:-1]))
        self.assertEqual("the answer took too long", looked(*slow))

    def test_another_answer(self) -> None:
        """With the next answer everything begins anew."""
        busy = [Progress(answered=n, sent=10, unsent=5) for n in range(1000)]
        self.assertEqual("", looked(*busy))
