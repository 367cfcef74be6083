import { ERRORS } from "../../src/base/errors.ts";

/** What each party can do about an error, in the order of docs/errors.md. */
const BLAME = {
  client: "The request is at fault: the client has to change it.",
  config: "The configuration is at fault: the operator has to change it.",
  upstream: "The backend, or the connection to it, is at fault.",
  internal: "The gateway is at fault: please report it.",
} as const;

/** docs/errors.md */
export function errorPage(): string {
  const sections = Object.entries(BLAME).map(([blame, meaning]) => {
    const rows = Object.entries(ERRORS)
      .filter(([, spec]) => spec.blame === blame)
      .map(([code, spec]) => `| \`${code}\` | ${spec.status} | \`${spec.message}\` | ${spec.reason} |`);
    return [`## ${blame}`, "", meaning, "", "| Code | Status | Body | `reason` |", "|---|---|---|---|", ...rows].join(
      "\n",
    );
  });
  return `# Errors

Every error response that tracegate itself makes is listed here. The body is \`text/plain\` with exactly the text below; the cause, such as
an address or a name, is in the access log (\`error\`) and in the trace. \`error\` also says what decided: for a 404 the nearest route and what does not
match, for a denied request the rule with the values that it compared, for a 503 the endpoints and why each is left out; and
where that was written: its path in the configuration file, or the Kubernetes object and field. Secrets are redacted, and \`config.logging.reasons\` limits it. gRPC requests get status 200 with \`grpc-status\` and that
text as \`grpc-message\` instead. \`reason\` is the label in access logs and metrics. [lifecycle.md](lifecycle.md) lists the phase in
which each error occurs.
As data: [schema/errors.json](../schema/errors.json).

${sections.join("\n\n")}
`;
}

/** schema/errors.json */
export function errorTable(): string {
  return `${JSON.stringify(ERRORS, null, 2)}\n`;
}
