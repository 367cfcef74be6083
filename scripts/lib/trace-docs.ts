import { FINDINGS } from "../../src/cel/index.ts";
import type { TraceMessage } from "../../src/trace/events.ts";

type Type = TraceMessage["type"];
/** The member of the union whose `type` can be `T`. */
type Member<T extends Type, M extends TraceMessage = TraceMessage> = M extends TraceMessage
  ? T extends M["type"]
    ? M
    : never
  : never;

interface Field {
  /** JSON Schema of the value. */
  readonly schema: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly optional?: true;
}

/** Described here, checked by the compiler: an event or a field that is missing or does not exist is a type error. */
type Docs = {
  readonly [T in Type]: {
    readonly when: string;
    readonly fields: { readonly [F in Exclude<keyof Member<T>, "type">]-?: Field };
  };
};

const text = { type: "string" } as const;
const count = { type: "integer", minimum: 0 };
const texts = { type: "array", items: text } as const;
const nullable = (type: string) => ({ type: [type, "null"] });
const traffic = {
  type: "object",
  properties: { chunks: count, bytes: count },
  required: ["chunks", "bytes"],
};
const messages = {
  type: "object",
  properties: { messages: count, bytes: count },
  required: ["messages", "bytes"],
};
const direction = { enum: ["received", "sent"] } as const;
const origin = {
  type: "object",
  properties: {
    object: {
      type: "object",
      properties: { kind: text, namespace: text, name: text },
      required: ["kind", "namespace", "name"],
    },
    path: { type: "array", items: { type: ["string", "integer"] } },
  },
  required: ["path"],
};
const anything = {} as const;
/** Parts of an expression. */
const parts = {
  type: "array",
  items: {
    type: "object",
    properties: { from: count, to: count, value: anything, error: text },
    required: ["from", "to"],
  },
};
const state: Field = {
  schema: { $ref: "#/$defs/requestState" },
  text: "`request`, `source`, `destination`, `backend`, `response`, `proxy`, `env`, and what policies have added (`jwt`, `apiKey`, `basicAuth`, `extauthz`, `extproc`, `metadata`), as far as they are set at this stage",
};

