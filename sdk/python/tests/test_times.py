"""The time that attempts have, with both clients where they differ."""

import asyncio
import unittest
from typing import Any, Dict, List

import httpx

from earshot import APIConnectionError, APITimeoutError, AsyncEarshot, Earshot
from serving import Clock, Server

KEY = "esk_1"


def made() -> Dict[str, Any]:
    return {"status": 201, "body": {"data": {"id": "pst_1", "title": "A", "status": "open"}}}


class Times(unittest.TestCase):
    def test_an_attempt_whose_answer_does_not_come_is_given_up_and_tried_again(self) -> None:
        clock = Clock()
        with Server([{"hang": True}, made(), {"hang": True}]) as server:
            with Earshot(KEY, server.url, timeout=0.2, sleep=clock.sleep) as earshot:
                self.assertEqual("pst_1", earshot.posts.get("pst_1").id)
                self.assertEqual(1, len(clock.waits))
                with self.assertRaises(APITimeoutError):
                    earshot.posts.get("pst_1", max_retries=0)

    def test_an_answer_that_trickles_has_no_more_time_than_another(self) -> None:
        passed = iter([0.0, 31.0])
        with Server([made()]) as server:
            with Earshot(KEY, server.url, max_retries=0, now=lambda: next(passed)) as earshot:
                with self.assertRaisesRegex(APITimeoutError, "within 30 s"):
                    earshot.posts.get("pst_1")

    def test_an_awaited_answer_whose_head_trickles_has_no_more_time_than_another(self) -> None:
        async def awaited(url: str) -> None:
            async with AsyncEarshot(KEY, url, timeout=0.5, max_retries=0) as earshot:
                with self.assertRaisesRegex(APITimeoutError, "within 0.5 s"):
                    await earshot.posts.get("pst_1")

        with Server([{"trickle": True}]) as server:
            asyncio.run(awaited(server.url))

    def test_an_attempt_that_was_given_up_leaves_its_connection_to_the_next(self) -> None:
        async def awaited(url: str) -> None:
            one = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=1))
            async with AsyncEarshot(KEY, url, timeout=0.5, transport=one, sleep=Clock().asleep) as earshot:
                self.assertEqual("pst_1", (await earshot.posts.get("pst_1")).id)

        with Server([{"hang": True}, {"hang": True}, {"trickle": True}, made()]) as server:
            asyncio.run(awaited(server.url))

    def test_a_request_that_waits_for_events_has_that_time_on_top(self) -> None:
        timeouts: List[Any] = []

        class Watched(httpx.HTTPTransport):
            def handle_request(self, request: httpx.Request) -> httpx.Response:
                timeouts.append(vars(request)["extensions"]["timeout"]["read"])
                return super().handle_request(request)

        feed: Dict[str, Any] = {"status": 200, "body": {"data": [], "nextAfter": 0}}
        with Server([feed] * 3) as server:
            with Earshot(KEY, server.url, timeout=10, transport=Watched()) as earshot:
                earshot.events.list()
                earshot.events.list(wait=30)
                earshot.events.list(wait=30, timeout=5)
        self.assertEqual([10, 40, 35], timeouts)

    def test_no_service_is_an_error_of_the_connection_that_is_no_timeout(self) -> None:
        with Server([]) as server:
            gone = server.url
        with Earshot(KEY, gone, max_retries=0) as earshot:
            with self.assertRaises(APIConnectionError) as raised:
                earshot.posts.get("pst_1")
        self.assertNotIsInstance(raised.exception, APITimeoutError)

    def test_cancelling_ends_a_request_and_a_wait_at_once(self) -> None:
        async def cancelled(server: Server) -> None:
            async with AsyncEarshot(KEY, server.url) as earshot:
                task = asyncio.ensure_future(earshot.posts.get("pst_1"))
                while not server.seen:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.05)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await asyncio.wait_for(task, 5)

        for answer in ({"hang": True}, {"status": 503, "text": "", "headers": {"Retry-After": "60"}}):
            with Server([answer]) as server:
                asyncio.run(cancelled(server))
            self.assertEqual(1, len(server.seen))


if __name__ == "__main__":
    unittest.main()
