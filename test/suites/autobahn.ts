/**
 * npm run autobahn [-- <case>…]
 * The Autobahn test suite, a WebSocket client that breaks the rules, against an echo server behind the gateway. Cases such as
 * `5.*` run alone; without arguments, all but those of 9, which measure speed.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocketServer } from "ws";
import { GatewayProcess, proxyTo } from "../helpers/gateway.ts";
import { runSuite } from "./lib/suite.ts";
import { python2Package } from "./lib/tools.ts";

const VERSION = "25.10.1";
const PERFORMANCE = "9.*";
/** What the suite calls a pass. NON-STRICT: correct, but a broken connection could have ended earlier. */
const PASSED: readonly string[] = ["OK", "NON-STRICT", "INFORMATIONAL"];

/** Results of one agent by case, as in the suite's index.json. */
type Results = Readonly<Record<string, { readonly behavior: string; readonly behaviorClose: string }>>;

await runSuite("autobahn", async () => {
  const { bin, env } = python2Package("autobahntestsuite", VERSION);
  await using gateway = await startGateway();
  const folder = await mkdtemp(join(tmpdir(), "tracegate-autobahn-"));
  try {
    const named = process.argv.slice(2);
    const specification = {
      outdir: join(folder, "reports"),
      servers: [{ agent: "tracegate", url: `ws://127.0.0.1:${gateway.port()}` }],
      cases: named.length === 0 ? ["*"] : named,
      "exclude-cases": named.length === 0 ? [PERFORMANCE] : [],
      "exclude-agent-cases": {},
    };
    await writeFile(join(folder, "spec.json"), JSON.stringify(specification));
    const args = ["--mode", "fuzzingclient", "--spec", join(folder, "spec.json")];
    const client = spawn(join(bin, "wstest"), args, { cwd: folder, env, stdio: ["ignore", "ignore", "inherit"] });
    const [code] = await once(client, "exit");
    if (code !== 0) throw new Error(`wstest ended with ${code}`);
    const report = JSON.parse(await readFile(join(folder, "reports/index.json"), "utf8")) as Record<string, Results>;
    return summarize(report.tracegate ?? {});
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

async function startGateway(): Promise<GatewayProcess> {
  // The suite tests messages of 16 MiB, and compression in cases 12 and 13.
  const server = createServer();
  const echo = new WebSocketServer({ server, perMessageDeflate: true, maxPayload: 2 ** 25 });
  echo.on("connection", (socket) => {
    // The suite breaks the protocol on purpose.
    socket.on("error", () => {});
    socket.on("message", (data, binary) => socket.send(data, { binary }));
  });
  server.listen(0, "127.0.0.1").unref();
  await once(server, "listening");
  return GatewayProcess.start(proxyTo(`127.0.0.1:${(server.address() as AddressInfo).port}`));
}

/** Prints how many cases had which result; returns those that failed. */
function summarize(results: Results): string[] {
  const counts = new Map<string, number>();
  const failed: string[] = [];
  for (const [name, { behavior, behaviorClose }] of Object.entries(results)) {
    counts.set(behavior, (counts.get(behavior) ?? 0) + 1);
    if (!PASSED.includes(behavior) || !PASSED.includes(behaviorClose))
      failed.push(`${name}: ${behavior}, close ${behaviorClose}`);
  }
  const total = Object.keys(results).length;
  if (total === 0) throw new Error("no case ran");
  const parts = [...counts].map(([behavior, count]) => `${count} ${behavior}`);
  process.stdout.write(`autobahn: ${total} cases: ${parts.join(", ")}\n`);
  return failed;
}
