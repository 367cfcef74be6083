/** Fields of clients that must not reach backends: imitations of the fields that the gateway and its policies own. */
import { forbiddenInTrailers } from "../../http/h1/fields.ts";
import type { HeaderList } from "../../http/message/message.ts";
import type { Bind } from "../../ir/ir.ts";
import type { PolicyEnvironment } from "../../policies/contract/deps.ts";
import { dashed, type OwnFields } from "../../policies/contract/own-fields.ts";
import { TRACE_TOKEN_HEADER } from "../../trace/token.ts";
import { DEFAULT_ID_HEADER } from "./forwarding.ts";

/**
 * Fields of requests that the gateway writes, removes, or uses to frame messages, whatever the configuration; and credentials for
 * proxies, which a backend gets only under their real names.
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

/** Adds the fields that belong to the gateway to those of the policies. */
export function addGatewayFields(
  { credentials, ownFields }: Pick<PolicyEnvironment, "credentials" | "ownFields">,
  binds: readonly Bind[],
): void {
  for (const name of [...WRITTEN, ...credentials.taken]) ownFields.add(name);
  for (const { frontend } of binds)
    if (frontend.requestId?.mode !== "off") ownFields.add(frontend.requestId?.header ?? DEFAULT_ID_HEADER);
}

/** Removes fields from a request that only look like a field of the gateway. */
export function dropImitations(headers: HeaderList, own: OwnFields): void {
  drop(headers, (name) => own.imitatedBy(name));
}

/** Removes fields from a request that look like `name` (lower-case), which a service is about to set or has removed. */
export function dropLookalikes(headers: HeaderList, name: string, own: OwnFields): void {
  const spelling = dashed(name);
  drop(headers, (each) => each !== name && dashed(each) === spelling && !own.has(each));
}

/** Removes every field with `_` in its name from a request, except those that policies name or have set (`claimed`, with dashes). */
export function dropUnderscores(headers: HeaderList, own: OwnFields, claimed: ReadonlySet<string> | undefined): void {
  drop(headers, (name) => name.includes("_") && !own.has(name) && claimed?.has(dashed(name)) !== true);
}

/**
 * Removes trailers from a request that a backend could take for a header field that a policy has decided about: many servers merge
 * trailers into the headers. `claimed`: names that services have set or removed in this request, with dashes.
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
