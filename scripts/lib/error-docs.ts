import { ERRORS } from "../../src/base/errors.ts";

/** What each party can do about an error, in the order of docs/errors.md. */
const BLAME = {
  client: "The request is at fault: its sender has to change it.",
  config: "The configuration is at fault: whoever writes it has to change it.",
  upstream: "The backend, or the way to it, is at fault.",
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

Every response that tracegate makes itself because something went wrong is one of these. The body is \`text/plain\` and is exactly
the text below: what caused the error, such as an address or a name, is in the access log (\`error\`) and in the trace. A gRPC
request gets status 200 with \`grpc-status\` and that text as \`grpc-message\` instead.
\`reason\` is the label of access logs and metrics. Where each one leaves a request's path: [lifecycle.md](lifecycle.md).
As data: [schema/errors.json](../schema/errors.json).

${sections.join("\n\n")}
`;
}

/** schema/errors.json */
export function errorTable(): string {
  return `${JSON.stringify(ERRORS, null, 2)}\n`;
}
