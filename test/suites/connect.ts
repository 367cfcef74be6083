/**
 * npm run connect [-- <case pattern>…]
 * The conformance suite of Connect: its reference client calls its reference server through the gateway by Connect, gRPC and
 * gRPC-Web, over HTTP/1.1 and HTTP/2, with every codec and compression, in plaintext and TLS with and without client certificates.
 * Patterns such as `Timeouts/**` select cases.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { appRoot } from "../../src/base/app-root.ts";
import { runSuite } from "./lib/suite.ts";
import { goTool } from "./lib/tools.ts";

const VERSION = "v1.0.5";
const TOOLS = "connectrpc.com/conformance/cmd";
/** Servers that the runner starts at once; it gives each 10 s to start. */
const SERVERS = 2;

/** What a client may use on its way to the gateway, as the suite's configuration says it. */
const FEATURES = {
  versions: ["HTTP_VERSION_1", "HTTP_VERSION_2"],
  codecs: ["CODEC_PROTO", "CODEC_JSON"],
  compressions: ["IDENTITY", "GZIP", "BR", "ZSTD", "DEFLATE", "SNAPPY"].map((name) => `COMPRESSION_${name}`),
  supportsTlsClientCerts: true,
  supportsHalfDuplexBidiOverHttp1: true,
};

/** The backend speaks what the client speaks, or gRPC behind the policy `grpcWeb`. */
const RUNS = [
  { name: "passed on", mode: "pass", protocols: ["PROTOCOL_CONNECT", "PROTOCOL_GRPC", "PROTOCOL_GRPC_WEB"] },
  { name: "translated", mode: "translate", protocols: ["PROTOCOL_GRPC_WEB"] },
];

await runSuite("connect", async () => {
  const runner = goTool(`${TOOLS}/connectconformance`, VERSION);
  const server = goTool(`${TOOLS}/referenceserver`, VERSION);
  const folder = mkdtempSync(join(tmpdir(), "tracegate-connect-"));
  const failed: string[] = [];
  try {
    for (const { name, mode, protocols } of RUNS) {
      const configuration = join(folder, `${mode}.yaml`);
      writeFileSync(configuration, stringify({ features: { ...FEATURES, protocols } }));
      const command = [process.execPath, join(appRoot, "test/suites/connect/server.ts"), server, mode];
      const output = await run(runner, configuration, command);
      const counts = /^Total cases: \d+\n\d+ passed, \d+ failed$/m.exec(output)?.[0];
      if (counts === undefined) throw new Error(`the runner printed no summary:\n${output.slice(-2000)}`);
      process.stdout.write(`connect: ${name}: ${counts.replace("\n", ", ")}\n`);
      const cases = [...output.matchAll(/^FAILED: (.*):$/gm)].map(([, each]) => `${name}: ${each}`);
      if (cases.length > 0) process.stdout.write(output);
      failed.push(...cases);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return failed;
});

/** Runs the suite against the servers that `command` starts; returns what it printed. */
async function run(runner: string, configuration: string, command: readonly string[]): Promise<string> {
  const patterns = process.argv.slice(2).flatMap((pattern) => ["--run", pattern]);
  const options = ["--mode", "server", "--conf", configuration, "--max-servers", String(SERVERS), ...patterns];
  const env = { NODE_COMPILE_CACHE: join(appRoot, "node_modules/.cache/compile"), ...process.env };
  const client = spawn(runner, [...options, "--", ...command], { env, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  client.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  await once(client, "close");
  return output;
}
