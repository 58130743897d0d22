"""What the types must refuse.

Nobody runs this. The type checker fails at a comment below that has nothing to hush, so a type that has come loose
doesn't pass, and one that refuses a line for another reason neither.
"""

from datetime import datetime
from typing import Optional

from earshot import AsyncEarshot, Earshot, types, webhooks


def requests(earshot: Earshot, status: str, post: types.Post) -> None:
    earshot.posts.create("brd_1", title="Dark mode", contact_id=None)
    earshot.posts.create("brd_1")  # pyright: ignore[reportCallIssue]
    earshot.posts.create("brd_1", title=None)  # pyright: ignore[reportArgumentType]
    earshot.posts.create("brd_1", title="Dark mode", colour="black")  # pyright: ignore[reportCallIssue]
    earshot.posts.create("brd_1", title="Dark mode", body="Please")  # pyright: ignore[reportArgumentType]
    earshot.posts.create("brd_1", title="Dark mode", body={"txt": "Please"})  # pyright: ignore[reportArgumentType]
    earshot.posts.update("pst_1", status="planned", tag_ids=("tag_1",))
    earshot.posts.update("pst_1", status="done")  # pyright: ignore[reportArgumentType]
    earshot.posts.update("pst_1", status=status)  # pyright: ignore[reportArgumentType]
    earshot.posts.update("pst_1", status="planned", if_match='"tag"')
    earshot.posts.update("pst_1", status="planned", if_match=None)  # pyright: ignore[reportArgumentType]
    earshot.posts.list("brd_1", status=["open"], sort="votes", cursor=None)
    earshot.posts.list("brd_1", status=["closed"])  # pyright: ignore[reportArgumentType]
    earshot.posts.list("brd_1", sort="oldest")  # pyright: ignore[reportArgumentType]
    earshot.posts.list("brd_1", idempotency_key="job-7")  # pyright: ignore[reportCallIssue]
    earshot.contacts.identify_batch(contacts=[{"external_user_id": "u-1", "mrr_cents": 5}])
    earshot.contacts.identify_batch(contacts=[{"mrr_cents": 5}])  # pyright: ignore[reportArgumentType]
    earshot.webhooks.recover("whk_1", since=datetime.now().astimezone())
    earshot.webhooks.recover("whk_1", since="2026-01-01T00:00:00Z")  # pyright: ignore[reportArgumentType]
    earshot.post.get("pst_1")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def answers(earshot: Earshot, post: types.Post) -> Optional[int]:
    post.title = "Another"  # pyright: ignore[reportAttributeAccessIssue]
    if post.status == "a status of tomorrow":
        return post.vote_count
    for found in earshot.posts.list("brd_1"):
        found.contact_id.upper()  # pyright: ignore[reportOptionalMemberAccess]
    earshot.webhooks.get("whk_1").secret  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    return None


def events(payload: types.Payload) -> str:
    if isinstance(payload, types.VoteCreatedEvent):
        return payload.vote.post_id
    payload.post  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    return payload.event


async def awaited(earshot: AsyncEarshot) -> str:
    earshot.posts.get("pst_1").title  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    for _ in earshot.posts.list("brd_1"):  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
        pass
    async for post in earshot.posts.list("brd_1"):
        return post.title
    return (await earshot.posts.get("pst_1")).title


def headers() -> types.Payload:
    return webhooks.unwrap(b"", [("X-Service-Signature", "")], "whsec_1")  # pyright: ignore[reportArgumentType]
