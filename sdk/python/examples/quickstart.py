"""The first five minutes with Earshot: feedback comes in, signed webhooks go out, and the feed tells it all again.

    . .earshot/dev.env && export EARSHOT_BASE_URL EARSHOT_API_KEY
    python3 sdk/python/examples/quickstart.py

It can be played as often as one likes: it makes a board, a contact and three posts each time, and removes its
webhook at the end. It fails at the first thing that isn't as it should be.
"""

import asyncio
import threading
import uuid
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Dict, List, Tuple, Type

from earshot import Answer, AsyncEarshot, Earshot, PreconditionFailedError, ValidationError, types, webhooks

# How often each event comes in this story.
EXPECTED: Dict[types.EventType, int] = {
    "contact.created": 1,
    "contact.updated": 1,
    "post.created": 3,
    "comment.created": 1,
    "vote.created": 1,
    "post.status_changed": 1,
}


class Receiver:
    """An endpoint that answers 500 to the first request, and keeps each delivery that it accepted."""

    def __init__(self) -> None:
        self.secret = ""
        self.refused: List[str] = []
        self.accepted: Dict[str, types.Payload] = {}
        self.complete = threading.Event()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}/hook"

    def __enter__(self) -> "Receiver":
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def receive(self, body: bytes, headers: webhooks.Headers, delivery: str) -> int:
        try:
            payload = webhooks.unwrap(body, headers, self.secret)
        except webhooks.VerificationError as error:
            print(f"   {delivery} is refused: {error.check}")
            return 401
        with self._lock:
            if not self.refused:
                self.refused.append(delivery)
                return 500
            self.accepted[delivery] = payload
            if len(self.accepted) == sum(EXPECTED.values()):
                self.complete.set()
        return 204

    def _handler(self) -> Type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(receiver.receive(body, self.headers, self.headers["X-Service-Delivery"]))
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

        return Handler


def about(payload: types.Payload) -> str:
    """Says what an event is about. Its class tells which members it has."""
    if isinstance(payload, (types.PostCreatedEvent, types.PostStatusChangedEvent)):
        return f"{payload.post.title} is {payload.post.status}"
    if isinstance(payload, types.CommentCreatedEvent):
        return payload.comment.body_text
    if isinstance(payload, types.ContactUpdatedEvent):
        return ", ".join(f"{trait}: {change.to}" for trait, change in payload.changes.items())
    return payload.event


def collect(earshot: Earshot) -> Tuple[types.Board, types.Post]:
    """Makes what the events tell of."""
    board = earshot.boards.create(name=f"Feature requests {uuid.uuid4()}")
    tag = earshot.tags.create(board.id, name="Export", color="#2563eb")
    user = f"user-{uuid.uuid4()}"
    earshot.contacts.identify(external_user_id=user, email=f"{user}@example.com")
    contact = earshot.contacts.identify(external_user_id=user, name="Ada", plan="pro", metadata={"seat_count": 12})
    assert contact.email == f"{user}@example.com" and contact.metadata == {"seat_count": 12}, contact

    post = earshot.posts.create(
        board.id,
        title="Export dashboards as PDF",
        body={"text": "For my weekly report."},
        contact_id=contact.id,
        tag_ids=[tag.id],
    )
    for title in ("Dark mode", "Ein Zahlenformat für Zürich"):
        earshot.posts.create(board.id, title=title)
    earshot.comments.create(post.id, body={"text": "Which paper size do your readers need?"})
    earshot.votes.cast(post.id)
    print(f"1. The post {post.id} of {contact.name}, with a comment and a vote.")
    return board, post


def change(earshot: Earshot, post: types.Post) -> None:
    """Changes what was read, and only if nobody else did meanwhile."""
    answers: List[Answer] = []
    read = earshot.posts.get(post.id, on_answer=answers.append)
    assert (read.status, read.vote_count, read.comment_count) == ("open", 1, 1), read
    etag = answers[0].etag
    assert etag is not None, answers
    planned = earshot.posts.update(post.id, status="planned", if_match=etag)
    assert planned.status == "planned" and planned.updated_at > read.updated_at, planned
    try:
        earshot.posts.update(post.id, status="declined", if_match=etag)
    except PreconditionFailedError:
        print("2. It is planned, and who has read it before can't undo that unknowingly.")
    else:
        raise AssertionError("a change of what was read before took effect")
    try:
        earshot.posts.create(post.board_id, title="")
    except ValidationError as error:
        assert error.details["fields"][0]["field"] == "title" and error.request_id, error


def walk(earshot: Earshot, board: types.Board) -> None:
    """Reads a list in small pages, and once more from its middle."""
    pages = list(earshot.posts.list(board.id, sort="newest", limit=1).pages())
    titles = [post.title for page in pages for post in page.data]
    assert titles == ["Ein Zahlenformat für Zürich", "Dark mode", "Export dashboards as PDF"], titles
    rest = earshot.posts.list(board.id, sort="newest", limit=1, cursor=pages[0].next_cursor)
    assert [post.title for post in rest] == titles[1:]
    print(f"3. {len(titles)} posts in pages of one.")


async def follow(board: types.Board, checkpoint: Path) -> None:
    """Follows the feed, crashes after three events, and goes on from what was saved."""
    seen: List[types.Event] = []
    for enough in (3, sum(EXPECTED.values()) + 1):
        after = int(checkpoint.read_text()) if checkpoint.exists() else None

        def save(sequence: int) -> None:
            checkpoint.write_text(str(sequence))

        async with AsyncEarshot() as earshot:
            async for event in earshot.events.follow(after=after, save=save, types=list(EXPECTED)):
                seen.append(event)
                if len(seen) == enough:
                    break
    sequences = [event.sequence for event in seen]
    assert sequences[2] == sequences[3], "the event that was under way at the crash comes again"
    once = {event.sequence: event for event in seen}
    assert list(once) == sorted(once) and len(once) == len(seen) - 1, sequences
    count_all("the feed", [event.payload for event in once.values()])
    for event in once.values():
        if isinstance(event.payload, types.PostCreatedEvent):
            assert event.payload.board_id == board.id
        print(f"   {event.sequence:4} {event.type:20} {about(event.payload)}")
    print("4. The feed has each event once.")


def count_all(where: str, payloads: List[types.Payload]) -> None:
    counted = Counter(payload.event for payload in payloads)
    assert counted == Counter(EXPECTED), f"{where}: {counted}"


def main() -> None:
    with Earshot() as earshot, Receiver() as receiver, TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "checkpoint"
        # What was there before isn't part of the story.
        before = earshot.events.list(limit=100)
        while before.data:
            checkpoint.write_text(str(before.next_after))
            before = earshot.events.list(after=before.next_after, limit=100)
        webhook = earshot.webhooks.create(url=receiver.url, events=list(EXPECTED))
        receiver.secret = webhook.secret
        try:
            board, post = collect(earshot)
            change(earshot, post)
            walk(earshot, board)
            asyncio.run(follow(board, checkpoint))
            assert receiver.complete.wait(90), receiver.accepted
            count_all("the receiver", list(receiver.accepted.values()))
            [refused] = receiver.refused
            assert refused in receiver.accepted, "what was answered 500 comes again"
            print(f"5. All deliveries arrived, {refused} at its second attempt.")
        finally:
            earshot.webhooks.delete(webhook.id)
    print("The story went well.")


if __name__ == "__main__":
    main()
