/** The summaries of the event list (reference 5.4). */
import { type Fields, fieldsOf } from "../base/fields.ts";
import { acmeChallengeText } from "../trace/acme-challenge.ts";
import { authorizationText, type ShownRule } from "../trace/authorization.ts";
import { bytesOf, textOfBody } from "./bodies.ts";
import { evaluatedCount, selectedName } from "./fields.ts";
import { clip } from "./text.ts";

const LABELS: Readonly<Record<string, string>> = {
  requestStarted: "Request Start",
  message: "Message",
  cel: "CEL",
  requestSnapshot: "Snapshot",
  responseSnapshot: "Snapshot",
  routeSelection: "Route",
  policySelection: "Policies",
  policy: "Policy",
  policyEvent: "Policy Event",
  acmeChallenge: "ACME",
  traceSampling: "Tracing",
  authorizationResult: "Authz",
  shadowDecision: "Shadow",
  backendCallStart: "Backend Start",
  backendCallResult: "Backend Result",
  requestFinished: "Request Done",
  bodySnapshot: "Body Snapshot",
  streamProgress: "Progress",
  streamMessage: "Message",
  messagesOmitted: "Messages",
  messagesUnreadable: "Messages",
  traceEnded: "Trace End",
  dropped: "Dropped",
  endLost: "Dropped",
};

/** The width of the longest label in columns. */
export const LABEL_WIDTH = 14;

/** An unknown type is its own label. */
export function typeLabel(message: Fields): string {
  const type = textOf(message.type);
  return LABELS[type] ?? (type === "" ? "Message" : type);
}

type Summary = (message: Fields) => string;

const SUMMARIES: Readonly<Record<string, Summary>> = {
  requestStarted: () => "request started",
  message: (message) => textOf(message.text),
  cel: (message) => `${textOf(message.expr)} => ${celResult(message.result)}`,
  requestSnapshot: (message) => textOf(message.stage),
  responseSnapshot: (message) => textOf(message.stage),
  routeSelection,
  policySelection,
  policy,
  policyEvent: (message) => `${textOf(message.kind)}: ${textOf(message.details)}`,
  acmeChallenge: (message) => acmeChallengeText(message.result),
  traceSampling: (message) => textOf(message.decision),
  authorizationResult: authorization,
  shadowDecision: shadowText,
  backendCallStart: (message) => textOf(message.target),
  bodySnapshot: (message) =>
    message.truncated === true ? `${textOf(message.stage)} (cut short)` : textOf(message.stage),
  backendCallResult: outcome,
  requestFinished: (message) => ["request finished", outcome(message)].filter(Boolean).join(" "),
  streamProgress: (message) =>
    `idle ${textOf(message.idle)}, received ${traffic(message.received)}, sent ${traffic(message.sent)}`,
  streamMessage,
  messagesOmitted: ({ received, sent }) =>
    `too many to show: ${messagesOf(received)} received, ${messagesOf(sent)} sent`,
  messagesUnreadable: ({ direction, reason }) => `what was ${textOf(direction)} is not readable: ${textOf(reason)}`,
  traceEnded: (message) => textOf(message.reason),
  endLost: () => "the last events of this request are missing",
  dropped: (message) => `${textOf(message.count)} events lost: the reader was too slow`,
};

/** One line of at most 120 characters. */
export function summaryOf(message: Fields): string {
  const summary = SUMMARIES[textOf(message.type)];
  if (summary !== undefined) return clip(oneLine(summary(message)), 120);
  const { type: _, ...rest } = message;
  return Object.keys(rest).length === 0 ? "" : clip(oneLine(JSON.stringify(rest)), 120);
}

/** Such as `received 3: text, 5 B: hello` or `sent 1: 4096 B, compressed`. */
function streamMessage({ direction, number, opcode, closeCode, bytes, compressed, body }: Fields): string {
  const parts = [
    [textOf(opcode), textOf(closeCode)].filter(Boolean).join(" "),
    `${textOf(bytes)} B`,
    compressed === true ? "compressed" : "",
  ];
  const said = `${textOf(direction)} ${textOf(number)}: ${parts.filter(Boolean).join(", ")}`;
  const beginning = typeof body === "string" && compressed !== true ? body.slice(0, SHOWN_BASE64) : "";
  const text = textOfBody(bytesOf(beginning)) ?? "";
  return text === "" ? said : `${said}: ${text}`;
}

/** Of a message, more than a summary has room for. */
const SHOWN_BASE64 = 640;

function messagesOf(value: unknown): string {
  const { messages, bytes } = fieldsOf(value);
  return `${textOf(messages)} (${textOf(bytes)} B)`;
}

function traffic(value: unknown): string {
  const { bytes, chunks } = fieldsOf(value);
  return `${textOf(bytes)} B in ${textOf(chunks)} chunks`;
}

function routeSelection(message: Fields): string {
  const count = evaluatedCount(message);
  const selected = selectedName(message);
  if (Array.isArray(message.listeners)) return `no listener accepts this host (${message.listeners.length} evaluated)`;
  // A stream of many requests does not say which routes were evaluated.
  const evaluated = count === 0 ? "" : ` (${count} evaluated)`;
  return selected === "" ? `no route selected${evaluated}` : `selected "${selected}"${evaluated}`;
}

/** Names every policy that is set; an empty list counts as unset. */
function policySelection(message: Fields): string {
  const names = Object.entries(fieldsOf(message.effectivePolicy))
    .filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
    .map(([name]) => name);
  const phase = textOf(message.phase);
  return `${phase === "" ? "" : `${phase} `}effective policies: ${names.length === 0 ? "none" : names.join(", ")}`;
}

function shadowText({ policy, decision, status, reason }: Fields): string {
  const would = decision === "undecided" ? "undecided" : `would ${textOf(decision)}`;
  const what = status === undefined ? would : `${would} with ${textOf(status)}`;
  return [`${textOf(policy)}: ${what}`, textOf(reason)].filter(Boolean).join(": ");
}

function policy(message: Fields): string {
  const kind = textOf(message.kind);
  const result = fieldsOf(message.result);
  if (result.type === "skip") return `${kind} skipped: ${textOf(result.reason)}`;
  const details = textOf(result.details);
  return details === "" ? `${kind} applied` : `${kind}: ${details}`;
}

/** Which rule decided, in the words of the access log. */
export function authorization(message: Fields): string {
  const rules = (Array.isArray(message.rules) ? message.rules.map(fieldsOf) : []) as unknown as ShownRule[];
  const allowed = message.result === "allow";
  return `${allowed ? "allowed" : "denied"}: ${authorizationText(rules, allowed ? "allow" : "deny")}`;
}

/** `status=200`, `error=…` or both; of gRPC calls also `grpc=14`. */
function outcome(message: Fields): string {
  const parts: string[] = [];
  if (message.status !== null && message.status !== undefined) parts.push(`status=${textOf(message.status)}`);
  const grpcStatus = textOf(fieldsOf(message.grpc).status);
  if (grpcStatus !== "") parts.push(`grpc=${grpcStatus}`);
  if (message.error !== null && message.error !== undefined) parts.push(`error=${textOf(message.error)}`);
  return parts.join(" ");
}

function celResult(result: unknown): string {
  const { error } = fieldsOf(result);
  return error === undefined ? textOf(result) : `error: ${textOf(error)}`;
}

/** A string as it is, anything else as JSON; nothing for null. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : JSON.stringify(value);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
