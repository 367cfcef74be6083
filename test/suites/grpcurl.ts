/**
 * npm run grpcurl
 * The gRPC client that people type commands into, and the Go server of its own tests with reflection, through a gateway, in
 * plaintext and inside TLS: reflection, calls in all four forms, metadata, failures and deadlines.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { TestCa } from "../helpers/certificates.ts";
import { GatewayProcess } from "../helpers/gateway.ts";
import { runSuite } from "./lib/suite.ts";
import { goTool } from "./lib/tools.ts";

const VERSION = "v1.9.3";
const MODULE = "github.com/fullstorydev/grpcurl";
const SERVICE = "testing.TestService";
const CALL_LIMIT_MS = 20_000;

/** A command, and what its output has to match. `exit`: of a failed call 64 and the gRPC status. */
interface Case {
  readonly name: string;
  readonly args: readonly string[];
  readonly expect: RegExp;
  readonly exit?: number;
}

/** A message with `text` as its payload. */
function payload(text: string): string {
  return JSON.stringify({ payload: { body: Buffer.from(text).toString("base64") } });
}

/** A request for responses of these sizes, each after `wait` µs. */
function sizes(wait: number, ...each: readonly number[]): string {
  return JSON.stringify({ responseParameters: each.map((size) => ({ size, intervalUs: wait })) });
}

const CASES: readonly Case[] = [
  { name: "list", args: ["list"], expect: /^testing\.TestService$/m },
  { name: "list of methods", args: ["list", SERVICE], expect: /^testing\.TestService\.FullDuplexCall$/m },
  { name: "describe", args: ["describe", SERVICE], expect: /rpc FullDuplexCall \( stream .*returns \( stream / },
  {
    name: "unary, with metadata both ways",
    args: [
      ...["-v", "-H", "reply-with-headers: x-head: one", "-H", "reply-with-trailers: x-trailer: two"],
      ...["-d", payload("hello"), `${SERVICE}/UnaryCall`],
    ],
    expect: /x-head: one[\s\S]*"aGVsbG8="[\s\S]*x-trailer: two/,
  },
  {
    name: "server streaming",
    args: ["-d", sizes(1000, 1, 2, 3), `${SERVICE}/StreamingOutputCall`],
    expect: /^(?:[^{}]*\{[^{}]*\{[^{}]*\}[^{}]*\}){3}[^{}]*$/,
  },
  {
    name: "client streaming",
    args: ["-d", `${payload("four")} ${payload("and")} ${payload("three")}`, `${SERVICE}/StreamingInputCall`],
    expect: /"aggregatedPayloadSize": 12/,
  },
  {
    name: "streaming both ways",
    args: ["-d", `${sizes(0, 1)} ${sizes(0, 2)}`, `${SERVICE}/FullDuplexCall`],
    expect: /^(?:[^{}]*\{[^{}]*\{[^{}]*\}[^{}]*\}){2}[^{}]*$/,
  },
  {
    name: "failure before the first message",
    args: ["-H", "fail-early: 5", "-d", "{}", `${SERVICE}/StreamingOutputCall`],
    expect: /Code: NotFound/,
    exit: 69,
  },
  {
    name: "failure after messages",
    args: ["-H", "fail-late: 10", "-d", sizes(0, 1), `${SERVICE}/StreamingOutputCall`],
    expect: /"body"[\s\S]*Code: Aborted/,
    exit: 74,
  },
  {
    name: "deadline",
    args: ["-max-time", "0.3", "-d", sizes(5_000_000, 1), `${SERVICE}/StreamingOutputCall`],
    expect: /Code: DeadlineExceeded/,
    exit: 68,
  },
  { name: "no such service", args: ["-d", "{}", "testing.Nothing/Call"], expect: /does not expose service/, exit: 1 },
];

await runSuite("grpcurl", async () => {
  const program = goTool(`${MODULE}/cmd/grpcurl`, VERSION);
  const server = spawn(goTool(`${MODULE}/internal/testing/cmd/testserver`, VERSION), ["-q"]);
  const failed: string[] = [];
  try {
    const port = await portOf(server.stderr, server.stdout);
    using ca = new TestCa();
    const { certFile: cert, keyFile: key } = ca.issue("localhost");
    const routes = [{ backends: [{ host: `127.0.0.1:${port}` }] }];
    for (const { name, listener, flags } of [
      { name: "plaintext", listener: { protocol: "HTTP" }, flags: ["-plaintext"] },
      {
        name: "TLS",
        listener: { protocol: "HTTPS", tls: { cert, key } },
        flags: ["-cacert", ca.certFile, "-authority", "localhost"],
      },
    ]) {
      await using gateway = await GatewayProcess.start({ binds: [{ port: 0, listeners: [{ ...listener, routes }] }] });
      for (const each of CASES) {
        const why = await failureOf(program, flags, `127.0.0.1:${gateway.port()}`, each);
        if (why !== undefined) failed.push(`${name}: ${each.name}: ${why}`);
      }
      process.stdout.write(`grpcurl: ${name}: ${CASES.length} cases\n`);
    }
  } finally {
    server.kill();
  }
  return failed;
});

/** The port that the server says it listens on. */
async function portOf(...outputs: readonly NodeJS.ReadableStream[]): Promise<number> {
  let text = "";
  for (;;) {
    const found = /127\.0\.0\.1:(\d+)/.exec(text);
    if (found !== null) return Number(found[1]);
    const signal = AbortSignal.timeout(CALL_LIMIT_MS);
    const [bytes] = (await Promise.race(outputs.map((output) => once(output, "data", { signal })))) as [Buffer];
    text += bytes.toString();
  }
}

/** What is wrong with the command's output; undefined = nothing. */
async function failureOf(
  program: string,
  flags: readonly string[],
  address: string,
  { args, expect, exit = 0 }: Case,
): Promise<string | undefined> {
  // The address goes between the options and the command.
  const at = args.findLastIndex((each, i) => each.startsWith("-") || args[i - 1]?.startsWith("-") === true) + 1;
  const command = [...flags, ...args.slice(0, at), address, ...args.slice(at)];
  const { output, code } = await promisify(execFile)(program, command, { timeout: CALL_LIMIT_MS }).then(
    ({ stdout, stderr }) => ({ output: stdout + stderr, code: 0 }),
    (error: { stdout: string; stderr: string; code: number }) => ({
      output: error.stdout + error.stderr,
      code: error.code,
    }),
  );
  if (code !== exit) return `ended with ${code}, expected ${exit}:\n${output}`;
  return expect.test(output) ? undefined : `the output does not match ${expect}:\n${output}`;
}
