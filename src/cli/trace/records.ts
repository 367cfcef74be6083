import { CliError, describe } from "../errors.ts";

/** One trace event: its JSON on one line, and parsed. Later versions may send types this one does not know. */
export interface TraceRecord {
  readonly kind: "event";
  readonly raw: string;
  readonly event: Readonly<Record<string, unknown>>;
}

/** What a trace source yields: events, and what else happened on the way. */
export type TraceItem =
  | TraceRecord
  | { readonly kind: "progress"; readonly text: string }
  | { readonly kind: "problem"; readonly text: string };

/** Parses one event's JSON text, which may span lines. Throws a `CliError` that names the text. */
export function toRecord(text: string): TraceRecord {
  // A line break in JSON is only ever white space, so the event can be put on one line without parsing it.
  const raw = text.replace(/\s*[\r\n]+\s*/g, " ").trim();
  let event: unknown;
  try {
    event = JSON.parse(raw);
  } catch (error) {
    throw undecodable(raw, describe(error));
  }
  if (typeof event !== "object" || event === null || Array.isArray(event)) throw undecodable(raw, "not a JSON object");
  return { kind: "event", raw, event: event as Readonly<Record<string, unknown>> };
}

function undecodable(raw: string, why: string): CliError {
  const shown = raw.length > 80 ? `${raw.slice(0, 80)}…` : raw;
  return new CliError("failure", `failed to decode trace event: ${why}`, { why: `the event reads ${shown}` });
}
