import { REDACTED } from "../../base/redaction.ts";
import {
  copyField,
  type FieldText,
  getHeader,
  type HeaderList,
  type Latin1,
  removeHeader,
  setHeader,
} from "../../http/message/message.ts";
import { isFieldValue, isToken } from "../../http/message/syntax.ts";
import { detailsText } from "../../trace/details.ts";
import { redactHeaders } from "../../trace/redaction.ts";
import type { HeaderModifier } from "../schema/fields.ts";
import { applied, type Told } from "./decisions.ts";
import { type ConfigPath, PolicyError, type PolicyProblem } from "./policy-error.ts";

/**
 * Fields that frame a message or are hop-by-hop (RFC 9110, section 7.6.1; RFC 9113, section 8.2.2). The gateway writes them
 * itself: with a second, configured value two servers could disagree about where the message ends (request smuggling).
 */
export const FRAMING: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** For places without pseudo-header fields: responses of the gateway and trailers (RFC 9110, section 6.5; RFC 9113, section 8.1). */
export const NO_PSEUDO: ReadonlySet<string> = new Set();

/**
 * Whether a service may set or remove a field, by its lower-case name. Every field from a service is checked here: the service may be
 * compromised, or just copy what a client has sent. `pseudo`: the pseudo-header fields that are valid in this place.
 */
export function isServiceField(name: string, pseudo: ReadonlySet<string>): boolean {
  return pseudo.has(name) || (isToken(name) && !FRAMING.has(name));
}

/** One change of a header section. */
export interface HeaderEdit {
  /** `addAbsent` only acts if the field is absent, `setPresent` only if it is present (Envoy's HeaderAppendAction). */
  readonly action: "add" | "set" | "remove" | "addAbsent" | "setPresent";
  /** Lower-case. */
  readonly name: string;
  /** As header lists carry it: latin1 text of the UTF-8 bytes; empty for `remove`. */
  readonly value: FieldText;
}

/**
 * Compiles a modifier, in the order add, set, remove (docs/configuration.md#headermodifier). Throws one PolicyError with all
 * fields that frame the message or are not valid, so that a user can correct them together.
 */
export function compileHeaderEdits(config: HeaderModifier): readonly HeaderEdit[] {
  const edits: HeaderEdit[] = [];
  const problems: PolicyProblem[] = [];
  const collect = (path: ConfigPath, key: string | undefined, make: () => HeaderEdit): void => {
    try {
      edits.push(make());
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
      const [{ reason }] = error.problems;
      problems.push({ path, reason, ...(key !== undefined && { key }) });
    }
  };
  for (const action of ["add", "set"] as const)
    for (const [name, value] of Object.entries(config[action] ?? {}))
      collect([action], name, () => ({
        action,
        name: fieldName([action], name),
        value: fieldValue([action], name, value),
      }));
  for (const [i, name] of (config.remove ?? []).entries())
    collect(["remove", i], undefined, () => ({
      action: "remove",
      name: fieldName(["remove", i], name),
      value: "",
    }));
  const [first, ...others] = problems;
  if (first !== undefined) throw new PolicyError([first, ...others]);
  return edits;
}

/** Applies edits in order, in place. */
export function applyHeaderEdits(edits: readonly HeaderEdit[], headers: HeaderList): void {
  for (const { action, name, value } of edits) {
    if (action === "add") headers.push(name, value);
    else if (action === "set") setHeader(headers, name, value);
    else if (action === "addAbsent") {
      if (getHeader(headers, name) === undefined) headers.push(name, value);
    } else if (action === "setPresent") {
      if (getHeader(headers, name) !== undefined) setHeader(headers, name, value);
    } else removeHeader(headers, name);
  }
}

/** The fields in `names`, redacted, for snapshots of traces. */
export function pickHeaders(
  headers: HeaderList,
  names: ReadonlySet<string>,
  hidden: ReadonlySet<string>,
): Record<string, string> {
  const picked: HeaderList = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (names.has(name)) copyField(picked, headers, i);
  }
  return redactHeaders(picked, hidden);
}

/** The configuration without the values of `hidden` headers, for dumps and traces. */
export function redactModifier(config: HeaderModifier, hidden: ReadonlySet<string>): HeaderModifier {
  return {
    ...(config.add !== undefined && { add: redactValues(config.add, hidden) }),
    ...(config.set !== undefined && { set: redactValues(config.set, hidden) }),
    ...(config.remove !== undefined && { remove: config.remove }),
  };
}

/** The decision of policies that edit headers by their configuration, which `redactModifier` has redacted. */
export interface HeadersModified {
  readonly code: "modified";
  readonly modifier: HeaderModifier;
}

export function modified({ modifier }: HeadersModified): Told {
  return applied(detailsText(modifier), modifier);
}

/** Values, or expressions for values, by header name. Those of `hidden` headers are redacted: they may be the secret itself. */
export function redactValues(
  values: Readonly<Record<string, string>>,
  hidden: ReadonlySet<string>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, hidden.has(name.toLowerCase()) ? REDACTED : value]),
  );
}

/** The name in lower case. Throws a PolicyError at `path` for text that is not a field name, and for fields in FRAMING. */
export function fieldName(path: ConfigPath, name: string): string {
  if (name.startsWith(":"))
    throw PolicyError.at(path, `${name} is a pseudo header; use urlRewrite to change host and path`);
  if (!isToken(name)) throw PolicyError.at(path, `${JSON.stringify(name)} is not a header name (RFC 9110 5.6.2)`);
  const lower = name.toLowerCase();
  if (FRAMING.has(lower))
    throw PolicyError.at(path, `${name} frames the message or belongs to one connection; the gateway sets it itself`);
  return lower;
}

/** UTF-8 as latin1 text. Throws a PolicyError for control characters: a line break would start another field. */
function fieldValue(path: ConfigPath, name: string, value: string): Latin1 {
  const bytes = Buffer.from(value, "utf8").toString("latin1");
  if (!isFieldValue(bytes))
    throw PolicyError.at(path, `the value of ${name} has a control character such as a line break; remove it`);
  return bytes;
}
