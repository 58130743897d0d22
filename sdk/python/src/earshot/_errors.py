"""The errors that don't depend on the codes of the contract."""

import functools
from typing import Any, Mapping, Optional, Tuple

# Statuses after which the same request may succeed.
_PASSING = frozenset((429, 500, 502, 503, 504))


class EarshotError(Exception):
    """The base of all errors of this package."""


class APIConnectionError(EarshotError):
    """No answer came, or the answer broke off. The request may have taken effect."""


class APITimeoutError(APIConnectionError):
    """No whole answer came within the time of an attempt."""


class APIError(EarshotError):
    """The service answered with an error. Each code of the contract has a subclass."""

    status: int
    """The HTTP status."""

    code: str
    """The code for programs, such as ERR_NOT_FOUND. It is HTTP_<status> if the answer has no code."""

    message: str
    """For people."""

    details: Mapping[str, Any]
    """Details for programs, depending on the code. The names are those of the contract."""

    request_id: Optional[str]
    """X-Request-Id, to quote when you report a problem."""

    retry_after: Optional[int]
    """The seconds to wait before a retry, as the service asks; None if it gives no time, or 0."""

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
        # Process pools pickle errors, and pickle doesn't handle keyword arguments by itself.
        members = {name: getattr(self, name) for name in APIError.__annotations__}
        return functools.partial(type(self), **members), ()

    def __str__(self) -> str:
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.status} {self.code}: {self.message}{request}"


def passing(error: EarshotError) -> bool:
    """Reports whether the same request may succeed later."""
    if not isinstance(error, APIError):
        return isinstance(error, APIConnectionError)
    # An unreadable success comes from a proxy in front of the service.
    unreadable = 200 <= error.status < 300
    return unreadable or error.status in _PASSING or error.code == "ERR_IDEMPOTENCY_IN_PROGRESS"
