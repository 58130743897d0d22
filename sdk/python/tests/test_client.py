"""The promises that the tables of vectors don't hold, with both clients where they differ."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import pickle
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List
from unittest import mock

import earshot as package
from earshot import (
    APITimeoutError,
    Answer,
    AsyncEarshot,
    Earshot,
    EarshotError,
    NotFoundError,
    types,
    webhooks,
    widget_token,
)
from serving import Server

KEY = "esk_not_to_be_seen"
POST: Dict[str, Any] = {"id": "pst_1", "title": "A", "status": "open", "createdAt": "2026-03-12T10:41:07.233Z"}


def made(**members: Any) -> Dict[str, Any]:
    return {"status": 201, "body": {"data": {**POST, **members}}}


class Requests(unittest.TestCase):
    def test_a_member_that_is_left_out_is_another_thing_than_null(self) -> None:
        with Server([made(), made()]) as server, Earshot(KEY, server.url) as earshot:
            earshot.posts.update("pst_1", title="B")
            earshot.posts.update("pst_1", contact_id=None)
        self.assertEqual([{"title": "B"}, {"contactId": None}], [seen.json for seen in server.seen])

    def test_names_inside_of_a_body_are_the_contracts_and_those_of_users_stay(self) -> None:
        with Server([{"status": 200, "body": {"data": []}}]) as server, Earshot(KEY, server.url) as earshot:
            earshot.contacts.identify_batch(
                contacts=[{"external_user_id": "u-1", "mrr_cents": 5, "metadata": {"my_key": {"a_b": 1}}}]
            )
        want = {"externalUserId": "u-1", "mrrCents": 5, "metadata": {"my_key": {"a_b": 1}}}
        self.assertEqual({"contacts": [want]}, server.seen[0].json)

    def test_moments_are_sent_with_their_zone_and_those_without_one_are_refused(self) -> None:
        since = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2)))
        with Server([made(), {"status": 200, "body": {"data": [], "nextCursor": None}}]) as server:
            with Earshot(KEY, server.url) as earshot:
                earshot.webhooks.recover("whk_1", since=since)
                list(earshot.posts.list_all(updated_since=since, include_deleted=True))
                with self.assertRaisesRegex(ValueError, "zone"):
                    earshot.webhooks.recover("whk_1", since=since.replace(tzinfo=None))
        self.assertEqual({"since": "2026-01-02T03:04:05+02:00"}, server.seen[0].json)
        self.assertEqual({"updatedSince": "2026-01-02T03:04:05+02:00", "includeDeleted": "true"}, server.seen[1].query)
        self.assertEqual(2, len(server.seen))

    def test_ids_are_escaped_and_an_empty_one_is_refused_before_anything_is_sent(self) -> None:
        with Server([made()]) as server, Earshot(KEY, server.url) as earshot:
            earshot.posts.get("a/b?c#d%2F ü..")
            for wrong in ("", ".", ".."):
                with self.assertRaisesRegex(ValueError, "post_id"):
                    earshot.posts.get(wrong)
        self.assertEqual(["/v1/posts/a%2Fb%3Fc%23d%252F%20%C3%BC.."], [seen.target for seen in server.seen])

    def test_requests_say_who_they_are_from_and_carry_what_the_call_adds(self) -> None:
        with Server([made()]) as server, Earshot(KEY, server.url + "/") as earshot:
            earshot.posts.update("pst_1", title="B", if_match='"etag-1"', idempotency_key="job-7")
        headers = server.seen[0].headers
        self.assertEqual(f"earshot-python/{package.__version__}", headers["user-agent"])
        self.assertEqual(f"Bearer {KEY}", headers["authorization"])
        self.assertEqual(('"etag-1"', "job-7"), (headers["if-match"], headers["idempotency-key"]))
        self.assertEqual("/v1/posts/pst_1", server.seen[0].target)

    def test_a_write_is_not_sent_where_the_etag_that_it_goes_by_was_lost(self) -> None:
        async def awaited(url: str, etag: Any) -> None:
            async with AsyncEarshot(KEY, url) as earshot:
                await earshot.posts.update("pst_1", title="B", if_match=etag)

        with Server([made()] * 4) as server, Earshot(KEY, server.url) as earshot:
            lost: Any
            for lost in (None, ""):
                with self.assertRaisesRegex(ValueError, "if_match"):
                    earshot.posts.update("pst_1", title="B", if_match=lost)
                with self.assertRaisesRegex(ValueError, "if_match"):
                    asyncio.run(awaited(server.url, lost))
        self.assertEqual([], server.seen)

    def test_the_environment_says_what_is_not_given(self) -> None:
        with Server([made()]) as server:
            with mock.patch.dict(os.environ, {"EARSHOT_API_KEY": KEY, "EARSHOT_BASE_URL": server.url}):
                with Earshot() as earshot:
                    earshot.posts.get("pst_1")
        self.assertEqual(1, len(server.seen))

    def test_a_client_without_a_key_or_an_address_is_refused_at_once(self) -> None:
        with mock.patch.dict(os.environ):
            os.environ.pop("EARSHOT_API_KEY", None)
            for client in (Earshot, AsyncEarshot):
                with self.assertRaisesRegex(EarshotError, "EARSHOT_API_KEY"):
                    client()
                for address in (
                    "",
                    "localhost:4280",
                    "ftp://example.com",
                    "https://",
                    "https:///v1",
                    "http://:4280",
                    "http://[::1",
                    "http://example.com:99999",
                    "https://ada:secret@example.com",
                    "https://:secret@example.com",
                    "https://example.com?",
                    "https://example.com?x=1",
                    "https://example.com/#part",
                    "https://example.com\n",
                    "https://exa mple.com",
                ):
                    with self.assertRaisesRegex(EarshotError, "base_url", msg=address) as raised:
                        client(KEY, address)
                    self.assertNotIn("secret", str(raised.exception))

    def test_an_address_may_lead_behind_a_proxy_and_to_any_port(self) -> None:
        for address in ("https://example.com/behind/a/proxy/", "http://[::1]:8080", "HTTP://EXAMPLE.COM:80"):
            with Earshot(KEY, address) as earshot:
                self.assertEqual(address.rstrip("/"), earshot.posts._driver.settings.base_url)

    def test_the_key_is_in_no_error_and_no_representation(self) -> None:
        said: List[str] = []
        try:
            Earshot(KEY + "\n")
        except EarshotError as error:
            said.append(repr(error))
        with Server([{"status": 404, "body": {"error": {"code": "ERR_NOT_FOUND", "message": "no"}}}]) as server:
            with Earshot(KEY, server.url) as earshot:
                said += [repr(earshot), repr(earshot.posts), repr(earshot.posts._driver.settings)]
                try:
                    earshot.posts.get("pst_1")
                except NotFoundError as error:
                    said += [str(error), repr(error), repr(vars(error))]
        self.assertEqual(7, len(said))
        self.assertNotIn(KEY, "".join(said))

    def test_errors_pass_through_pools_of_processes(self) -> None:
        gone = {"code": "ERR_NOT_FOUND", "message": "no", "details": {"field": "postId"}}
        with Server([{"status": 404, "headers": {"X-Request-Id": "req_1"}, "body": {"error": gone}}]) as server:
            with Earshot(KEY, server.url) as earshot, self.assertRaises(NotFoundError) as raised:
                earshot.posts.get("pst_1")
        for error in (raised.exception, webhooks.VerificationError("signature", "no"), APITimeoutError("late")):
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(error), str(error), vars(error)), (type(again), str(again), vars(again)))


class Answers(unittest.TestCase):
    def get(self, **members: Any) -> types.Post:
        with Server([made(**members)]) as server, Earshot(KEY, server.url) as earshot:
            return earshot.posts.get("pst_1")

    def test_moments_come_as_datetimes(self) -> None:
        for text, want in {
            "2026-03-12T10:41:07.233Z": datetime(2026, 3, 12, 10, 41, 7, 233000, timezone.utc),
            "2026-03-12T10:41:07Z": datetime(2026, 3, 12, 10, 41, 7, 0, timezone.utc),
            "2026-03-12T10:41:07.123456789-01:30": datetime(
                2026, 3, 12, 10, 41, 7, 123456, timezone(-timedelta(hours=1, minutes=30))
            ),
        }.items():
            self.assertEqual(want, self.get(createdAt=text).created_at)

    def test_what_this_version_does_not_know_survives(self) -> None:
        post = self.get(status="parked", mood={"of_day": 1}, createdAt="the day before yesterday")
        self.assertEqual("parked", post.status)
        self.assertEqual({"mood": {"of_day": 1}}, post.extra)
        self.assertEqual("the day before yesterday", post.created_at)

    def test_a_secret_is_not_shown_by_accident(self) -> None:
        answer = {"status": 201, "body": {"data": {"id": "whk_1", "secret": "whsec_hidden"}}}
        with Server([answer]) as server, Earshot(KEY, server.url) as earshot:
            webhook = earshot.webhooks.create(url="https://example.com", events=["post.created"])
        self.assertEqual("whsec_hidden", webhook.secret)
        self.assertNotIn("hidden", repr(webhook))

    def test_the_answer_of_a_call_can_be_looked_at(self) -> None:
        answers: List[Answer] = []
        tagged = {**made(), "headers": {"ETag": '"e1"', "X-Request-Id": "req_1"}}
        with Server([tagged]) as server, Earshot(KEY, server.url) as earshot:
            earshot.posts.get("pst_1", on_answer=answers.append)
        [answer] = answers
        self.assertEqual((201, '"e1"', "req_1"), (answer.status, answer.etag, answer.request_id))

    def test_a_page_tells_where_it_ends_and_what_was_deleted(self) -> None:
        first: Dict[str, Any] = {
            "data": [POST],
            "nextCursor": "c1",
            "deleted": [{"id": "pst_9", "deletedAt": "2026-03-12T10:41:07Z"}],
            "syncCursor": "s1",
        }
        last: Dict[str, Any] = {"data": [], "nextCursor": None, "syncCursor": "s2"}
        with Server([{"status": 200, "body": body} for body in (first, last)]) as server:
            with Earshot(KEY, server.url) as earshot:
                pages = list(earshot.posts.list_all(include_deleted=True).pages())
        self.assertEqual([("c1", "s1"), (None, "s2")], [(page.next_cursor, page.sync_cursor) for page in pages])
        assert pages[0].deleted is not None
        self.assertEqual(("pst_9", 2026), (pages[0].deleted[0].id, pages[0].deleted[0].deleted_at.year))

    def test_events_are_told_apart_by_their_class(self) -> None:
        payload = {"event": "vote.created", "organizationId": "org_1", "boardId": "brd_1", "vote": {"id": "vot_1"}}
        known, unknown = signed(payload), signed({"event": "board.archived", "board": {"id": "brd_1"}})
        assert isinstance(known, types.VoteCreatedEvent)
        self.assertEqual("vot_1", known.vote.id)
        assert isinstance(unknown, types.UnknownEvent)
        self.assertEqual(("board.archived", {"board": {"id": "brd_1"}}), (unknown.event, dict(unknown.extra)))


def signed(payload: Dict[str, Any]) -> types.Payload:
    body = json.dumps(payload).encode()
    v1 = hmac.new(b"whsec_1", b"1700000000." + body, hashlib.sha256).hexdigest()
    return webhooks.unwrap(body, {"X-Service-Signature": f"t=1700000000,v1={v1}"}, "whsec_1", now=1700000000)


class Tokens(unittest.TestCase):
    def test_a_token_of_the_widget_says_what_is_known_and_is_signed(self) -> None:
        token = widget_token(
            secret_id="wgs_1",
            secret="wgsec_1",
            organization_id="org_1",
            external_user_id="u-1",
            name="Zoë",
            email=None,
            now=1700000000.9,
        )
        header, claims, signature = token.split(".")
        self.assertEqual({"alg": "HS256", "typ": "JWT", "kid": "wgs_1"}, unpacked(header))
        times = {"iat": 1700000000, "exp": 1700003600}
        self.assertEqual(
            {"sub": "u-1", "iss": "org_1", "aud": "widget", "name": "Zoë", "email": None, **times}, unpacked(claims)
        )
        mac = hmac.new(b"wgsec_1", f"{header}.{claims}".encode(), hashlib.sha256).digest()
        self.assertEqual(base64.urlsafe_b64encode(mac).rstrip(b"=").decode(), signature)

    def test_a_token_without_a_person_or_for_too_long_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            widget_token(secret_id="wgs_1", secret="wgsec_1", organization_id="org_1", external_user_id="")
        with self.assertRaises(ValueError):
            widget_token(
                secret_id="w", secret="wgsec_1", organization_id="org_1", external_user_id="u", expires_in=3601
            )


def unpacked(part: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


if __name__ == "__main__":
    unittest.main()
