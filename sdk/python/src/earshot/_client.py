"""The clients."""

import asyncio
import os
import random as randomness
import re
import time
from typing import Awaitable, Callable, Optional
from urllib.parse import urlsplit

import httpx

from ._drivers import AsyncDriver, Driver
from ._errors import EarshotError
from ._exchange import Settings
from ._generated_async import AsyncResources
from ._generated_sync import Resources

_LOCAL = "http://127.0.0.1:4280"


class Earshot(Resources):
    """The API, by calls that block. One client serves a whole program, and its threads share it.

    Methods raise an EarshotError: an APIError where the service refused, of a class for each code, an
    APIConnectionError where no answer came. What may be repeated is repeated before, and takes effect once. They
    raise a ValueError, and send nothing, for an id that is empty, or an `if_match` that is None or empty.

    Methods take these too, where they mean something: `timeout` and `max_retries` in place of the client's;
    `idempotency_key`, a text of your own for what you do, in place of one that is made for the call; `if_match`, the
    ETag of what you have read; and `on_answer`, which is called with the Answer of each request that succeeded.

    Args:
        api_key: The key, `esk_…`; EARSHOT_API_KEY if left out.
        base_url: The service's address; EARSHOT_BASE_URL if left out, or else that of `make up`.
        timeout: How many seconds an attempt may take; a call can set its own. httpx bounds each wait for the network
            and not their sum: headers that come byte by byte may take longer, and the last wait for a body may begin
            just before the time is over. AsyncEarshot bounds the whole attempt.
        max_retries: How often a request is repeated at most; a call can set its own.
        transport: What httpx sends requests with, in place of the network.
        sleep, now, random: The clock: waits for so many seconds, tells seconds that only grow, and a number from
            0 to 1.
    """

    def __init__(
        self,
        api_key: Optional[str] = None,
        base_url: Optional[str] = None,
        *,
        timeout: float = 30,
        max_retries: int = 4,
        transport: Optional[httpx.BaseTransport] = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        settings = _settings(api_key, base_url, timeout, max_retries, random, now)
        self._http = httpx.Client(transport=transport, follow_redirects=False)
        super().__init__(Driver(settings, self._http, sleep))

    def close(self) -> None:
        """Closes the connections. `with Earshot() as earshot:` does it at its end."""
        self._http.close()

    def __enter__(self) -> "Earshot":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncEarshot(AsyncResources):
    """The API, by calls to await. To cancel the task ends a call, or the wait between two attempts, at once.

    Arguments and errors are those of Earshot. `timeout` bounds an attempt from its beginning to its end.
    """

    def __init__(
        self,
        api_key: Optional[str] = None,
        base_url: Optional[str] = None,
        *,
        timeout: float = 30,
        max_retries: int = 4,
        transport: Optional[httpx.AsyncBaseTransport] = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        settings = _settings(api_key, base_url, timeout, max_retries, random, now)
        self._http = httpx.AsyncClient(transport=transport, follow_redirects=False)
        super().__init__(AsyncDriver(settings, self._http, sleep))

    async def aclose(self) -> None:
        """Closes the connections. `async with AsyncEarshot() as earshot:` does it at its end."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncEarshot":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _settings(
    api_key: Optional[str],
    base_url: Optional[str],
    timeout: float,
    max_retries: int,
    random: Callable[[], float],
    now: Callable[[], float],
) -> Settings:
    key = os.environ.get("EARSHOT_API_KEY", "") if api_key is None else api_key
    if not key:
        raise EarshotError("there is no API key: pass api_key, or set EARSHOT_API_KEY")
    # Said without the key, which the HTTP library's own error would quote.
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise EarshotError("the API key has characters that no key has, such as a line's end")
    url = (os.environ.get("EARSHOT_BASE_URL") or _LOCAL) if base_url is None else base_url
    if not _is_address(url):
        # Not told, because it may hold a password.
        raise EarshotError(
            "base_url is no address such as https://feedback.example.com, without a user, a query and a fragment"
        )
    return Settings(key, url.rstrip("/"), timeout, max_retries, random, now)


def _is_address(url: str) -> bool:
    try:
        httpx.URL(url)
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except (httpx.InvalidURL, ValueError):  # of the host, its brackets, or the port
        return False
    return usable and re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", url, re.IGNORECASE) is not None