const EVENTS: Docs = {
  requestStarted: {
    when: "a request's head has arrived; without an id if it cannot be parsed",
    fields: {
      requestId: { schema: text, text: "id of the request in the access log and in spans", optional: true },
      protocol: {
        schema: { enum: ["tcp", "tls", "udp"] },
        text: "only of connections without requests: `tcp`, `tls` that passes through, or `udp`, a session of datagrams, which only `/debug/follow` shows",
        optional: true,
      },
    },
  },
  requestSnapshot: {
    when: "the request reached `stage`: `initial request`, the name of a policy that ran, `gateway policies`, `route policies`, `final request`",
    fields: { stage: { schema: text, text: "which step has just ended" }, requestState: state },
  },
  responseSnapshot: {
    when: "the response reached `stage`: `raw response`, `backend response ready`, the name of a policy that ran, `final response`",
    fields: { stage: { schema: text, text: "which step has just ended" }, requestState: state },
  },
  routeSelection: {
    when: "the routes of the listener, or of a route group, were matched against the request, or no listener matches its host",
    fields: {
      selectedRoute: { schema: nullable("string"), text: "key of the route that won; null if none matched" },
      evaluatedRoutes: {
        schema: texts,
        text: "sorted keys of the routes whose host names fit; of very many, those that are closest to a match",
      },
      candidates: {
        schema: {
          type: "array",
          items: {
            type: "object",
            properties: { route: text, rule: text, matched: { type: "boolean" }, reason: text, because: text, origin },
            required: ["route", "matched", "reason"],
          },
        },
        text: "`route`, `matched`, `reason`: why each of the closest won or lost, and some of other hosts; `because`: the rule of precedence by which a route that matches too lost; `rule`: the name of the rule that the route is made from; `origin`: where the route was written",
      },
      listeners: {
        schema: {
          type: "array",
          items: {
            type: "object",
            properties: { listener: text, name: text, reason: text, origin },
            required: ["listener", "reason"],
          },
        },
        text: "only if no listener matches the host: key (`listener`), `name`, `reason` and `origin` of each",
        optional: true,
      },
      group: {
        schema: { type: "object", properties: { name: text, origin }, required: ["name"] },
        text: "if a route has delegated to a route group: `name` of the group, `origin`; the routes are those of the group",
        optional: true,
      },
      omittedRoutes: {
        schema: { type: "integer" },
        text: "number of routes that `evaluatedRoutes` omits",
        optional: true,
      },
    },
  },
  acmeChallenge: {
    when: "the request asks for the answer to a challenge of an ACME server by `http-01`, where listeners use [ACME](acme.md)",
    fields: {
      result: {
        schema: { enum: ["answered", "unknown"] },
        text: "`answered`: by the gateway, for an order of its own, so no route takes part; `unknown`: no order has this token, and the request goes on to the routes",
      },
    },
  },
  traceSampling: {
    when: "tracing is configured, and the sampling decision was made",
    fields: {
      decision: {
        schema: { enum: ["sample (client)", "sample (random)", "not sampled (client)", "not sampled (random)"] },
        text: "`sample` or `not sampled`; `client`: the request has a valid `traceparent`, `random`: it has none",
      },
    },
  },
  policySelection: {
    when: "the policies of a phase were merged",
    fields: {
      phase: { schema: { enum: ["gateway", "route", "backend"] }, text: "`gateway`, `route` or `backend`" },
      effectivePolicy: { schema: { type: "object" }, text: "kind → merged policy, null if not set" },
      origins: {
        schema: { type: "object", additionalProperties: { type: "array", items: origin } },
        text: "kind → where the policy was written, of `authorization` each rule: `path` in the file or, with `object` (`kind`, `namespace`, `name`), in that object",
        optional: true,
      },
    },
  },
  shadowDecision: {
    when: "a policy with `shadow: true` has decided, without effect; what it did before has the scope `shadow`",
    fields: {
      policy: { schema: text, text: "its kind, such as `jwtAuth`" },
      phase: { schema: { enum: ["gateway", "route", "backend"] }, text: "`gateway`, `route` or `backend`" },
      decision: {
        schema: { enum: ["allow", "deny", "undecided"] },
        text: "`allow`; `deny`: the client would have got another response; `undecided`: the request ended before its body arrived, or too many requests waited for shadow policies",
      },
      status: { schema: { type: "integer" }, text: "of the response that the client would have got", optional: true },
      code: { schema: text, text: "the error code of that response", optional: true },
      reason: { schema: text, text: "why the decision is not `allow`", optional: true },
    },
  },
  policy: {
    when: "a policy ran, or was skipped for a reason",
    fields: {
      kind: { schema: text, text: "the policy" },
      result: {
        schema: {
          oneOf: [
            {
              type: "object",
              properties: {
                type: { const: "apply" },
                details: text,
                data: anything,
                snapshot: { type: ["object", "null"] },
              },
              required: ["type", "details", "snapshot"],
            },
            {
              type: "object",
              properties: { type: { const: "skip" }, reason: text },
              required: ["type", "reason"],
            },
          ],
        },
        text: "`{type: apply, details, data, snapshot}`: what it did, as text and, if there is more detail, as data; `before` and `after`; or `{type: skip, reason}`",
      },
    },
  },
  authorizationResult: {
    when: "authorization rules were evaluated",
    fields: {
      rules: {
        schema: {
          type: "array",
          items: {
            type: "object",
            properties: {
              name: text,
              matched: { type: "boolean" },
              mode: { enum: ["allow", "deny", "require"] },
              error: text,
              inputs: { type: "object" },
              values: parts,
            },
            required: ["name", "matched", "mode"],
          },
        },
        text: "`name`, `matched`, `mode` of each rule; `error` if it could not be evaluated; `inputs`: the values of the paths in it, null if absent; `values`: the `value` or `error` of other parts of it, which stand between the offsets `from` and `to` of its text",
      },
      result: { schema: { enum: ["allow", "deny"] }, text: "`allow` or `deny`" },
    },
  },
  backendCallStart: {
    when: "an attempt begins",
    fields: {
      target: { schema: text, text: "`host:port` or `unix:path`" },
      backend: {
        schema: text,
        text: "name of the backend that `target` is an endpoint of, for a Service such as `shop/web:80`; absent if it has no name, and for callouts",
        optional: true,
      },
    },
  },
  bodySnapshot: {
    when: "a body ended; only if there is one, truncated to the capture limit",
    fields: {
      stage: { schema: { enum: ["final request", "response"] }, text: "`final request` or `response`" },
      body: { schema: { type: "string", contentEncoding: "base64" }, text: "base64" },
      truncated: { schema: { type: "boolean" }, text: "true if the body was longer", optional: true },
    },
  },
  backendCallResult: {
    when: "an attempt ended; the only event with a duration (`eventStart` to `eventEnd`)",
    fields: {
      status: { schema: nullable("integer"), text: "status of the backend's response; null without one" },
      error: { schema: nullable("string"), text: "the transport error, else null" },
      timing: {
        schema: {
          type: "object",
          properties: {
            reusedConnection: { type: "boolean" },
            ...Object.fromEntries(["dns", "connect", "tls", "firstByte"].map((name) => [name, text])),
          },
          required: ["reusedConnection"],
        },
        text: "`reusedConnection`; `dns`, `connect`, `tls`: how long each step of opening the connection took; `firstByte`: from there to the head of the response; seconds such as `0.000286265s`",
        optional: true,
      },
    },
  },
  requestFinished: {
    when: "the response was sent, or the request ended without one; the last event",
    fields: {
      status: { schema: nullable("integer"), text: "status sent to the client, else null" },
      error: { schema: nullable("string"), text: "why the request failed, else null" },
      origin: {
        schema: origin,
        text: "where the part of the configuration that caused `error` was written; absent if none did",
        optional: true,
      },
      grpc: {
        schema: {
          type: "object",
          properties: {
            status: nullable("integer"),
            ...Object.fromEntries(["requestMessages", "responseMessages"].map((name) => [name, count])),
          },
          required: ["status"],
        },
        text: "of gRPC calls: `status` (`grpc-status`, null without one); `requestMessages`, `responseMessages`: how many were complete, not counted for gRPC-Web",
        optional: true,
      },
    },
  },
  streamProgress: {
    when: "a body, tunnel or connection has lasted for a second: once a second while something moves, after 1, 2, 4, … seconds of silence, and at its end",
    fields: {
      received: {
        schema: traffic,
        text: "`chunks` and `bytes` from the client since the beginning; a chunk is what one read brought",
      },
      sent: { schema: traffic, text: "the same to the client" },
      idle: { schema: text, text: "how long nothing has moved, in seconds such as `1.250s`" },
      longestIdle: { schema: text, text: "the longest time for which nothing moved" },
    },
  },
  streamMessage: {
    when: "a complete message of a WebSocket or a gRPC call has passed; only `/debug/follow` shows it, at most 50 a second of one request",
    fields: {
      direction: { schema: direction, text: "`received` from the client, or `sent` to it" },
      number: {
        schema: { type: "integer", minimum: 1 },
        text: "its number among all messages of this direction, from 1",
      },
      bytes: { schema: count, text: "its size as sent, so after compression" },
      compressed: { schema: { const: true }, text: "true if it is compressed", optional: true },
      opcode: {
        schema: { enum: ["text", "binary", "close", "ping", "pong"] },
        text: "only of WebSocket: `text`, `binary`, `close`, `ping` or `pong`",
        optional: true,
      },
      closeCode: {
        schema: count,
        text: "of a `close`: its code, if it has one; `body` is then the reason",
        optional: true,
      },
      body: {
        schema: { type: "string", contentEncoding: "base64" },
        text: "base64, unmasked but not decompressed; only with `bodies`",
        optional: true,
      },
      truncated: { schema: { const: true }, text: "true if the message is longer than `body`", optional: true },
    },
  },
  messagesOmitted: {
    when: "more messages passed within a second than are shown: after that second, or at the end of the request; only `/debug/follow` shows it",
    fields: {
      received: {
        schema: messages,
        text: "`messages` and `bytes` of those from the client that were not shown in this second",
      },
      sent: { schema: messages, text: "the same to the client" },
    },
  },
  messagesUnreadable: {
    when: "the bytes of one direction are not valid frames; they pass all the same, but no more messages of it are shown; only `/debug/follow` shows it",
    fields: {
      direction: { schema: direction, text: "`received` from the client, or `sent` to it" },
      reason: { schema: text, text: "what is wrong with them" },
    },
  },
  traceEnded: {
    when: "the requested `duration` has passed, and the request continues; the last event",
    fields: { reason: { schema: text, text: "why the trace ends" } },
  },
  dropped: {
    when: "the reader was too slow, and events are missing here",
    fields: { count: { schema: { type: "integer", minimum: 1 }, text: "number of missing events" } },
  },
};

