/**
 * npm run connect [-- <case pattern>…]
 * The conformance suite of Connect: its reference client calls its reference server through the gateway by Connect, gRPC and
 * gRPC-Web, over HTTP/1.1 and HTTP/2, with every codec and compression, in plaintext and TLS with and without client certificates;
 * then a client and a server of grpc-go. Patterns such as `Timeouts/**` select cases.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { appRoot } from "../../src/base/app-root.ts";
import { listenForRelays, type Wanted } from "./connect/gateways.ts";
import { runSuite } from "./lib/suite.ts";
import { goTool } from "./lib/tools.ts";

const VERSION = "v1.0.5";
const TOOLS = "connectrpc.com/conformance/cmd";
/** Servers that the runner starts at once. */
const SERVERS = 2;
/** Calls of the reference client at once; most of them wait for delays that the cases ask for. */
const CALLS = 12;

/** What clients may use on their way to the gateway, as the suite's configuration says it. */
const FEATURES = {
  versions: ["HTTP_VERSION_1", "HTTP_VERSION_2"],
  protocols: ["PROTOCOL_CONNECT", "PROTOCOL_GRPC", "PROTOCOL_GRPC_WEB"],
  codecs: ["CODEC_PROTO", "CODEC_JSON"],
  compressions: ["IDENTITY", "GZIP", "BR", "ZSTD", "DEFLATE", "SNAPPY"].map((name) => `COMPRESSION_${name}`),
  supportsTlsClientCerts: true,
  supportsHalfDuplexBidiOverHttp1: true,
};
/** What the client and the server of grpc-go can do. */
const GRPC_GO = {
  versions: ["HTTP_VERSION_2"],
  protocols: ["PROTOCOL_GRPC"],
  codecs: ["CODEC_PROTO"],
  compressions: ["COMPRESSION_IDENTITY", "COMPRESSION_GZIP"],
  supportsTls: false,
};

interface Run {
  readonly name: string;
  readonly mode: Wanted["mode"];
  readonly features: object;
  readonly server: string;
  /** Default: the reference client, which also looks at what is on the wire. */
  readonly client?: string;
}

const RUNS: readonly Run[] = [
  { name: "grpc-go", mode: "pass", features: GRPC_GO, server: "grpcserver", client: "grpcclient" },
  {
    name: "gRPC-Web to gRPC",
    mode: "translate",
    features: { ...FEATURES, protocols: ["PROTOCOL_GRPC_WEB"] },
    server: "referenceserver",
  },
  { name: "all protocols", mode: "pass", features: FEATURES, server: "referenceserver" },
];

await runSuite("connect", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-connect-"));
  const failed: string[] = [];
  let cases = 0;
  const gateways = await listenForRelays(join(folder, "relays"));
  try {
    for (const each of RUNS) {
      const result = await run(each, folder);
      cases += result.cases;
      failed.push(...result.failed);
    }
  } finally {
    gateways.close();
    rmSync(folder, { recursive: true, force: true });
  }
  if (cases === 0) throw new Error("no case matches the patterns, or those that match test clients alone");
  return failed;
});

interface Result {
  readonly cases: number;
  /** Names of cases. */
  readonly failed: readonly string[];
}

/** Prints the counts of a run, and everything about cases that have failed. */
async function run({ name, mode, features, server, client }: Run, folder: string): Promise<Result> {
  const configuration = join(folder, "config.yaml");
  writeFileSync(configuration, stringify({ features }));
  const wanted: Wanted = { server: tool(server), mode };
  const relay = join(appRoot, "test/suites/connect/relay.ts");
  const gateway = [process.execPath, relay, join(folder, "relays"), JSON.stringify(wanted)];
  const commands = client === undefined ? ["--parallel", String(CALLS), "--", ...gateway] : [];
  if (client !== undefined) commands.push("--", tool(client), "----", ...gateway);
  const patterns = process.argv.slice(2).flatMap((pattern) => ["--run", pattern]);
  const options = ["--mode", client === undefined ? "server" : "both", "--max-servers", String(SERVERS), ...patterns];
  const output = await outputOf(tool("connectconformance"), ["--conf", configuration, ...options, ...commands]);
  const [counts, cases] = /^Total cases: (\d+)\n\d+ passed, \d+ failed$/m.exec(output) ?? [];
  // Patterns may be for the cases of other runs; the runner has said so and stopped.
  if (patterns.length > 0 && output === "") return { cases: 0, failed: [] };
  if (counts === undefined) throw new Error(`the runner printed no summary:\n${output.slice(-2000)}`);
  process.stdout.write(`connect: ${name}: ${counts.replace("\n", ", ")}\n`);
  const failed = [...output.matchAll(/^FAILED: (.*):$/gm)].map(([, each]) => `${name}: ${each}`);
  if (failed.length > 0) process.stdout.write(output);
  return { cases: Number(cases), failed };
}

function tool(name: string): string {
  return goTool(`${TOOLS}/${name}`, VERSION);
}

async function outputOf(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  await once(child, "close");
  return output;
}
