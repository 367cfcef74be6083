/**
 * npm run soak -- take-over [--rounds N]
 * Ten times, another process takes over from a gateway process while 10,000 requests arrive: a third each over kept connections, over new
 * connections, and over new connections through TLS. Fails on a single request without its answer. Prints the requests of each round, and how
 * long the take-over and the drain took.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { TestCa } from "../helpers/certificates.ts";
import { freePorts } from "../helpers/free-ports.ts";
import { GatewayProcess } from "../helpers/gateway.ts";
import { takeOver } from "../helpers/take-over.ts";

const REQUESTS = 10_000;
/** Clients of each kind, which send one request after the other. */
const CLIENTS = 8;
const KINDS = ["kept connections", "new connections", "new connections with TLS"] as const;

interface Counts {
  left: number;
  answered: number;
  readonly failures: string[];
}

/** True: no request failed. */
export async function soakTakeOver(rounds: number): Promise<boolean> {
  const runtime = mkdtempSync(join(tmpdir(), "tracegate-soak-"));
  const [http = 0, https = 0, admin = 0, stats = 0, readiness = 0] = await freePorts(5);
  const { certFile: cert, keyFile: key } = new TestCa().issue("localhost");
  const routes = [{ policies: { directResponse: { status: 200, body: randomBytes(300).toString("hex") } } }];
  const config = {
    adminAddr: `127.0.0.1:${admin}`,
    statsAddr: `127.0.0.1:${stats}`,
    readinessAddr: `127.0.0.1:${readiness}`,
    workerThreads: 2,
    logging: { level: "warn" },
  };
  const binds = [
    { port: http, listeners: [{ routes }] },
    { port: https, listeners: [{ protocol: "HTTPS", tls: { cert, key }, routes }] },
  ];
  const gateway = await GatewayProcess.launch({ config, binds }, { env: { XDG_RUNTIME_DIR: runtime } });
  while ((await ask(readiness, undefined, false)) !== undefined) await delay(50);
  let pid = gateway.process.pid ?? 0;
  let failed = 0;
  try {
    for (let round = 1; round <= rounds; round++) {
      const counts: Counts = { left: REQUESTS, answered: 0, failures: [] };
      const load = KINDS.flatMap((kind) => Array.from({ length: CLIENTS }, () => client(kind, http, https, counts)));
      // In the middle of the load.
      while (counts.left > REQUESTS * 0.9) await delay(5);
      const start = performance.now();
      const outcome = await takeOver(gateway, { XDG_RUNTIME_DIR: runtime });
      const took = performance.now() - start;
      const answeredBy = counts.answered;
      if ("failure" in outcome) throw new Error(outcome.failure);
      while (existsSync(`/proc/${outcome.drains}`) && outcome.drains !== gateway.process.pid) await delay(10);
      if (outcome.drains === gateway.process.pid) while (gateway.process.exitCode === null) await delay(10);
      const drained = performance.now() - start - took;
      pid = outcome.serves;
      await Promise.all(load);
      failed += counts.failures.length;
      process.stdout.write(
        `round ${round}: ${counts.answered} answered, ${counts.failures.length} failed; ` +
          `${answeredBy} before the new process served, after ${Math.round(took)} ms; the former one drained in ${Math.round(drained)} ms\n`,
      );
      for (const failure of counts.failures.slice(0, 5)) process.stdout.write(`  ${failure}\n`);
    }
  } finally {
    process.kill(pid, "SIGKILL");
    await gateway.stop();
    rmSync(runtime, { recursive: true });
  }
  return failed === 0;
}

async function client(kind: (typeof KINDS)[number], http: number, https: number, counts: Counts): Promise<void> {
  const agent = kind === "kept connections" ? new Agent({ keepAlive: true, maxSockets: 1 }) : undefined;
  const tls = kind === "new connections with TLS";
  while (counts.left-- > 0) {
    const failure = await ask(tls ? https : http, agent, tls);
    if (failure === undefined) counts.answered++;
    else counts.failures.push(`${kind}: ${failure}`);
  }
  agent?.destroy();
}

/** Undefined if the answer is complete. */
function ask(port: number, agent: Agent | undefined, tls: boolean): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = {
      host: "127.0.0.1",
      port,
      path: "/healthz/ready",
      agent: agent ?? false,
      rejectUnauthorized: false,
    };
    (tls ? httpsRequest : httpRequest)(options, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode === 200 ? undefined : `status ${response.statusCode}`));
      response.on("error", (error) => resolve(error.message));
    })
      .on("error", (error) => resolve(error.message))
      .end();
  });
}
