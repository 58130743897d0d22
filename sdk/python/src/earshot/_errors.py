"""What goes wrong, whatever the contract's code is."""

import functools
from typing import Any, Mapping, Optional, Tuple

# Answers that the same request may get another answer after.
_PASSING = frozenset((429, 500, 502, 503, 504))


class EarshotError(Exception):
    """The base of all errors of this package."""


class APIConnectionError(EarshotError):
    """No answer came, or one that broke off. What was asked for may have taken effect."""


class APITimeoutError(APIConnectionError):
    """No whole answer came in the time of an attempt."""


class APIError(EarshotError):
    """The service answered with an error; for each code of the contract there is a class below this one."""

    status: int
    """The status of HTTP."""

    code: str
    """What to program against, such as ERR_NOT_FOUND; HTTP_<status> where the answer has none."""

    message: str
    """For people."""

    details: Mapping[str, Any]
    """What a program can use, depending on the code, with the names of the contract."""

    request_id: Optional[str]
    """X-Request-Id, to quote when you report a problem."""

    retry_after: Optional[int]
    """After how many seconds the service wants to be asked again; None where it doesn't say, or says 0."""

    def __init__(
        self,
        *,
        status: int,
        code: str,
        message: str,
        details: Mapping[str, Any],
        request_id: Optional[str],
        retry_after: Optional[int],
    ) -> None:
        super().__init__(code, message)
        self.status = status
        self.code = code
        self.message = message
        self.details = details
        self.request_id = request_id
        self.retry_after = retry_after

    def __reduce__(self) -> Tuple[Any, ...]:
        # Pools of processes carry errors pickled, and arguments by name aren't pickled by themselves.
        members = {name: getattr(self, name) for name in APIError.__annotations__}
        return functools.partial(type(self), **members), ()

    def __str__(self) -> str:
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.status} {self.code}: {self.message}{request}"


def passing(error: EarshotError) -> bool:
    """Says whether the same request may succeed later."""
    if not isinstance(error, APIError):
        return isinstance(error, APIConnectionError)
    # A success that can't be read comes from somebody between us and the service.
    unreadable = 200 <= error.status < 300
    return unreadable or error.status in _PASSING or error.code == "ERR_IDEMPOTENCY_IN_PROGRESS"
