import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { closedPort } from "../trace/support.ts";
import { gatewayTo } from "./support.ts";

/** A server of HTTP/2 that is not Node's own; Debian has it in nghttp2-server. */
const missing: string | false = (() => {
  try {
    execFileSync("nghttpd", ["--version"], { stdio: "ignore" });
    return false;
  } catch {
    return "needs the nghttpd command";
  }
})();

/** Serves a folder with the files `small` and `large` on a port of 127.0.0.1. */
class Nghttpd implements Disposable {
  readonly port: number;
  readonly #folder: string;
  readonly #process: ChildProcess;

  private constructor(port: number, folder: string, options: readonly string[]) {
    this.port = port;
    this.#folder = folder;
    this.#process = spawn("nghttpd", ["-a", "127.0.0.1", "-d", folder, ...options], { stdio: "ignore" });
  }

  static async start(large: Buffer, options: (port: number) => readonly string[]): Promise<Nghttpd> {
    const folder = mkdtempSync(join(tmpdir(), "tracegate-nghttpd-"));
    writeFileSync(join(folder, "small"), "small");
    writeFileSync(join(folder, "large"), large);
    const port = await closedPort();
    const server = new Nghttpd(port, folder, options(port));
    await server.#listening();
    return server;
  }

  async #listening(): Promise<void> {
    const deadline = Date.now() + 10_000;
    for (;;) {
      const socket = connect(this.port, "127.0.0.1");
      try {
        await once(socket, "connect");
        return;
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await new Promise((resolve) => setTimeout(resolve, 10));
      } finally {
        socket.destroy();
      }
    }
  }

  [Symbol.dispose](): void {
    this.#process.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

suite("nghttpd as the backend", { skip: missing }, () => {
  const large = Buffer.from(Array.from({ length: 1_000_000 }, (_, i) => (i * 17 + (i >> 9)) & 255));
  const get = async (port: number, path: string): Promise<Buffer> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    assert.equal(response.status, 200);
    return Buffer.from(await response.arrayBuffer());
  };

  test("plaintext, with few streams at once, padding and trailers", async () => {
    const options = ["--no-tls", "--max-concurrent-streams=3", "--padding=64", "--trailer=x-done: 1"];
    using server = await Nghttpd.start(large, (port) => [...options, String(port)]);
    await using plane = await gatewayTo(server.port);
    const all = await Promise.all(
      Array.from({ length: 30 }, (_, i) => get(plane.port, i % 3 === 0 ? "/large" : "/small")),
    );
    for (const [i, body] of all.entries()) assert.ok(body.equals(i % 3 === 0 ? large : Buffer.from("small")));
  });

  test("TLS with ALPN", { skip: noOpenssl }, async () => {
    using ca = new TestCa();
    const { keyFile, certFile } = ca.issue("one.example");
    using server = await Nghttpd.start(large, (port) => [String(port), keyFile, certFile]);
    const backendTLS = { root: ca.cert, hostname: "one.example", insecure: false, insecureHost: false };
    await using plane = await gatewayTo(server.port, { backendPolicies: { backendTLS } });
    assert.ok((await get(plane.port, "/large")).equals(large));
  });
});
