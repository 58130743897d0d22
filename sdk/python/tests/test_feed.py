"""Following the feed of events, with both clients."""

import asyncio
import unittest
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from earshot import AsyncEarshot, Earshot, EarshotError, GoneError, ScopeInsufficientError, types
from serving import Clock, Server

UNAVAILABLE = {"status": 503, "body": {"error": {"code": "ERR_UNAVAILABLE", "message": "later"}}}
GONE = {"status": 410, "body": {"error": {"code": "ERR_GONE", "message": "gone", "details": {"latest": 12}}}}


def feed(next_after: int, *sequences: int) -> Dict[str, Any]:
    events = [{"id": f"evt_{n}", "sequence": n, "payload": {"event": "vote.created"}} for n in sequences]
    return {"status": 200, "body": {"data": events, "nextAfter": next_after}}


class Follower:
    """Follows until it has enough or an error comes, and writes down in which order things happened."""

    def __init__(self, answers: Sequence[Mapping[str, Any]], enough: int = 1000, after: Optional[int] = None) -> None:
        self.answers = answers
        self.enough = enough
        self.after = after
        self.log: List[str] = []
        self.error: Optional[EarshotError] = None
        self.clock = Clock()

    def save(self, sequence: int) -> None:
        self.log.append(f"saved {sequence}")

    async def asave(self, sequence: int) -> None:
        self.log.append(f"saved {sequence}")

    def took(self, event: types.Event) -> bool:
        self.log.append(f"took {event.sequence}")
        return sum(line.startswith("took") for line in self.log) == self.enough

    def follow(self, server: Server) -> None:
        with Earshot("esk_1", server.url, sleep=self.clock.sleep) as earshot:
            for event in earshot.events.follow(after=self.after, save=self.save):
                if self.took(event):
                    break

    def afollow(self, server: Server) -> None:
        async def run() -> None:
            async with AsyncEarshot("esk_1", server.url, sleep=self.clock.asleep) as earshot:
                async for event in earshot.events.follow(after=self.after, save=self.asave):
                    if self.took(event):
                        break

        asyncio.run(run())

    def run(self, way: Callable[["Follower", Server], None]) -> List[Optional[str]]:
        """Returns what the requests asked to go on after."""
        with Server(self.answers) as server:
            try:
                way(self, server)
            except EarshotError as error:
                self.error = error
        for seen in server.seen:
            assert seen.query["wait"] == "30", seen
        return [seen.query.get("after") for seen in server.seen]


class Feed(unittest.TestCase):
    def both(self, check: Callable[[Callable[[Follower, Server], None]], None]) -> None:
        for way in (Follower.follow, Follower.afollow):
            with self.subTest(way.__name__):
                check(way)

    def test_an_outage_is_waited_out_however_long_it_takes(self) -> None:
        def check(way: Callable[[Follower, Server], None]) -> None:
            asks = {**UNAVAILABLE, "status": 429, "headers": {"Retry-After": "120"}}
            outage = [UNAVAILABLE, {"cut": "before"}, {"cut": "inside", **feed(1, 1)}] + [UNAVAILABLE] * 9 + [asks]
            follower = Follower([*outage, feed(1, 1), UNAVAILABLE, feed(2, 2)], enough=2)
            follower.run(way)
            self.assertEqual(["took 1", "saved 1", "took 2"], follower.log)
            waits = follower.clock.waits
            self.assertEqual(14, len(waits))
            self.assertTrue(0.25 <= waits[0] <= 0.5, waits)
            self.assertTrue(all(4 <= waited <= 8 for waited in waits[5:12]), waits)
            self.assertTrue(120 <= waits[12] <= 121, waits)
            self.assertTrue(0.25 <= waits[13] <= 0.5, "after an answer the waits are short again")

        self.both(check)

    def test_what_a_repetition_cannot_mend_ends_it(self) -> None:
        def check(way: Callable[[Follower, Server], None]) -> None:
            follower = Follower([feed(1, 1), GONE])
            follower.run(way)
            assert isinstance(follower.error, GoneError)
            self.assertEqual(12, follower.error.details["latest"])
            self.assertEqual(["took 1", "saved 1"], follower.log)
            follower = Follower(
                [{"status": 403, "body": {"error": {"code": "ERR_SCOPE_INSUFFICIENT", "message": "no"}}}]
            )
            follower.run(way)
            self.assertIsInstance(follower.error, ScopeInsufficientError)
            self.assertEqual([], follower.clock.waits)

        self.both(check)


if __name__ == "__main__":
    unittest.main()
