"""The parts of a request: its path, query, headers and body."""

import enum
import json
from datetime import datetime
from typing import Any, List, Mapping, Optional, cast
from urllib.parse import quote, urlencode

from ._decode import wire


class NotGiven(enum.Enum):
    """A member of a request that is omitted, which differs from null."""

    NOT_GIVEN = "NOT_GIVEN"

    def __repr__(self) -> str:
        return self.value


NOT_GIVEN = NotGiven.NOT_GIVEN


def path(template: str, **ids: str) -> str:
    """Puts ids into a path. It refuses an id that would lead to another path."""
    for name, value in ids.items():
        if value in ("", ".", ".."):
            raise ValueError(f"{name} is {value!r}, which is no id")
    return template.format(*(quote(value, safe="") for value in ids.values()))


def members(value: Any) -> Any:
    """Converts the names of an object, or of each object of a list, to those of the contract."""
    if isinstance(value, Mapping):
        return {wire(name): member for name, member in cast(Mapping[str, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [members(item) for item in cast(List[Any], value)]
    return value


def header(name: str, value: Optional[str]) -> str:
    """Checks the value of a header from the caller. It refuses None, because the caller has lost the value."""
    if not (value and value.isascii() and value.isprintable()):
        raise ValueError(f"{name} can't be sent: it is empty, or has characters that a header doesn't take")
    return value


def query(parameters: Mapping[str, Any]) -> str:
    """Writes a query with its question mark, or an empty text."""
    given = [(name, _parameter(value)) for name, value in parameters.items() if value is not None]
    return "?" + urlencode(given, quote_via=quote, safe=",") if given else ""


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, (list, tuple)):
        return ",".join(cast(List[str], value))
    return str(value)


def encoded(body: Mapping[str, Any]) -> bytes:
    """Writes a body as JSON, without omitted members."""
    given = {name: value for name, value in body.items() if value is not NOT_GIVEN}
    text = json.dumps(given, default=_moment, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def _moment(value: Any) -> str:
    if not isinstance(value, datetime):
        raise TypeError(f"{type(value).__name__} can't be sent as JSON")
    if value.tzinfo is None:
        raise ValueError("a datetime without a zone is no moment: pass tzinfo, such as timezone.utc")
    return value.isoformat()
