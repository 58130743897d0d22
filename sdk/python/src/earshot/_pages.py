"""Lists and their pages."""

from dataclasses import dataclass, field, replace
from typing import Any, AsyncIterator, Callable, Dict, Generic, Iterator, List, Mapping, Optional, Type, TypeVar, cast

from ._decode import decode
from ._drivers import AsyncDriver, Driver
from ._exchange import Call
from ._generated_types import Deletion

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list."""

    data: List[T]
    """The items. A page may be empty although more pages follow."""

    next_cursor: Optional[str]
    """Where the next page begins; None on the last page. Pass it as `cursor` to continue there later."""

    deleted: Optional[List[Deletion]] = None
    """The deletions, in a list that is read to keep a copy up to date."""

    sync_cursor: Optional[str] = None
    """Where to look for later changes, in such a list. Pass it as `cursor`."""

    extra: Mapping[str, Any] = field(default_factory=lambda: cast(Dict[str, Any], {}))
    """Members that this version of the SDK doesn't know, as they came."""


def page(item: Type[T]) -> Callable[[Dict[str, Any]], Optional[Page[T]]]:
    """Reads a page of these items. A page needs a cursor, which is null at the end of the list."""

    def read(body: Dict[str, Any]) -> Optional[Page[T]]:
        rest = dict(body)
        items, cursor = rest.pop("data", None), rest.pop("nextCursor", "")
        if not isinstance(items, list) or cursor == "" or not isinstance(cursor, (str, type(None))):
            return None
        return Page(
            data=cast(List[T], decode(List[item], items)),
            next_cursor=cursor,
            deleted=cast(Optional[List[Deletion]], decode(List[Deletion], rest.pop("deleted", None))),
            sync_cursor=rest.pop("syncCursor", None),
            extra=rest,
        )

    return read


def _after(call: Call[Page[T]], seen: Page[T]) -> Optional[Call[Page[T]]]:
    if seen.next_cursor is None:
        return None
    return replace(call, query={**call.query, "cursor": seen.next_cursor})


class Listing(Generic[T]):
    """A list to iterate over, item by item. It sends its first request when you ask for the first item."""

    def __init__(self, driver: Driver, call: Call[Page[T]]) -> None:
        self._driver = driver
        self._call = call

    def __iter__(self) -> Iterator[T]:
        for found in self.pages():
            yield from found.data

    def pages(self) -> Iterator[Page[T]]:
        """Iterates over the pages of the list."""
        call: Optional[Call[Page[T]]] = self._call
        while call is not None:
            found = self._driver.send(call)
            yield found
            call = _after(call, found)


class AsyncListing(Generic[T]):
    """A list to iterate over with `async for`. It sends its first request when you ask for the first item."""

    def __init__(self, driver: AsyncDriver, call: Call[Page[T]]) -> None:
        self._driver = driver
        self._call = call

    async def __aiter__(self) -> AsyncIterator[T]:
        async for found in self.pages():
            for item in found.data:
                yield item

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Iterates over the pages of the list."""
        call: Optional[Call[Page[T]]] = self._call
        while call is not None:
            found = await self._driver.send(call)
            yield found
            call = _after(call, found)
