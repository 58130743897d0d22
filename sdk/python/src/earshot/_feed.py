"""The feed of events, followed for as long as one likes."""

from typing import AsyncIterator, Awaitable, Callable, Iterator, Optional, Protocol, Sequence, Union

from . import _generated_types as model
from ._drivers import AsyncDriver, Driver
from ._errors import APIError, EarshotError, passing
from ._exchange import Settings, pause


class _Place:
    """Where a follower is, and how often it has failed to go on from there."""

    def __init__(self, settings: Settings, after: Optional[int]) -> None:
        self._random = settings.random
        self._now = settings.now
        self._asked = 0.0
        self._failures = 0
        self.after = after
        # What needs no saving: it was there at the start, or was saved since.
        self._saved = after

    def ask(self) -> None:
        """Notes when the feed was asked."""
        self._asked = self._now()

    def read(self) -> None:
        """Notes that the feed answered."""
        self._failures = 0

    def rest(self, page: model.EventFeed) -> float:
        """Says after how many seconds to ask again.

        Where many of the organization wait already, the service answers at once. Nobody is served by asking again
        just as fast.
        """
        return 0.0 if page.data or self._now() - self._asked >= 1 else 1 + self._random()

    def wait(self, error: EarshotError) -> float:
        """Says after how many seconds to ask again; what a repetition can't mend is raised."""
        if not passing(error):
            raise error
        self._failures += 1
        return pause(self._failures, error.retry_after if isinstance(error, APIError) else None, self._random)

    def saves(self, sequence: int) -> bool:
        """Goes on to an event, and says whether it is to be saved."""
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
    """What the resource of events can do beside its operations."""

    def follow(
        self: _Feed,
        *,
        after: Optional[int] = None,
        save: Optional[Callable[[int], None]] = None,
        types: Optional[Sequence[model.EventType]] = None,
        wait: int = 30,
    ) -> Iterator[model.Event]:
        """Yields the events of the feed, each once, and waits for those to come. It has no end.

        Outages are waited out. What a repetition can't mend is raised: a key that is refused, or GoneError
        where the place is lost (see `details["latest"]`).

        Args:
            after: The `sequence` of the last event that was dealt with. Left out, it begins with the oldest one.
            save: Called with the `sequence` to begin after another time, when the next event is asked for. So
                a program that ends in between sees one event again, and misses none.
            types: Only these events.
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
            # Beyond its last event a page has passed by those that `types` leaves out.
            if not place.saves(page.next_after):
                self._driver.sleep(place.rest(page))
            elif save is not None:
                save(page.next_after)


class AsyncFollowing:
    """What the resource of events can do beside its operations."""

    async def follow(
        self: _AsyncFeed,
        *,
        after: Optional[int] = None,
        save: Optional[Callable[[int], Union[None, Awaitable[None]]]] = None,
        types: Optional[Sequence[model.EventType]] = None,
        wait: int = 30,
    ) -> AsyncIterator[model.Event]:
        """Yields the events of the feed, each once, and waits for those to come. It has no end.

        Outages are waited out. What a repetition can't mend is raised: a key that is refused, or GoneError
        where the place is lost (see `details["latest"]`).

        Args:
            after: The `sequence` of the last event that was dealt with. Left out, it begins with the oldest one.
            save: Called, and awaited where it is to be, with the `sequence` to begin after another time, when the
                next event is asked for. So a program that ends in between sees one event again, and misses none.
            types: Only these events.
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
            # Beyond its last event a page has passed by those that `types` leaves out.
            if not place.saves(page.next_after):
                await self._driver.sleep(place.rest(page))
            else:
                await _saved(save, page.next_after)


async def _saved(save: Optional[Callable[[int], Union[None, Awaitable[None]]]], sequence: int) -> None:
    saving = save(sequence) if save is not None else None
    if saving is not None:
        await saving
