import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { Earshot } from "../dist/index.js";

/** The cases of a table that all SDKs are held by. */
export async function cases(table) {
  return JSON.parse(await readFile(new URL(`../../vectors/${table}.json`, import.meta.url), "utf8")).cases;
}

/** A server that gives answers in turn, and keeps what it was asked. */
export async function serve(t, answers) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const answer = answers[requests.length];
    requests.push({ method: request.method, url: new URL(request.url, "http://localhost"), headers: request.headers, body });
    if (typeof answer === "function") return answer(request, response);
    reply(response, answer ?? { status: 418, text: "nobody expected this request" });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { requests, url: `http://127.0.0.1:${server.address().port}` };
}

function reply(response, { cut, status, headers, body, text }) {
  const bytes = Buffer.from(text ?? JSON.stringify(body) ?? "");
  if (cut === "before") return response.socket.destroy();
  // A connection of its own for each: some platforms send again by themselves what an idle connection lost.
  response.writeHead(status, { Connection: "close", ...headers, "Content-Length": bytes.length });
  if (cut === "inside") return response.write(bytes.subarray(0, bytes.length / 2), () => response.socket.destroy());
  response.end(bytes);
}

/** A client of a server, whose clock keeps how long it was asked to wait, and doesn't. */
export function client(url, options) {
  const waits = [];
  const clock = {
    now: () => 0,
    random: Math.random,
    sleep: async (milliseconds, signal) => {
      signal?.throwIfAborted();
      waits.push(milliseconds);
    },
  };
  return { waits, earshot: new Earshot({ apiKey: "esk_secret", baseUrl: url, clock, ...options }) };
}

export const post = { id: "pst_1", title: "A", status: "open" };
export const failure = (status, code, details) => ({ status, body: { error: { code, message: "As the service says it.", details } } });
