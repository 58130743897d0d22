"""The two ways to carry out a call: one that blocks, and one that awaits."""

import asyncio
from typing import Awaitable, Callable, List, TypeVar, cast

import httpx

from ._errors import APITimeoutError
from ._exchange import Answer, Call, Done, Exchange, Settings

T = TypeVar("T")


class Driver:
    """Sends requests and blocks until the answer."""

    def __init__(self, settings: Settings, http: httpx.Client, sleep: Callable[[float], None]) -> None:
        self.settings = settings
        self.http = http
        self.sleep = sleep

    def send(self, call: Call[T]) -> T:
        """Returns the result, or raises an EarshotError."""
        exchange = Exchange(self.settings, call)
        while True:
            try:
                answer = self._attempt(exchange)
            except (httpx.RequestError, APITimeoutError) as error:
                outcome = exchange.lost(error)
            else:
                outcome = exchange.heard(answer)
            if isinstance(outcome, Done):
                return outcome.value
            self.sleep(outcome.seconds)

    def _attempt(self, exchange: Exchange[T]) -> Answer:
        # httpx limits each wait for bytes. This limits their sum, from the end of the headers on.
        until, chunks = self.settings.now() + exchange.timeout, cast(List[bytes], [])
        with self.http.stream(
            exchange.method, exchange.url, headers=exchange.headers, content=exchange.content, timeout=exchange.timeout
        ) as response:
            for chunk in response.iter_bytes():
                chunks.append(chunk)
                if self.settings.now() > until:
                    raise exchange.late()
        return Answer(response.status_code, response.headers, b"".join(chunks))


class AsyncDriver:
    """Sends requests and lets other tasks run in the meantime."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.settings = settings
        self.http = http
        self.sleep = sleep

    async def send(self, call: Call[T]) -> T:
        """Returns the result, or raises an EarshotError."""
        exchange = Exchange(self.settings, call)
        while True:
            try:
                answer = await self._attempt(exchange)
            except (httpx.RequestError, APITimeoutError) as error:
                outcome = exchange.lost(error)
            else:
                outcome = exchange.heard(answer)
            if isinstance(outcome, Done):
                return outcome.value
            await self.sleep(outcome.seconds)

    async def _attempt(self, exchange: Exchange[T]) -> Answer:
        answer = self.http.request(
            exchange.method, exchange.url, headers=exchange.headers, content=exchange.content, timeout=None
        )
        try:
            response = await asyncio.wait_for(answer, exchange.timeout)
        except asyncio.TimeoutError as error:
            raise exchange.late() from error
        return Answer(response.status_code, response.headers, response.content)
