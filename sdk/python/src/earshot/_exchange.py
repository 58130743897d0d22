"""One call without its input and output: what to send, what an answer means, and how long to wait."""

import enum
import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Callable, Dict, Generic, List, Mapping, Optional, Type, TypeVar, Union, cast
from urllib.parse import quote, urlencode

import httpx

from ._decode import decode, wire
from ._errors import APIConnectionError, APIError, APITimeoutError, EarshotError, passing
from ._generated_errors import CLASSES
from ._generated_version import VERSION

T = TypeVar("T")


class NotGiven(enum.Enum):
    """A member of a request that is left out, which is another thing than null."""

    NOT_GIVEN = "NOT_GIVEN"

    def __repr__(self) -> str:
        return self.value


NOT_GIVEN = NotGiven.NOT_GIVEN


@dataclass(frozen=True)
class Answer:
    """What came beside the data of a call that succeeded."""

    status: int
    """The status of HTTP; of `contacts.identify` 201 says that the contact was made."""

    headers: httpx.Headers
    """All headers; their names are compared without regard to case."""

    content: bytes = field(repr=False)
    """The body."""

    @property
    def etag(self) -> Optional[str]:
        """What to pass as `if_match`, to change only what you have read."""
        return self.headers.get("ETag")

    @property
    def request_id(self) -> Optional[str]:
        """X-Request-Id, to quote when you report a problem."""
        return self.headers.get("X-Request-Id")


OnAnswer = Callable[[Answer], None]


@dataclass(frozen=True)
class Call(Generic[T]):
    """What a method of a resource asks for."""

    method: str
    path: str
    read: Callable[[Dict[str, Any]], T]
    query: Mapping[str, Any] = field(default_factory=lambda: cast(Dict[str, Any], {}))
    body: Optional[Mapping[str, Any]] = None
    keyed: bool = False
    idempotency_key: Optional[str] = None
    if_match: Optional[str] = None
    timeout: Optional[float] = None
    max_retries: Optional[int] = None
    on_answer: Optional[OnAnswer] = None


@dataclass(frozen=True)
class Settings:
    """What holds for all calls of a client."""

    api_key: str = field(repr=False)
    base_url: str
    timeout: float
    max_retries: int
    random: Callable[[], float]
    now: Callable[[], float]


