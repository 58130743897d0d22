"""One call without its input and output: the request, the meaning of an answer, and the waits."""

import json
import uuid
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Generic, Mapping, Optional, Type, TypeVar, Union, cast

import httpx

from ._decode import decode
from ._errors import APIConnectionError, APIError, APITimeoutError, EarshotError, passing
from ._generated_errors import CLASSES
from ._generated_version import VERSION
from ._request import NOT_GIVEN, NotGiven, encoded, header, query

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """The answer of a successful call."""

    status: int
    """The HTTP status. For `contacts.identify`, 201 means that the contact is new."""

    headers: httpx.Headers
    """All headers. The case of their names doesn't matter."""

    content: bytes = field(repr=False)
    """The body."""

    @property
    def etag(self) -> Optional[str]:
        """The ETag. Pass it as `if_match` to change only the version that you have read."""
        return self.headers.get("ETag")

    @property
    def request_id(self) -> Optional[str]:
        """X-Request-Id, to quote when you report a problem."""
        return self.headers.get("X-Request-Id")


OnAnswer = Callable[[Answer], None]


@dataclass(frozen=True)
class Call(Generic[T]):
    """The request of a method of a resource."""

    method: str
    path: str
    read: Callable[[Dict[str, Any]], Optional[T]]
    """Reads an answer; None means that it doesn't come from the service."""

    query: Mapping[str, Any] = field(default_factory=lambda: cast(Dict[str, Any], {}))
    body: Optional[Mapping[str, Any]] = None
    keyed: bool = False
    idempotency_key: Optional[str] = None
    if_match: Union[str, NotGiven] = NOT_GIVEN
    timeout: Optional[float] = None
    max_retries: Optional[int] = None
    on_answer: Optional[OnAnswer] = None


@dataclass(frozen=True)
class Settings:
    """The settings of a client."""

    api_key: str = field(repr=False)
    base_url: str
    timeout: float
    max_retries: int
    random: Callable[[], float]
    now: Callable[[], float]


@dataclass(frozen=True)
class Wait:
    """The request must be sent again, after this many seconds."""

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
        self.url = settings.base_url + call.path + query(call.query)
        self.headers = _headers(settings, call)
        self.content = None if call.body is None else encoded(call.body)
        # The time that the service is asked to wait doesn't count as time of the attempt.
        wait = float(call.query.get("wait") or 0)
        self.timeout = (settings.timeout if call.timeout is None else call.timeout) + wait

    def heard(self, answer: Answer) -> Union[Wait, Done[T]]:
        """Handles an answer. It raises an error that it doesn't retry."""
        body = _parsed(answer.content)
        value = self._call.read(body) if 200 <= answer.status < 300 else None
        if value is not None:
            if self._call.on_answer is not None:
                self._call.on_answer(answer)
            return Done(value)
        error = _refusal(answer, body)
        return self._again(error, error.retry_after)

    def late(self) -> APITimeoutError:
        """Returns the error for an attempt that took too long."""
        return APITimeoutError(f"{self.method} {self._call.path}: no whole answer within {self.timeout:g} s")

    def lost(self, error: Union[httpx.RequestError, APITimeoutError]) -> Wait:
        """Handles an attempt without an answer. After the last attempt it raises the error."""
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


def pause(retry: int, retry_after: Optional[int], random: Callable[[], float]) -> float:
    """Returns the seconds to wait before a retry. Retries are counted from 1.

    A random part keeps clients that failed together from retrying together.
    """
    if retry_after is not None:
        return retry_after + random() * min(retry_after / 10, 1.0)
    most = min(0.5 * 2.0 ** min(retry - 1, 10), 8.0)
    return most / 2 + random() * most / 2


def data(result: Type[T]) -> Callable[[Dict[str, Any]], Optional[T]]:
    """Reads an answer that has its result in `data`."""
    return lambda body: cast(Optional[T], decode(result, body.get("data")))


def feed(result: Type[T]) -> Callable[[Dict[str, Any]], Optional[T]]:
    """Reads a page of the feed. It always has the position at which to continue."""

    def read(body: Dict[str, Any]) -> Optional[T]:
        # The type must be exactly int, because True is an instance of int too.
        whole = isinstance(body.get("data"), list) and type(body.get("nextAfter")) is int
        return cast(T, decode(result, body)) if whole else None

    return read


def _headers(settings: Settings, call: Call[Any]) -> Dict[str, str]:
    headers = {
        "Accept": "application/json",
        "Authorization": f"Bearer {settings.api_key}",
        "User-Agent": f"earshot-python/{VERSION}",
    }
    if call.body is not None:
        headers["Content-Type"] = "application/json"
    if call.keyed:
        own = call.idempotency_key
        headers["Idempotency-Key"] = str(uuid.uuid4()) if own is None else header("idempotency_key", own)
    if call.if_match is not NOT_GIVEN:
        headers["If-Match"] = header("if_match", call.if_match)
    return headers


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
        # With 0, all clients would retry without a pause.
        retry_after=int(wanted) or None if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else None,
    )
