/**
 * npm run h2spec [-- <section>…]
 * The conformance suite for servers of HTTP/2, on cleartext with prior knowledge and on TLS, against a gateway with a route to
 * a real server. Sections such as `http2/6.9` run alone.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { TestCa } from "../helpers/certificates.ts";
import { GatewayProcess } from "../helpers/gateway.ts";
import { runSuite } from "./lib/suite.ts";
import { goTool } from "./lib/tools.ts";

const VERSION = "v2.2.1+incompatible";
/** Seconds that h2spec waits for an answer; it waits in vain only where the gateway fails. */
const TIMEOUT = 5;

await runSuite("h2spec", async () => {
  const program = goTool("github.com/summerwind/h2spec/cmd/h2spec", VERSION);
  using authority = new TestCa();
  const { certFile: cert, keyFile: key } = authority.issue("localhost");
  const port = await startOrigin();
  const failed: string[] = [];
  for (const { name, listener, flags } of [
    { name: "h2c", listener: { protocol: "HTTP" }, flags: [] },
    { name: "TLS", listener: { protocol: "HTTPS", tls: { cert, key } }, flags: ["--tls", "--insecure"] },
  ]) {
    // Without it, requests that come by HTTP/2 without TLS go to the backend by HTTP/2 too.
    const policies = { http: { version: "HTTP/1.1" } };
    const routes = [{ backends: [{ host: `127.0.0.1:${port}`, policies }] }];
    await using gateway = await GatewayProcess.start({ binds: [{ port: 0, listeners: [{ ...listener, routes }] }] });
    const { summary, output } = await runH2spec(program, gateway.port(), flags);
    process.stdout.write(`h2spec: ${name}: ${summary}\n`);
    if (summary.endsWith(" 0 skipped, 0 failed")) continue;
    process.stdout.write(output);
    failed.push(`${name}: ${summary}`);
  }
  return failed;
});

/** A server that answers everything with a short body. */
async function startOrigin(): Promise<number> {
  const origin = createServer((request, response) => {
    request.resume().on("end", () => response.end("hello"));
  });
  origin.listen(0, "127.0.0.1").unref();
  await once(origin, "listening");
  return (origin.address() as AddressInfo).port;
}

/** Returns the last line, such as `145 tests, 145 passed, 0 skipped, 0 failed`, and everything that was printed. */
async function runH2spec(
  program: string,
  port: number,
  flags: readonly string[],
): Promise<{ summary: string; output: string }> {
  const target = ["--host", "127.0.0.1", "--port", String(port), "--timeout", String(TIMEOUT)];
  const args = [...target, ...flags, ...process.argv.slice(2)];
  const client = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  client.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  await once(client, "close");
  const summary = /^\d+ tests?, .*\d+ failed$/m.exec(output)?.[0];
  if (summary === undefined) throw new Error(`h2spec printed no summary:\n${output.slice(-2000)}`);
  return { summary, output };
}