@dataclass(frozen=True)
class Wait:
    """The request is to be sent again, after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Done(Generic[T]):
    """The call has succeeded."""

    value: T


class Exchange(Generic[T]):
    """A call with all its attempts, which send the same bytes."""

    def __init__(self, settings: Settings, call: Call[T]) -> None:
        self._settings = settings
        self._call = call
        self._retries = settings.max_retries if call.max_retries is None else call.max_retries
        self._attempts = 1
        self.method = call.method
        self.url = settings.base_url + call.path + _query(call.query)
        self.headers = _headers(settings, call)
        self.content = None if call.body is None else _json(call.body)
        # Where the service waits for something to come, this is its time and not that of an attempt.
        patience = settings.timeout + float(call.query.get("wait") or 0)
        self.timeout = patience if call.timeout is None else call.timeout

    def reading(self) -> "Reading":
        """Begins an attempt, whose time runs from now on."""
        return Reading(self._settings.now, self.timeout)

    def heard(self, answer: Answer) -> Union[Wait, Done[T]]:
        """Judges an answer; one that stays an error is raised."""
        body = _parsed(answer.content)
        if 200 <= answer.status < 300 and body.get("data") is not None:
            if self._call.on_answer is not None:
                self._call.on_answer(answer)
            return Done(self._call.read(body))
        error = _refusal(answer, body)
        return self._again(error, error.retry_after)

    def lost(self, error: Union[httpx.RequestError, APITimeoutError]) -> Wait:
        """Judges that no answer came; the last time it is raised."""
        if isinstance(error, APITimeoutError):
            return self._again(error, None)
        cls = APITimeoutError if isinstance(error, httpx.TimeoutException) else APIConnectionError
        raised = cls(f"{self.method} {self._call.path}: {error or type(error).__name__}")
        raised.__cause__ = error
        return self._again(raised, None)

    def _again(self, error: EarshotError, retry_after: Optional[int]) -> Wait:
        if not passing(error) or self._attempts > self._retries or (retry_after or 0) > 60:
            raise error
        self._attempts += 1
        return Wait(pause(self._attempts - 1, retry_after, self._settings.random))


class Reading:
    """The body of an answer as it comes in. httpx bounds each wait for bytes, and this their sum."""

    def __init__(self, now: Callable[[], float], timeout: float) -> None:
        self._now = now
        self._timeout = timeout
        self._until = now() + timeout
        self._chunks: List[bytes] = []

    def take(self, chunk: bytes) -> None:
        """Takes some bytes, as long as there is time."""
        self._chunks.append(chunk)
        if self._now() > self._until:
            raise APITimeoutError(f"the answer didn't come to its end within {self._timeout:g} s")

    def answer(self, status: int, headers: httpx.Headers) -> Answer:
        """Is the whole."""
        return Answer(status, headers, b"".join(self._chunks))


def pause(retry: int, retry_after: Optional[int], random: Callable[[], float]) -> float:
    """Says how many seconds to wait before a retry, which are counted from 1.

    Clients that failed together come back at different moments.
    """
    if retry_after is not None:
        return retry_after + random() * min(retry_after / 10, 1.0)
    most = min(0.5 * 2.0 ** min(retry - 1, 10), 8.0)
    return most / 2 + random() * most / 2


def path(template: str, **ids: str) -> str:
    """Puts ids into a path. One that would lead to another path is refused."""
    for name, value in ids.items():
        if value in ("", ".", ".."):
            raise ValueError(f"{name} is {value!r}, which is no id")
    return template.format(*(quote(value, safe="") for value in ids.values()))


def members(value: Any) -> Any:
    """Writes the names of an object of a request, or of each of a list, as the contract does."""
    if isinstance(value, Mapping):
        return {wire(name): member for name, member in cast(Mapping[str, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [members(item) for item in cast(List[Any], value)]
    return value


def data(result: Type[T]) -> Callable[[Dict[str, Any]], T]:
    """Reads an answer that has one thing in `data`."""
    return lambda body: cast(T, decode(result, body["data"]))


def whole(result: Type[T]) -> Callable[[Dict[str, Any]], T]:
    """Reads an answer whose other members matter too."""
    return lambda body: cast(T, decode(result, body))


def _headers(settings: Settings, call: Call[Any]) -> Dict[str, str]:
    headers = {
        "Accept": "application/json",
        "Authorization": f"Bearer {settings.api_key}",
        "User-Agent": f"earshot-python/{VERSION}",
    }
    if call.body is not None:
        headers["Content-Type"] = "application/json"
    if call.keyed:
        headers["Idempotency-Key"] = _text("idempotency_key", call.idempotency_key) or str(uuid.uuid4())
    if call.if_match is not None:
        headers["If-Match"] = _text("if_match", call.if_match) or ""
    return headers


def _text(name: str, value: Optional[str]) -> Optional[str]:
    if value is not None and not (value and value.isascii() and value.isprintable()):
        raise ValueError(f"{name} can't be sent: it is empty, or has characters that a header doesn't take")
    return value


def _query(query: Mapping[str, Any]) -> str:
    given = [(name, _parameter(value)) for name, value in query.items() if value is not None]
    return "?" + urlencode(given, quote_via=quote, safe=",") if given else ""


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, (list, tuple)):
        return ",".join(cast(List[str], value))
    return str(value)


def _json(body: Mapping[str, Any]) -> bytes:
    given = {name: value for name, value in body.items() if value is not NOT_GIVEN}
    text = json.dumps(given, default=_moment, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def _moment(value: Any) -> str:
    if not isinstance(value, datetime):
        raise TypeError(f"{type(value).__name__} can't be sent as JSON")
    if value.tzinfo is None:
        raise ValueError("a datetime without a zone is no moment: pass tzinfo, such as timezone.utc")
    return value.isoformat()


def _parsed(content: bytes) -> Dict[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return cast(Dict[str, Any], body) if isinstance(body, dict) else {}


def _refusal(answer: Answer, body: Mapping[str, Any]) -> APIError:
    said = body.get("error")
    error = cast(Dict[str, Any], said) if isinstance(said, dict) else {}
    code, details = error.get("code"), error.get("details")
    if not isinstance(code, str):
        code = f"HTTP_{answer.status}"
    wanted = answer.headers.get("Retry-After", "")
    return CLASSES.get(code, APIError)(
        status=answer.status,
        code=code,
        message=str(error.get("message") or "the answer isn't the service's: it has no error as the contract has it"),
        details=cast(Dict[str, Any], details) if isinstance(details, dict) else {},
        request_id=answer.request_id,
        retry_after=int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else None,
    )