function entries(): [string, { when: string; fields: Readonly<Record<string, Field>> }][] {
  return Object.entries(EVENTS);
}

/** docs/trace-events.md */
export function tracePage(): string {
  const rows = entries().map(([type, { when, fields }]) => {
    const list = Object.entries(fields).map(
      ([name, field]) => `\`${name}\`${field.optional === true ? " (optional)" : ""}: ${field.text}`,
    );
    return `| \`${type}\` | ${when} | ${list.length === 0 ? "none" : list.join("<br>")} |`;
  });
  return `# Trace events

\`POST /debug/trace\` streams events as server-sent events, one JSON object each; \`tgctl proxy trace --raw\` prints one per line.
Which phase of a request emits which: [lifecycle.md](lifecycle.md). As JSON Schema:
[schema/trace-event.json](../schema/trace-event.json). Readers must ignore unknown types and fields.

| Field | Value |
|---|---|
| \`eventStart\` | microseconds since the trace began, for events with a duration; else null |
| \`eventEnd\` | microseconds since the trace began; never smaller than that of the event before |
| \`severity\` | \`success\`, \`info\`, \`warn\` or \`error\` |
| \`scope\` | absent for the request itself; for callouts, their names, outermost first; \`satisfy\` for its alternatives |
| \`expressions\` | expressions evaluated since the previous event: \`text\`, \`value\` or \`error\`, \`inputs\` and \`values\` as in \`authorizationResult\`; absent if empty |
| \`message\` | one of the following, distinguished by \`type\` |

| \`type\` | When | Fields |
|---|---|---|
${rows.join("\n")}

Header values that hold secrets are redacted in every snapshot unless the stream was opened with \`reveal=true\`.
`;
}

