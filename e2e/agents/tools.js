// What an agent's host does with the official TypeScript SDK: connect, look at the
// tools, and call them. The SDK holds every answer against the tool's output schema
// and throws where they differ.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const base = process.env.EARSHOT_BASE_URL;
const key = process.env.EARSHOT_API_KEY;

function overHTTP(withKey) {
  return new StreamableHTTPClientTransport(new URL("/mcp", base), {
    requestInit: { headers: { Authorization: `Bearer ${withKey}` } },
  });
}

function overStdio() {
  return new StdioClientTransport({
    command: process.env.EARSHOT_BIN,
    args: ["mcp"],
    env: { EARSHOT_BASE_URL: base, EARSHOT_API_KEY: key },
  });
}

async function tellTheStory(transport, name) {
  const client = new Client({ name: "story", version: "1.0.0" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.equal(tools.length, 18);
  assert.equal(tools.filter((tool) => tool.name.includes("contact")).length, 7);

  const call = async (tool, args) => {
    const result = await client.callTool({ name: tool, arguments: args });
    assert.ok(!result.isError, JSON.stringify(result.content));
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
    return result.structuredContent;
  };
  const contact = await call("identify_contact", {
    external_user_id: name, mrr_cents: 4900, currency: "EUR", metadata: { camelCase: 1 },
  });
  assert.equal(contact.created, true);
  assert.deepEqual(contact.data.metadata, { camelCase: 1 });
  const board = await call("manage_board", { action: "create_board", name });
  const post = await call("manage_post", {
    action: "create", board_id: board.data.id, title: "Export as PDF", contact_id: contact.data.id,
  });
  await call("vote_post", { action: "cast", post_id: post.data.id });
  const found = await call("search_posts", { board_id: board.data.id, q: "exports", status: ["open"] });
  assert.equal(found.data[0].vote_count, 1);
  assert.equal(found.next_cursor, null);

  const wrong = await client.callTool({ name: "create_contact", arguments: { mrr_cents: -1 } });
  assert.ok(wrong.isError);
  assert.equal(wrong.structuredContent.error.code, "ERR_VALIDATION");
  assert.ok(wrong.structuredContent.error.details.fields.some((f) => f.field === "mrr_cents"));
  await assert.rejects(client.callTool({ name: "drop_everything", arguments: {} }), /unknown tool/);

  const { resources } = await client.listResources();
  const { contents } = await client.readResource({ uri: resources[0].uri });
  assert.equal(JSON.parse(contents[0].text).openapi, "3.1.0");
  const { prompts } = await client.listPrompts();
  const { messages } = await client.getPrompt({ name: prompts[0].name });
  assert.match(messages[0].content.text, /manage_/);
  await client.close();
  console.log(`${name}: ${tools.length} tools, and the story went well.`);
}

await tellTheStory(overHTTP(key), "over HTTP");
await tellTheStory(overStdio(), "over stdio");
await assert.rejects(new Client({ name: "story", version: "1.0.0" }).connect(overHTTP("esk_nonsense")), /401|not valid/);
console.log("A wrong key is refused.");
