"""What all SDKs do alike, by the tables of sdk/vectors, with both clients."""

import asyncio
import json
import unittest
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict, Iterator, List, Optional, Tuple

from earshot import APIConnectionError, APIError, AsyncEarshot, Earshot, EarshotError, types, webhooks
from serving import Clock, Server

VECTORS = Path(__file__).resolve().parents[2] / "vectors"

Case = Dict[str, Any]


def cases(table: str) -> Iterator[Case]:
    yield from json.loads((VECTORS / f"{table}.json").read_text("utf-8"))["cases"]


def code(error: Optional[EarshotError]) -> Optional[str]:
    if isinstance(error, APIError):
        return error.code
    return "CONNECTION" if isinstance(error, APIConnectionError) else error and repr(error)


def call(earshot: Earshot, case: Case) -> object:
    retries = case.get("maxRetries")
    if case["call"] == "get":
        return earshot.posts.get("pst_1", max_retries=retries)
    if case["call"] == "identify":
        return earshot.contacts.identify(external_user_id="u", max_retries=retries)
    return earshot.posts.create("brd_1", title="A", max_retries=retries, idempotency_key=case.get("idempotencyKey"))


async def acall(earshot: AsyncEarshot, case: Case) -> object:
    retries = case.get("maxRetries")
    if case["call"] == "get":
        return await earshot.posts.get("pst_1", max_retries=retries)
    if case["call"] == "identify":
        return await earshot.contacts.identify(external_user_id="u", max_retries=retries)
    return await earshot.posts.create(
        "brd_1", title="A", max_retries=retries, idempotency_key=case.get("idempotencyKey")
    )


def outcome(server: Server, clock: Clock, use: Callable[[Earshot], object]) -> Tuple[Any, Optional[EarshotError]]:
    with Earshot("esk_test", server.url, sleep=clock.sleep) as earshot:
        try:
            return use(earshot), None
        except EarshotError as error:
            return None, error


def aoutcome(
    server: Server, clock: Clock, use: Callable[[AsyncEarshot], Awaitable[object]]
) -> Tuple[Any, Optional[EarshotError]]:
    async def run() -> Tuple[Any, Optional[EarshotError]]:
        async with AsyncEarshot("esk_test", server.url, sleep=clock.asleep) as earshot:
            try:
                return await use(earshot), None
            except EarshotError as error:
                return None, error

    return asyncio.run(run())


