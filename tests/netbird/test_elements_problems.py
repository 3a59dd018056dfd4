"""The decoder's errors become words of JSON, for any body."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from api_exporter.netbird.bodies import DocumentDecoder
from api_exporter.ports import UpstreamError
from api_exporter.subjects.table import RESOURCES
from tools.wording import FOREIGN_WORDS


class DecodeProblemTests(SynchronousTestCase):
    def problem(self, decoder: object, body: bytes) -> str:
        """Return the message of a body that cannot be decoded."""
        assert isinstance(decoder, DocumentDecoder)
        return str(self.assertRaises(UpstreamError, decoder.decode, body))

    def test_words(self) -> None:
        """Each kind of error has its sentence, which names the field."""

        class Inner(msgspec.Struct):
            name: str
            ids: list[str] = []

        class Outer(msgspec.Struct):
            id: str
            inner: Inner | None = None

        decoder = DocumentDecoder(Outer)
        for body, words in (
            (b"", "the JSON is cut off"),
            (b'{"id":"a"', "the JSON is cut off"),
            (b"<html>", "this is not JSON, from byte 0 on"),
            (b'{"id":"a"}}', "this is not JSON, from byte 11 on"),
            (b'{"id":"%b"}' % (b"\xff" * 2**19), "the text is not UTF-8"),
            (b"[]", "the JSON is a list, not an object"),
            (b"{}", "the field id is missing"),
            (b'{"id":1.5}', "id is a number, not a string"),
            (b'{"id":"a","inner":{}}', "the field name of inner is missing"),
            (
                b'{"id":"a","inner":{"name":"x","ids":[true]}}',
                "inner.ids[0] is a boolean, not a string",
            ),
        ):
            self.assertEqual(words, self.problem(decoder, body))

    @given(
        body=st.binary(max_size=40)
        | st.sampled_from([b"[" * 10**4, b'{"id":' * 10**4, b'[{"id":"\xff"}]'])
        | st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ).map(msgspec.json.encode)
    )
    def test_any_body(self, body: bytes) -> None:
        """No message about any body has a word of the decoder or of Python."""
        for resource in RESOURCES:
            try:
                decoded = resource.decoder.decode(body)
            except UpstreamError as error:
                self.assertNotRegex(str(error), FOREIGN_WORDS)
            else:
                self.assertNotRegex(" ".join(decoded.errors), FOREIGN_WORDS)
