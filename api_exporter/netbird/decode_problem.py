"""The decoder's errors in words of the response, without those of Python. Pure."""

import re

import msgspec

_TYPE = re.compile(r"Expected `(?P<wanted>.+?)`(?:, got `(?P<got>.+?)`)?(?: - at |$)")
_MISSING = re.compile(r"Object missing required field `(?P<name>.+?)`")
_MALFORMED = re.compile(r"JSON is malformed: .* \(byte (?P<byte>\d+)\)")
_TOO_LONG = re.compile(r"Expected `.+?` of length <= (?P<length>\d+)")
_PLACE = re.compile(r" - at `(?:key in )?\$\.?(?P<path>.*)`$")

_JSON_TYPES = {
    "bool": "a boolean",
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "array": "a list",
    "object": "an object",
    "datetime": "a time",
}


def decode_problem(error: Exception) -> str:
    """Return what is wrong with a response, given one of `elements.DECODE_ERRORS`."""
    text = str(error)
    if isinstance(error, RecursionError):
        return "the JSON is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "the text is not UTF-8"
    if not isinstance(error, msgspec.MsgspecError):
        return text  # a ValueError of this package
    if text == "Input data was truncated":
        return "the JSON is cut off"
    if found := _MALFORMED.match(text):
        return f"this is not JSON, from byte {found['byte']} on"
    return _form_problem(text)


def _form_problem(text: str) -> str:
    """Return which field of valid JSON has another form than expected."""
    place = _PLACE.search(text)
    what = place["path"] if place and place["path"] else "the JSON"
    if found := _MISSING.match(text):
        parent = f" of {place['path']}" if place and place["path"] else ""
        return f"the field {found['name']}{parent} is missing"
    if (found := _TYPE.match(text)) and found["got"]:
        wanted = " or ".join(map(_json_type, found["wanted"].split(" | ")))
        return f"{what} is {_json_type(found['got'])}, not {wanted}"
    if found := _TOO_LONG.match(text):
        return f"{what} is longer than {found['length']}"
    if text.startswith("Invalid RFC3339"):
        return f"{what} is not a time"
    return f"{what} has a value that is not allowed"


def _json_type(name: str) -> str:
    return _JSON_TYPES.get(name, name)
