"""Receiving webhooks."""

import hashlib
import hmac
import json
import re
import time
from typing import Any, Dict, Iterable, List, Literal, Optional, Protocol, Tuple, Union, cast

from ._decode import event
from ._errors import EarshotError
from ._generated_types import Payload

__all__ = ["HEADER", "Headers", "VerificationError", "unwrap"]

HEADER = "X-Service-Signature"
"""The header that carries the signature."""

Check = Literal["secret", "signature", "timestamp", "payload"]


class Headers(Protocol):
    """Headers as frameworks have them: a mapping, or another object with items."""

    def items(self) -> Iterable[Tuple[str, str]]:
        ...


class VerificationError(EarshotError):
    """A request that isn't genuine, recent or readable."""

    check: Check
    """The check that failed: the secret is missing, or the signature, the time or the payload is invalid."""

    def __init__(self, check: Check, message: str) -> None:
        super().__init__(check, message)
        self.check = check

    def __str__(self) -> str:
        return str(self.args[1])


def unwrap(
    body: Union[bytes, str], headers: Headers, secret: str, *, now: Optional[float] = None, tolerance: float = 300
) -> Payload:
    """Checks a request of a webhook and returns its event.

    Args:
        body: The body as it came in. JSON that was parsed and written again has another signature.
        headers: The request's headers. The case of their names doesn't matter.
        secret: The webhook's whole secret, `whsec_…`.
        now: The Unix time. The default is the system's clock.
        tolerance: How many seconds the signature's time may differ from now.

    Raises:
        VerificationError: The request isn't genuine, recent or readable; `check` names the failed check.
    """
    if secret in ("", "whsec_"):
        raise VerificationError("secret", "the webhook's secret is empty")
    raw = body.encode() if isinstance(body, str) else bytes(body)
    moment, signatures = _parts(headers)
    expected = hmac.new(secret.encode(), moment.encode() + b"." + raw, hashlib.sha256).hexdigest().encode()
    # Compares all of them, so that the duration doesn't reveal which one matches.
    if not any([hmac.compare_digest(given.encode(errors="replace"), expected) for given in signatures]):
        raise VerificationError("signature", f"{HEADER} has no signature of this body by this secret")
    if abs((time.time() if now is None else now) - int(moment)) > tolerance:
        raise VerificationError("timestamp", f"the signature is more than {tolerance:g} s away from now")
    return _payload(raw)


def _parts(headers: Headers) -> Tuple[str, List[str]]:
    header = ",".join(value for name, value in headers.items() if name.lower() == HEADER.lower())
    parts = [part.strip().partition("=") for part in header.split(",")]
    moment = next((value for name, _, value in parts if name == "t"), "")
    if re.fullmatch(r"[0-9]{1,12}", moment) is None:
        raise VerificationError("signature", f"{HEADER} is missing, or can't be read")
    return moment, [value for name, _, value in parts if name == "v1"]


def _payload(raw: bytes) -> Payload:
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise VerificationError("payload", "the body isn't JSON") from error
    if not isinstance(value, dict) or not isinstance(cast(Dict[str, Any], value).get("event"), str):
        raise VerificationError("payload", "the body names no event")
    return cast(Payload, event(value))
