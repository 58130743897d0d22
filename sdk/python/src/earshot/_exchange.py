"""One call without its input and output: what to send, what an answer means, and how long to wait."""

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
    read: Callable[[Dict[str, Any]], Optional[T]]
    """Reads an answer; None says that it isn't the service's."""

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
        self.url = settings.base_url + call.path + query(call.query)
        self.headers = _headers(settings, call)
        self.content = None if call.body is None else encoded(call.body)
        # How long the service is asked to wait for something to come isn't part of an attempt's time.
        wait = float(call.query.get("wait") or 0)
        self.timeout = (settings.timeout if call.timeout is None else call.timeout) + wait

    def heard(self, answer: Answer) -> Union[Wait, Done[T]]:
        """Judges an answer; one that stays an error is raised."""
        body = _parsed(answer.content)
        value = self._call.read(body) if 200 <= answer.status < 300 else None
        if value is not None:
            if self._call.on_answer is not None:
                self._call.on_answer(answer)
            return Done(value)
        error = _refusal(answer, body)
        return self._again(error, error.retry_after)

    def late(self) -> APITimeoutError:
        """Says that the time of an attempt is over."""
        return APITimeoutError(f"{self.method} {self._call.path}: no whole answer within {self.timeout:g} s")

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


def pause(retry: int, retry_after: Optional[int], random: Callable[[], float]) -> float:
    """Says how many seconds to wait before a retry, which are counted from 1.

    Clients that failed together come back at different moments.
    """
    if retry_after is not None:
        return retry_after + random() * min(retry_after / 10, 1.0)
    most = min(0.5 * 2.0 ** min(retry - 1, 10), 8.0)
    return most / 2 + random() * most / 2


def data(result: Type[T]) -> Callable[[Dict[str, Any]], Optional[T]]:
    """Reads an answer that has one thing in `data`."""
    return lambda body: cast(Optional[T], decode(result, body.get("data")))


def feed(result: Type[T]) -> Callable[[Dict[str, Any]], Optional[T]]:
    """Reads a page of the feed, which always says where to go on."""

    def read(body: Dict[str, Any]) -> Optional[T]:
        # Of type int in truth: True is an int, too.
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
        # 0 would have everybody ask again without a pause.
        retry_after=int(wanted) or None if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else None,
    )
