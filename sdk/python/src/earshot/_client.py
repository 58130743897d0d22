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
    """A client with calls that block. One client serves a whole program, and its threads can share it.

    Methods raise an EarshotError: an APIError if the service refused the request, with a class for each code, or an
    APIConnectionError if no answer came. Before that they retry requests that may succeed, and a write takes effect
    once. They raise a ValueError and send nothing if an id is empty, or if `if_match` is None or empty.

    Where they apply, methods also take these arguments:

    - `timeout` and `max_retries` override those of the client.
    - `idempotency_key` is your own key. The default is a new key for each call.
    - `if_match` is the ETag of the resource that you have read.
    - `on_answer` is called with the Answer of each successful request.

    Args:
        api_key: The key, `esk_…`. The default is the environment variable EARSHOT_API_KEY.
        base_url: The service's address. The default is the environment variable EARSHOT_BASE_URL, or the address of
            `make up`.
        timeout: How many seconds an attempt may take; a call can override it. httpx limits each wait for the network,
            not their sum. Headers that come byte by byte may take longer, and the last wait for a body may begin just
            before the time is over. AsyncEarshot limits the whole attempt.
        max_retries: The maximum number of retries; a call can override it.
        transport: The httpx transport for requests, in place of the network.
        sleep, now, random: The clock. `sleep` waits for a number of seconds, `now` returns seconds that only grow,
            and `random` returns a number from 0 to 1.
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
        """Closes the connections. `with Earshot() as earshot:` does so at its end."""
        self._http.close()

    def __enter__(self) -> "Earshot":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncEarshot(AsyncResources):
    """A client with calls to await. Canceling the task ends a call or a wait between two attempts immediately.

    Arguments and errors are those of Earshot. `timeout` limits an attempt from its beginning to its end.
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
        """Closes the connections. `async with AsyncEarshot() as earshot:` does so at its end."""
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
    # This error doesn't quote the key. The HTTP library's own error would.
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise EarshotError("the API key has characters that no key has, such as a line's end")
    url = (os.environ.get("EARSHOT_BASE_URL") or _LOCAL) if base_url is None else base_url
    if not _is_address(url):
        # The error doesn't quote the URL, which may contain a password.
        raise EarshotError(
            "base_url is no address such as https://feedback.example.com, without a user, a query and a fragment"
        )
    return Settings(key, url.rstrip("/"), timeout, max_retries, random, now)


def _is_address(url: str) -> bool:
    try:
        httpx.URL(url)
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except (httpx.InvalidURL, ValueError):  # for an invalid host, its brackets, or the port
        return False
    return usable and re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", url, re.IGNORECASE) is not None
