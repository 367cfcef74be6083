import { forbiddenInTrailers } from "../http/h1/fields.ts";
import type { HeaderList } from "../http/message.ts";
import type { Bind } from "../ir/ir.ts";
import type { PolicyEnvironment } from "../policies/deps.ts";
import { dashed, type OwnFields } from "../policies/shared/own-fields.ts";
import { TRACE_TOKEN_HEADER } from "../trace/token.ts";
import { DEFAULT_ID_HEADER } from "./forwarding.ts";

/**
 * Fields of requests that the gateway writes, takes out or frames messages by, whatever the configuration. Of credentials for
 * proxies a backend gets those that the client has sent under their own name.
 */
const WRITTEN = [
  "x-retry-attempt",
  TRACE_TOKEN_HEADER,
  "content-length",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "transfer-encoding",
];

/** Adds to the fields of policies what belongs to the gateway besides. */
export function addGatewayFields(
  { credentials, ownFields }: Pick<PolicyEnvironment, "credentials" | "ownFields">,
  binds: readonly Bind[],
): void {
  for (const name of [...WRITTEN, ...credentials.headers]) ownFields.add(name);
  for (const { frontend } of binds)
    if (frontend.requestId?.mode !== "off") ownFields.add(frontend.requestId?.header ?? DEFAULT_ID_HEADER);
}

/** Takes out of a request what only looks like a field of the gateway's own. */
export function dropImitations(headers: HeaderList, own: OwnFields): void {
  drop(headers, (name) => own.imitatedBy(name));
}

/** Takes out of a request what looks like `name`, lower-case, which a service is about to set or has removed. */
export function dropLookalikes(headers: HeaderList, name: string, own: OwnFields): void {
  const spelling = dashed(name);
  drop(headers, (each) => each !== name && dashed(each) === spelling && !own.has(each));
}

/** Takes out of a request every field with `_` in its name, except those that policies name or have set: `claimed`, dashed. */
export function dropUnderscores(headers: HeaderList, own: OwnFields, claimed: ReadonlySet<string> | undefined): void {
  drop(headers, (name) => name.includes("_") && !own.has(name) && claimed?.has(dashed(name)) !== true);
}

/**
 * Takes out of a request's trailers what a backend could take for a field of the head that a policy has decided about: many
 * servers put trailers among the headers. `claimed`: names that services have set or removed in this request, dashed.
 */
export function dropFromTrailers(
  trailers: HeaderList,
  own: OwnFields,
  claimed: ReadonlySet<string> | undefined,
  underscores: "allow" | "drop" | "reject",
): void {
  drop(trailers, (name) => {
    if (own.covers(name)) return true;
    if (name.includes("_") && (underscores !== "allow" || forbiddenInTrailers(dashed(name)))) return true;
    return claimed?.has(dashed(name)) === true;
  });
}

function drop(fields: HeaderList, unwanted: (name: string) => boolean): void {
  let to = 0;
  for (let from = 0; from < fields.length; from += 2) {
    const name = fields[from] as string;
    if (unwanted(name)) continue;
    fields[to++] = name;
    fields[to++] = fields[from + 1] as string;
  }
  fields.length = to;
}
