/**
 * Conversions between Envoy's API and this gateway's messages, for `extAuthz`, `extProc` and `remoteRateLimit`: header maps and
 * options, pseudo-header fields, structs. What a service sends is checked here, because a service may be compromised or just
 * copy a client's values: fields that frame a message and invalid values are dropped.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { messageOf } from "../../base/errors.ts";
import type { HeaderValueOption } from "../../gen/envoy/config/core/v3/base_pb.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { isFieldValue } from "../../http/message/syntax.ts";
import { type Decisions, type Told, unable } from "../contract/decisions.ts";
import { applyHeaderEdits, type HeaderEdit, isServiceField, NO_PSEUDO } from "../contract/header-edits.ts";
import type { PolicyContext } from "../contract/types.ts";
import { EditedRequest, REQUEST_PSEUDO } from "../transformations/messages.ts";

/** `HeaderValueOption`, or a plain `HeaderValue` without an append action. */
export type HeaderInstruction = Pick<HeaderValueOption, "header"> &
  Partial<Pick<HeaderValueOption, "append" | "appendAction">>;

/** Indexed by the numbers of `HeaderValueOption.HeaderAppendAction`. Numbers that Envoy adds later fall back to the default. */
const ACTIONS: readonly HeaderEdit["action"][] = ["add", "addAbsent", "set", "setPresent"];

/**
 * The header edits that a service requests. `unsaid`: the action of a header without an explicit one. On the wire that is
 * indistinguishable from `APPEND_IF_EXISTS_OR_ADD`, but for requests it must be `set`: a field about the client must not be
 * appended to a forged one that the client has sent. `pseudo`: as for `isServiceField`. Other fields and invalid values are dropped.
 */
export function headerEdits(
  options: readonly HeaderInstruction[] | undefined,
  unsaid: "add" | "set",
  pseudo: ReadonlySet<string>,
): HeaderEdit[] {
  const edits: HeaderEdit[] = [];
  for (const { header, append, appendAction = 0 } of options ?? []) {
    const name = header?.key?.toLowerCase() ?? "";
    const value = latin1Of(header?.rawValue?.length ? header.rawValue : Buffer.from(header?.value ?? ""));
    if (!isServiceField(name, pseudo) || !isFieldValue(value)) continue;
    const said = append === undefined ? ACTIONS[appendAction] : append ? "add" : "set";
    edits.push({ action: said === undefined || (said === "add" && append === undefined) ? unsaid : said, name, value });
  }
  return edits;
}

/** The removals that a service requests. Host and pseudo-header fields stay: a request without them has no target. */
export function headerRemovals(names: readonly string[] | undefined): HeaderEdit[] {
  return (names ?? [])
    .map((name) => name.toLowerCase())
    .filter((name) => name !== "host" && isServiceField(name, NO_PSEUDO))
    .map((name) => ({ action: "remove", name, value: "" as const }));
}

/** A decision of policies that use `editRequest`: a pseudo-header field of a service is not valid, so the message keeps its own. */
export interface InvalidTarget {
  readonly code: "invalidTarget";
  readonly name: string;
  readonly why: string;
}

export function invalidTarget({ name, why }: InvalidTarget): Told {
  return unable(`${name} of the service is not used: ${why}`);
}

/** Edits the request. Pseudo-header fields and `host` change its target; invalid values are skipped with a trace event. */
export function editRequest(
  context: PolicyContext,
  edits: readonly HeaderEdit[],
  decisions: Decisions<InvalidTarget>,
): void {
  const pseudo = edits.filter(({ name }) => REQUEST_PSEUDO.has(name));
  for (const { name } of edits) context.claimField(name);
  applyHeaderEdits(
    edits.filter(({ name }) => !REQUEST_PSEUDO.has(name)),
    context.request.headers,
  );
  const request = new EditedRequest(context);
  for (const { name, value } of pseudo) {
    try {
      request.setPseudo(name, value);
    } catch (error) {
      context.trace?.report(decisions, { code: "invalidTarget", name, why: messageOf(error) });
    }
  }
}

/** Header fields of a service's response, in its order. */
export function replyHeaders(edits: readonly HeaderEdit[]): HeaderList {
  const headers: HeaderList = [];
  applyHeaderEdits(edits, headers);
  return headers;
}

/** A `HeaderMap` with `raw_value`: header values need not be UTF-8 (RFC 9110, section 5.5), which protobuf strings must be. */
export function headerMap(headers: HeaderList) {
  const list: { key: string; rawValue: Uint8Array }[] = [];
  for (let i = 0; i < headers.length; i += 2)
    list.push({ key: headers[i] as string, rawValue: Buffer.from(headers[i + 1] as string, "latin1") });
  return { headers: list };
}

/** A header value as UTF-8 text for a protobuf string; header lists carry bytes as latin1 text. ASCII is not copied. */
export function textOf(value: string): string {
  for (let i = 0; i < value.length; i++)
    if (value.charCodeAt(i) > 0x7f) return Buffer.from(value, "latin1").toString("utf8");
  return value;
}

/**
 * Fields as one map, repeated ones joined: cookies by `; ` (RFC 9113, section 8.2.3), others by `, ` (RFC 9110, section 5.3).
 * Without a prototype: `__proto__` is a valid field name.
 */
export function joinedHeaders(headers: HeaderList, wants: (name: string) => boolean): Record<string, string> {
  const joined = Object.create(null) as Record<string, string>;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (!wants(name)) continue;
    const value = textOf(headers[i + 1] as string);
    const before = joined[name];
    joined[name] = before === undefined ? value : `${before}${name === "cookie" ? "; " : ", "}${value}`;
  }
  return joined;
}

/** The pseudo-header fields of a request in any HTTP version (RFC 9113, section 8.3.1), as Envoy's services expect them. */
export function pseudoHeaders({ request }: PolicyContext): Record<string, string> {
  return {
    ":authority": textOf(request.authority),
    ":method": request.method,
    ":path": textOf(request.path + request.search),
    ":scheme": request.scheme,
  };
}

function latin1Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

/** A `google.protobuf.Struct`. Values that JSON cannot express are omitted; inside lists they become null, to keep positions. */
export function structOf(values: object): JsonObject {
  // Without a prototype: `__proto__` is a valid key, and may be a claim of a token.
  const struct: JsonObject = Object.create(null);
  for (const [key, value] of Object.entries(values)) if (value !== undefined) struct[key] = jsonOf(value);
  return struct;
}

function jsonOf(value: unknown): JsonValue {
  if (typeof value === "number" || typeof value === "string" || typeof value === "boolean") return value;
  if (Array.isArray(value)) return value.map(jsonOf);
  return typeof value === "object" && value !== null ? structOf(value) : null;
}
