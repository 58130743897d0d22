// A receiver of webhooks. It refuses what isn't genuine, and answers 500 to the first delivery that is, so that it comes again.
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { type EventPayload, webhooks } from "@earshot/sdk";

export interface Receiver {
  url: string;
  /** The secret is known only after the registration, which needs the address. */
  secret: string;
  /** By the ids of deliveries. */
  received: Map<string, EventPayload>;
  failures: number;
  stop(): void;
}

export async function startReceiver(): Promise<Receiver> {
  const server = createServer((request, response) => {
    receive(request, receiver).then(
      (status) => response.writeHead(status).end(),
      (error: unknown) => response.writeHead(400).end(String(error)),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    secret: "",
    received: new Map(),
    failures: 0,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return receiver;
}

async function receive(request: IncomingMessage, receiver: Receiver): Promise<number> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const payload = await webhooks.unwrap(Buffer.concat(chunks), request.headers, receiver.secret);
  if (receiver.failures === 0) {
    receiver.failures++;
    return 500;
  }
  receiver.received.set(String(request.headers["x-service-delivery"]), payload);
  return 204;
}
