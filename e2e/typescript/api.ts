// The typed client, and short names for what is generated.
//
// openapi-typescript, because it writes types only: allOf becomes an
// intersection, a nullable member `T | null`, an enum a union of its values, and
// the contract's section "Webhooks" is there beside the paths. Its client,
// openapi-fetch, is a thin layer over fetch and runs on Node 18; @hey-api/openapi-ts
// wants Node 22 and writes an SDK of its own.
import createClient, { type Client } from "openapi-fetch";
import type { components, paths, webhooks } from "./contract.js";

export type { paths };
export type Schemas = components["schemas"];
export type EventType = Schemas["EventType"];

// Payload is the body that an event is sent with. It compiles only while every
// event that can be subscribed to has its payload in the contract.
export type Payload<E extends EventType> = webhooks[E]["post"]["requestBody"]["content"]["application/json"];
export type AnyPayload = { [E in EventType]: Payload<E> }[EventType];

export function connect(baseUrl: string, key: string): Client<paths> {
  return createClient<paths>({
    baseUrl,
    headers: { Authorization: `Bearer ${key}` },
    // The contract's lists are separated by commas. The types don't carry that,
    // and by itself the client repeats the parameter.
    querySerializer: { array: { style: "form", explode: false } },
  });
}

// Answer is what every call of the client comes back with.
interface Answer<T> {
  data?: T;
  error?: Schemas["Error"];
  response: Response;
}

// must returns the body of an answer that has to be a success with that status.
export function must<T>(status: number, answer: Answer<T>): T {
  if (answer.data === undefined || answer.response.status !== status) {
    throw new Error(`${answer.response.url} answered ${answer.response.status} and not ${status}: ${JSON.stringify(answer.error)}`);
  }
  return answer.data;
}
