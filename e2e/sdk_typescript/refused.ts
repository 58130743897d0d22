// What the types must refuse, and what they must leave open. The compiler fails at a line below @ts-expect-error
// that it would accept.
import type { ConditionalOptions, CreatePostRequest, Earshot, EventPayload, PostStatus, UpdatePostRequest } from "@earshot/sdk";

export const bodies = [
  { title: "Dark mode" } satisfies CreatePostRequest,
  // @ts-expect-error: no such member
  { title: "Dark mode", colour: "black" } satisfies CreatePostRequest,
  // @ts-expect-error: the title is required
  { contactId: null } satisfies CreatePostRequest,
  // @ts-expect-error: the title can't be null
  { title: null, contactId: null } satisfies CreatePostRequest,
  { status: "planned", title: undefined } satisfies UpdatePostRequest,
];

// A value that comes later is one, too.
export const statuses: PostStatus[] = ["open", "a status of next year"];

export async function calls(earshot: Earshot, options: ConditionalOptions): Promise<void> {
  await earshot.posts.update("pst_1", { status: "planned" }, options);
  // @ts-expect-error: whoever creates something hasn't read it before
  await earshot.posts.create("brd_1", { title: "Dark mode" }, { ifMatch: "W/1" });
  // @ts-expect-error: a read takes no key
  await earshot.posts.get("pst_1", { idempotencyKey: "once" });
  // @ts-expect-error: no such filter
  earshot.posts.list("brd_1", { state: ["open"] });
  // @ts-expect-error: a post's title is a text
  (await earshot.posts.get("pst_1")).title satisfies number;
  // @ts-expect-error: a contact may have no address
  (await earshot.contacts.get("ctc_1")).email satisfies string;
}

export function told(payload: EventPayload): string {
  // @ts-expect-error: not every event has a post
  payload.post satisfies object;
  switch (payload.event) {
    case "post.created":
      return payload.post.title;
    case "vote.created":
      return payload.vote.postId;
    case "contact.updated":
      return Object.keys(payload.changes).join(", ");
    default:
      return payload.event;
  }
}
