"""Masking of the token in texts of servers and proxies."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.upstream.masking import STEP_BYTES, mask_records, mask_secrets

SECRET = "nbp_8sYvTtQ2WxRkMpLz4JcHdNgFbA1eUi0aBcDe"


class MaskedTests(SynchronousTestCase):
    def test_pieces(self) -> None:
        """NetBird tokens, and eight adjacent characters of any secret, are masked."""
        for text, shown in (
            (f"who is {SECRET}?", "who is <token>?"),
            (f"who is {SECRET[:10]}…?", "who is <token>…?"),
            ("not nbp_ but", "not <token> but"),
            ("nbp_otherOther1", "<token>"),
            (f"the end is {SECRET[-8:]}", "the end is <token>"),
            (f"{SECRET[8:20]}, {SECRET[20:30]}", "<token>, <token>"),
            (f"it begins with {SECRET[4:11]}", f"it begins with {SECRET[4:11]}"),
            (f"it ends with {SECRET[-7:]}", f"it ends with {SECRET[-7:]}"),
            (f"{SECRET} and other/secret", "<token> and <token>"),
            ("er/secre, or short", "<token>, or <token>"),
            ("no rules in the policy", "no rules in the policy"),
            ("", ""),
        ):
            self.assertEqual(shown, mask_secrets(text, SECRET, "other/secret", "short"))

    def test_long(self) -> None:
        """Only the beginning is shown, and no piece of the token at the cut."""
        for length in range(180, 205):
            shown = mask_secrets("." * length + SECRET + "x" * 10**5, SECRET)
            masked = f"{'.' * length}<token>{'x' * 200}"
            self.assertEqual(masked[:200], shown)

    @given(
        before=st.text("ab nbp_"),
        start=st.integers(0, 32),
        size=st.integers(8, 40),
        after=st.text("ab nbp_"),
    )
    def test_any_place(self, before: str, start: int, size: int, after: str) -> None:
        """No eight adjacent characters of the secret are ever shown."""
        piece = SECRET[start : start + size]
        shown = mask_secrets(before + piece + after, SECRET)
        for place in range(len(SECRET) - 7):
            self.assertNotIn(SECRET[place : place + 8], shown)


class RecordsTests(SynchronousTestCase):
    def test_secrets(self) -> None:
        """Each long secret is masked wherever it stands; a short one may be a word."""
        long, other = "nbp_0123456789abcdef", "fedcba9876543210_pbn"
        body = f'[{{"a":"{long}"}},{{"b":"x{other}{long}","c":"short"}}]'.encode()
        self.assertEqual(
            b'[{"a":"<token>"},{"b":"x<token><token>","c":"short"}]',
            mask_records((long, "short", other), body),
        )

    def test_steps(self) -> None:
        """A secret is found wherever a step of the search ends."""
        for before in range(STEP_BYTES - len(SECRET), STEP_BYTES + 2):
            body = b"." * before + SECRET.encode() + b"."
            masked = b"." * before + b"<token>."
            self.assertEqual(masked, mask_records((SECRET,), body), before)
