// A receiver of webhooks as an integrator writes it, with Node's own modules.
import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import type { AnyPayload } from "./api.js";

const tolerance = 300; // seconds

// verify says whether the signature belongs to the body and is recent. A secret
// is used whole, and the body as it came in.
export function verify(secret: string, header: string, body: Buffer, now: number): boolean {
  const parts = header.split(",").map((part): [string, string] => {
    const [name = "", value = ""] = part.split("=", 2);
    return [name.trim(), value.trim()];
  });
  const t = parts.find(([name]) => name === "t")?.[1] ?? "";
  if (!/^\d+$/.test(t) || Math.abs(now - Number(t)) > tolerance) return false;
  const expected = createHmac("sha256", secret).update(`${t}.`).update(body).digest();
  return parts.some(([name, hex]) => {
    const given = Buffer.from(hex, "hex");
    return name === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

// standard says whether the library of Standard Webhooks takes the request for genuine.
function standard(secret: string, headers: IncomingMessage["headers"], body: Buffer): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}

// Attempt is one request as it came in, with the status that it was answered.
export interface Attempt {
  delivery: string;
  event: string;
  valid: boolean;
  body: Buffer;
  payload: AnyPayload;
  answered: number;
}

export class Receiver {
  readonly attempts: Attempt[] = [];
  // secret is known only after the registration, which needs the URL.
  secret = "";

  private constructor(private readonly server: Server, private failures: number) {}

  // start answers 500 to so many valid requests, and 204 afterwards.
  static async start(failures: number): Promise<Receiver> {
    const server = createServer();
    const receiver = new Receiver(server, failures);
    server.on("request", (request, response) => {
      receiver.receive(request).then(
        (status) => response.writeHead(status).end(),
        () => response.writeHead(400).end(),
      );
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/webhook`;
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private async receive(request: IncomingMessage): Promise<number> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const header = (name: string) => String(request.headers[name] ?? "");
    const valid = verify(this.secret, header("x-service-signature"), body, Date.now() / 1000)
      && standard(this.secret, request.headers, body);
    let answered = 204;
    if (!valid) answered = 401;
    else if (this.failures > 0) {
      this.failures--;
      answered = 500;
    }
    this.attempts.push({
      delivery: header("x-service-delivery"),
      event: header("x-service-event"),
      valid,
      body,
      payload: JSON.parse(body.toString("utf8")) as AnyPayload,
      answered,
    });
    return answered;
  }
}