class Vectors(unittest.TestCase):
    def each(self, table: str, check: Callable[[Case, bool], None]) -> None:
        for case in cases(table):
            for asynchronous in (False, True):
                with self.subTest(case["name"], asynchronous=asynchronous):
                    check(case, asynchronous)

    def test_what_is_tried_again_and_after_how_long(self) -> None:
        self.each("retries", self.retry)

    def retry(self, case: Case, asynchronous: bool) -> None:
        want, clock = case["want"], Clock()
        with Server(case["answers"]) as server:
            if asynchronous:
                value, error = aoutcome(server, clock, lambda earshot: acall(earshot, case))
            else:
                value, error = outcome(server, clock, lambda earshot: call(earshot, case))
        self.assertEqual(want["requests"], len(server.seen))
        self.waited(want["waits"], clock)
        self.assertEqual(want.get("error"), code(error))
        self.assertEqual(want.get("ok", False), isinstance(value, types.Post))
        self.keys(case, [seen.headers.get("idempotency-key") for seen in server.seen])
        self.assertEqual(1, len({seen.body for seen in server.seen}), "repetitions send the same bytes")

    def waited(self, want: List[Tuple[int, int]], clock: Clock) -> None:
        self.assertEqual(len(want), len(clock.waits), clock.waits)
        for (least, most), waited in zip(want, clock.waits):
            self.assertTrue(least <= waited * 1000 <= most, clock.waits)

    def keys(self, case: Case, keys: List[Optional[str]]) -> None:
        self.assertEqual(1, len(set(keys)), keys)
        if "key" in case["want"]:
            self.assertEqual(case["want"]["key"], keys[0])
        elif case["call"] == "create":
            self.assertRegex(str(keys[0]), r"^[0-9a-f-]{36}$")
        else:
            self.assertIsNone(keys[0])

    def test_what_errors_say(self) -> None:
        self.each("errors", self.error)

    def error(self, case: Case, asynchronous: bool) -> None:
        create = {"call": "create", "maxRetries": 0}
        with Server([case]) as server:
            if asynchronous:
                _, error = aoutcome(server, Clock(), lambda earshot: acall(earshot, create))
            else:
                _, error = outcome(server, Clock(), lambda earshot: call(earshot, create))
        assert isinstance(error, APIError), error
        said = {
            "status": error.status,
            "code": error.code,
            "message": error.message,
            "requestId": error.request_id,
            "details": error.details,
        }
        self.assertEqual(case["want"], {name: said[name] for name in case["want"]})
        words = error.code[4:].split("_") if case["name"] == error.code else ["API"]
        name = "".join(w if w == "API" else w.capitalize() for w in words) + "Error"
        self.assertEqual(name, type(error).__name__)

    def test_lists_give_all_items_and_ask_for_no_more(self) -> None:
        self.each("pages", self.pages)

    def pages(self, case: Case, asynchronous: bool) -> None:
        ids: List[str] = []
        take = case.get("take", 1000)

        def walk(earshot: Earshot) -> None:
            posts = earshot.posts.list("brd_1", status=["open"], tag_ids=["tag_1", "tag_2"], cursor=case.get("cursor"))
            for post in posts:
                ids.append(post.id)
                if len(ids) == take:
                    break

        async def awalk(earshot: AsyncEarshot) -> None:
            posts = earshot.posts.list("brd_1", status=["open"], tag_ids=["tag_1", "tag_2"], cursor=case.get("cursor"))
            async for post in posts:
                ids.append(post.id)
                if len(ids) == take:
                    break

        with Server(case["answers"]) as server:
            _, error = aoutcome(server, Clock(), awalk) if asynchronous else outcome(server, Clock(), walk)
        want = case["want"]
        self.assertEqual(want["ids"], ids)
        self.assertEqual(want.get("error"), code(error))
        self.assertEqual(want["cursors"], [seen.query.get("cursor") for seen in server.seen])
        for seen in server.seen:
            self.assertEqual(("open", "tag_1,tag_2"), (seen.query["status"], seen.query["tagIds"]))

    def test_how_the_feed_is_followed_and_what_is_saved(self) -> None:
        self.each("feed", self.feed)

    def feed(self, case: Case, asynchronous: bool) -> None:
        log: List[str] = []

        def save(sequence: int) -> None:
            log.append(f"saved {sequence}")

        async def asave(sequence: int) -> None:
            save(sequence)

        def enough(event: types.Event) -> bool:
            log.append(f"event {event.sequence}")
            return sum(line.startswith("event") for line in log) == case.get("take")

        def follow(earshot: Earshot) -> None:
            for event in earshot.events.follow(after=case.get("after"), save=save):
                if enough(event):
                    break

        async def afollow(earshot: AsyncEarshot) -> None:
            async for event in earshot.events.follow(after=case.get("after"), save=asave):
                if enough(event):
                    break

        clock, want = Clock(), case["want"]
        with Server(case["answers"]) as server:
            _, error = aoutcome(server, clock, afollow) if asynchronous else outcome(server, clock, follow)
        self.assertEqual(want["log"], log)
        self.assertEqual(want.get("error"), code(error))
        afters = [None if after is None else str(after) for after in want["afters"]]
        self.assertEqual(afters, [seen.query.get("after") for seen in server.seen])
        self.assertEqual({"30"}, {seen.query["wait"] for seen in server.seen})
        self.waited(want["waits"], clock)

    def test_what_unwrap_believes(self) -> None:
        for case in cases("signatures"):
            for body in (case["body"], case["body"].encode()):
                with self.subTest(case["name"], of=type(body).__name__):
                    self.unwrap(case, body)

    def unwrap(self, case: Case, body: Any) -> None:
        headers = {"content-type": "application/json", "x-service-signature": case["signature"]}
        want = case["want"]
        if "error" in want:
            with self.assertRaises(webhooks.VerificationError) as raised:
                webhooks.unwrap(body, headers, case["secret"], now=case["now"])
            self.assertEqual(want["error"], raised.exception.check)
        else:
            self.assertEqual(want["event"], webhooks.unwrap(body, headers, case["secret"], now=case["now"]).event)


if __name__ == "__main__":
    unittest.main()