/** schema/trace-event.json */
export function traceSchema(): string {
  const variants = entries().map(([type, { when, fields }]) => ({
    type: "object",
    description: when,
    properties: {
      type: { const: type },
      ...Object.fromEntries(
        Object.entries(fields).map(([name, field]) => [name, { ...field.schema, description: field.text }]),
      ),
    },
    required: ["type", ...Object.keys(fields).filter((name) => fields[name]?.optional !== true)],
  }));
  const strings = (...names: string[]) => Object.fromEntries(names.map((name) => [name, text]));
  const headers = { type: "object", additionalProperties: text };
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "tracegate trace event",
    type: "object",
    properties: {
      eventStart: { ...nullable("integer"), description: "microseconds since the trace began" },
      eventEnd: { type: "integer", description: "microseconds since the trace began" },
      severity: { enum: ["success", "info", "warn", "error"] },
      scope: texts,
      expressions: {
        type: "array",
        items: {
          type: "object",
          properties: { text, value: anything, error: text, inputs: { type: "object" }, values: parts },
          required: ["text"],
        },
      },
      message: { oneOf: variants },
    },
    required: ["eventStart", "eventEnd", "severity", "message"],
    $defs: {
      requestState: {
        type: "object",
        properties: {
          request: {
            type: "object",
            properties: {
              ...strings("method", "uri", "path", "pathAndQuery", "host", "scheme", "version"),
              headers,
              startTime: { type: "string", format: "date-time" },
            },
          },
          source: {
            type: "object",
            properties: {
              ...strings("address", "rawAddress"),
              port: { type: "integer" },
              rawPort: { type: "integer" },
            },
          },
          destination: { type: "object", properties: { ...strings("address", "hostname"), port: { type: "integer" } } },
          ...Object.fromEntries(FINDINGS.map((name) => [name, anything])),
          backend: { type: "object", properties: strings("name", "type", "protocol") },
          response: { type: "object", properties: { code: { type: "integer" }, headers } },
          proxy: { type: "object", properties: strings("requestProcessingDuration", "upstreamDuration") },
          env: { type: "object", additionalProperties: text },
        },
        required: ["env"],
      },
    },
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}
