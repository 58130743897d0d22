"""Following the feed of events without an end."""

from typing import AsyncIterator, Awaitable, Callable, Iterator, Optional, Protocol, Sequence, Union

from . import _generated_types as model
from ._drivers import AsyncDriver, Driver
from ._errors import APIError, EarshotError, passing
from ._exchange import Settings, pause


class _Place:
    """The position of a follower, and the number of its failures there."""

    def __init__(self, settings: Settings, after: Optional[int]) -> None:
        self._random = settings.random
        self._now = settings.now
        self._asked = 0.0
        self._failures = 0
        self.after = after
        # The last position that needs no saving: the one at the start, or the one that was saved last.
        self._saved = after

    def ask(self) -> None:
        """Records the time of a request."""
        self._asked = self._now()

    def read(self) -> None:
        """Records that the feed answered."""
        self._failures = 0

    def rest(self, page: model.EventFeed) -> float:
        """Returns the seconds to wait before the next request.

        The service answers immediately if too many requests of the organization wait. Then a wait is necessary.
        """
        return 0.0 if page.data or self._now() - self._asked >= 1 else 1 + self._random()

    def wait(self, error: EarshotError) -> float:
        """Returns the seconds to wait before a retry. It raises an error that a retry can't fix."""
        if not passing(error):
            raise error
        self._failures += 1
        return pause(self._failures, error.retry_after if isinstance(error, APIError) else None, self._random)

    def saves(self, sequence: int) -> bool:
        """Moves to an event, and reports whether the position must be saved."""
        self.after = sequence
        moved = self._saved is None or sequence > self._saved
        if moved:
            self._saved = sequence
        return moved


class _Feed(Protocol):
    @property
    def _driver(self) -> Driver:
        ...

    def list(
        self,
        *,
        after: Optional[int] = None,
        types: Optional[Sequence[model.EventType]] = None,
        wait: Optional[int] = None,
        max_retries: Optional[int] = None,
    ) -> model.EventFeed:
        ...


class _AsyncFeed(Protocol):
    @property
    def _driver(self) -> AsyncDriver:
        ...

    async def list(
        self,
        *,
        after: Optional[int] = None,
        types: Optional[Sequence[model.EventType]] = None,
        wait: Optional[int] = None,
        max_retries: Optional[int] = None,
    ) -> model.EventFeed:
        ...


class Following:
    """The methods of the resource of events beside its operations."""

    def follow(
        self: _Feed,
        *,
        after: Optional[int] = None,
        save: Optional[Callable[[int], None]] = None,
        types: Optional[Sequence[model.EventType]] = None,
        wait: int = 30,
    ) -> Iterator[model.Event]:
        """Yields each event of the feed once, and waits for new events. It has no end.

        It waits through outages. It raises errors that a retry can't fix, such as a refused key, or GoneError
        if the events after the position are gone (see `details["latest"]`).

        Args:
            after: The `sequence` of the last event that you have handled. The default is the oldest event.
            save: Called with the `sequence` after which the next run begins, when the loop asks for the next event. A
                program that ends before that sees one event again, and misses none.
            types: The types of events to yield. The default is all.
            wait: How many seconds a request waits for the next event.
        """
        place = _Place(self._driver.settings, after)
        while True:
            place.ask()
            try:
                page = self.list(after=place.after, types=types, wait=wait, max_retries=0)
            except EarshotError as error:
                self._driver.sleep(place.wait(error))
                continue
            place.read()
            for event in page.data:
                yield event
                if place.saves(event.sequence) and save is not None:
                    save(event.sequence)
            # A page may reach beyond its last event, past events that `types` leaves out.
            if not place.saves(page.next_after):
                self._driver.sleep(place.rest(page))
            elif save is not None:
                save(page.next_after)


class AsyncFollowing:
    """The methods of the resource of events beside its operations."""

    async def follow(
        self: _AsyncFeed,
        *,
        after: Optional[int] = None,
        save: Optional[Callable[[int], Union[None, Awaitable[None]]]] = None,
        types: Optional[Sequence[model.EventType]] = None,
        wait: int = 30,
    ) -> AsyncIterator[model.Event]:
        """Yields each event of the feed once, and waits for new events. It has no end.

        It waits through outages. It raises errors that a retry can't fix, such as a refused key, or GoneError
        if the events after the position are gone (see `details["latest"]`).

        Args:
            after: The `sequence` of the last event that you have handled. The default is the oldest event.
            save: Called with the `sequence` after which the next run begins, when the loop asks for the next event. An
                awaitable result is awaited. A program that ends before that sees one event again, and misses none.
            types: The types of events to yield. The default is all.
            wait: How many seconds a request waits for the next event.
        """
        place = _Place(self._driver.settings, after)
        while True:
            place.ask()
            try:
                page = await self.list(after=place.after, types=types, wait=wait, max_retries=0)
            except EarshotError as error:
                await self._driver.sleep(place.wait(error))
                continue
            place.read()
            for event in page.data:
                yield event
                if place.saves(event.sequence):
                    await _saved(save, event.sequence)
            # A page may reach beyond its last event, past events that `types` leaves out.
            if not place.saves(page.next_after):
                await self._driver.sleep(place.rest(page))
            else:
                await _saved(save, page.next_after)


async def _saved(save: Optional[Callable[[int], Union[None, Awaitable[None]]]], sequence: int) -> None:
    saving = save(sequence) if save is not None else None
    if saving is not None:
        await saving
