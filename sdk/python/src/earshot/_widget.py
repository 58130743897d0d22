"""Tokens with which the widget identifies the person who sees a page."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any, Dict, Mapping, Optional, Union

from ._exchange import NOT_GIVEN, NotGiven


def widget_token(
    *,
    secret_id: str,
    secret: str,
    organization_id: str,
    external_user_id: str,
    email: Union[str, None, NotGiven] = NOT_GIVEN,
    name: Union[str, None, NotGiven] = NOT_GIVEN,
    plan: Union[str, None, NotGiven] = NOT_GIVEN,
    mrr_cents: Union[int, None, NotGiven] = NOT_GIVEN,
    currency: Union[str, None, NotGiven] = NOT_GIVEN,
    metadata: Union[Mapping[str, Any], NotGiven] = NOT_GIVEN,
    expires_in: int = 3600,
    now: Optional[float] = None,
) -> str:
    """Signs a token for `Earshot("identify", token)` in a page. It sends no request.

    Args:
        secret_id: The id of the widget's secret, from `widget.create_secret`.
        secret: The whole secret, `wgsec_…`. Use it only on a server, never in a page.
        organization_id: The id of your organization, `org_…`, from `me.get`.
        external_user_id: Your own id for the person.
        email, name, plan, mrr_cents, currency, metadata: Details of the person, as for `contacts.identify`.
        expires_in: For how many seconds the token is valid, an hour at most.
        now: The Unix time. The default is the system's clock.

    Raises:
        ValueError: A required value is empty, or `expires_in` is out of range.
    """
    if not (secret_id and secret and organization_id and external_user_id):
        raise ValueError("secret_id, secret, organization_id and external_user_id can't be empty")
    if not 1 <= expires_in <= 3600:
        raise ValueError("expires_in is from 1 to 3600 seconds")
    issued = int(time.time() if now is None else now)
    claims: Dict[str, Any] = {
        "sub": external_user_id,
        "iss": organization_id,
        "aud": "widget",
        "iat": issued,
        "exp": issued + expires_in,
        "email": email,
        "name": name,
        "plan": plan,
        "mrrCents": mrr_cents,
        "currency": currency,
        "metadata": metadata,
    }
    header = _encoded({"alg": "HS256", "typ": "JWT", "kid": secret_id})
    signed = header + b"." + _encoded({name: value for name, value in claims.items() if value is not NOT_GIVEN})
    return (signed + b"." + _base64(hmac.new(secret.encode(), signed, hashlib.sha256).digest())).decode()


def _encoded(value: Mapping[str, Any]) -> bytes:
    return _base64(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())


def _base64(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")
