import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { messageOf } from "../../base/errors.ts";
import type { HeaderValueOption } from "../../gen/envoy/config/core/v3/base_pb.ts";
import { isFieldValue, isToken } from "../../http/h1/syntax.ts";
import type { HeaderList } from "../../http/message.ts";
import { applyHeaderEdits, FRAMING, type HeaderEdit } from "../shared/header-edits.ts";
import { EditedRequest, REQUEST_PSEUDO } from "../transformations/messages.ts";
import type { PolicyContext } from "../types.ts";

/** A header as a service sets it; lists of plain `HeaderValue`s have no instruction how. */
export type HeaderInstruction = Pick<HeaderValueOption, "header"> &
  Partial<Pick<HeaderValueOption, "append" | "appendAction">>;

/** By number of `HeaderValueOption.HeaderAppendAction`; a number that Envoy adds later falls back to the default. */
const ACTIONS: readonly HeaderEdit["action"][] = ["add", "addAbsent", "set", "setPresent"];

/**
 * The changes to headers that a service asks for. `unsaid` is what a header without instruction does: the default on the wire is
 * the same as `APPEND_IF_EXISTS_OR_ADD`, yet a field about the client must not stand beside one that the client has sent.
 * Fields that frame the message, and what cannot be sent, are left out.
 */
export function headerEdits(options: readonly HeaderInstruction[] | undefined, unsaid: "add" | "set"): HeaderEdit[] {
  const edits: HeaderEdit[] = [];
  for (const { header, append, appendAction = 0 } of options ?? []) {
    const name = header?.key?.toLowerCase() ?? "";
    const value = latin1Of(header?.rawValue?.length ? header.rawValue : Buffer.from(header?.value ?? ""));
    if (!isSendable(name) || !isFieldValue(value)) continue;
    const said = append === undefined ? ACTIONS[appendAction] : append ? "add" : "set";
    edits.push({ action: said === undefined || (said === "add" && append === undefined) ? unsaid : said, name, value });
  }
  return edits;
}

/** Removals that a service asks for. Host and pseudo-header fields stay: a request without them has no target. */
export function headerRemovals(names: readonly string[] | undefined): HeaderEdit[] {
  return (names ?? [])
    .map((name) => name.toLowerCase())
    .filter((name) => isToken(name) && name !== "host" && !FRAMING.has(name))
    .map((name) => ({ action: "remove", name, value: "" as const }));
}

/** Changes the request; pseudo headers and `host` change its target, unless their value cannot stand there. */
export function editRequest(context: PolicyContext, edits: readonly HeaderEdit[]): void {
  const pseudo = edits.filter(({ name }) => REQUEST_PSEUDO.has(name));
  for (const { name } of edits) context.claimField(name);
  applyHeaderEdits(
    edits.filter(({ name }) => !REQUEST_PSEUDO.has(name) && !name.startsWith(":")),
    context.request.headers,
  );
  const request = new EditedRequest(context);
  for (const { name, value } of pseudo) {
    try {
      request.setPseudo(name, value);
    } catch (error) {
      context.trace?.skipped(name, messageOf(error), "warn");
    }
  }
}

/** The header fields of a reply that a service makes, in its order, without pseudo-header fields. */
export function replyHeaders(edits: readonly HeaderEdit[]): HeaderList {
  const headers: HeaderList = [];
  applyHeaderEdits(
    edits.filter(({ name }) => !name.startsWith(":")),
    headers,
  );
  return headers;
}

/** A `HeaderMap`. Values are bytes, since a header value need not be UTF-8 (RFC 9110, section 5.5). */
export function headerMap(headers: HeaderList) {
  const list: { key: string; rawValue: Uint8Array }[] = [];
  for (let i = 0; i < headers.length; i += 2)
    list.push({ key: headers[i] as string, rawValue: Buffer.from(headers[i + 1] as string, "latin1") });
  return { headers: list };
}

/** UTF-8 text of a header value: header lists carry bytes as latin1 text, strings of protobuf are UTF-8. */
export function textOf(value: string): string {
  for (let i = 0; i < value.length; i++)
    if (value.charCodeAt(i) > 0x7f) return Buffer.from(value, "latin1").toString("utf8");
  return value;
}

/** Headers as one map, values of a name joined: cookies by `; `, others by `, ` (RFC 9110 5.3, RFC 9113 8.2.3). */
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

/** The pseudo-header fields of a request, whatever version it came in (RFC 9113, section 8.3.1). */
export function pseudoHeaders({ request }: PolicyContext): Record<string, string> {
  return {
    ":authority": textOf(request.authority),
    ":method": request.method,
    ":path": textOf(request.path + request.search),
    ":scheme": request.scheme,
  };
}

function isSendable(name: string): boolean {
  if (name.startsWith(":")) return isToken(name.slice(1));
  return isToken(name) && !FRAMING.has(name);
}

function latin1Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

/** Values for a `google.protobuf.Struct`: what JSON cannot express is left out, and null inside lists. */
export function structOf(values: object): JsonObject {
  // Without a prototype, because `__proto__` is a key like any other.
  const struct: JsonObject = Object.create(null);
  for (const [key, value] of Object.entries(values)) if (value !== undefined) struct[key] = jsonOf(value);
  return struct;
}

function jsonOf(value: unknown): JsonValue {
  if (typeof value === "number" || typeof value === "string" || typeof value === "boolean") return value;
  if (Array.isArray(value)) return value.map(jsonOf);
  return typeof value === "object" && value !== null ? structOf(value) : null;
}
