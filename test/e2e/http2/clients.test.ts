import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { logged } from "../tls/support.ts";

const run = promisify(execFile);
const SIZE = 2_000_000;

/** A reason to skip tests of a program that is not installed, or false. */
function without(program: string): string | false {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return false;
  } catch {
    return `needs the ${program} command`;
  }
}

/** Clients that others wrote; Debian has them in curl and nghttp2-client. */
suite("clients of HTTP/2", { skip: noOpenssl }, () => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-clients-"));
  const upload = join(folder, "upload");
  const download = join(folder, "download");
  const bytes = randomBytes(SIZE);
  let ca: TestCa;
  let backend: Server;
  let plain: LocalGateway;
  let secure: LocalGateway;

  before(async () => {
    ca = new TestCa();
    writeFileSync(upload, bytes);
    // Answers with the digest of an upload, or with the bytes themselves.
    backend = createServer(async (request, response) => {
      const hash = createHash("sha256");
      for await (const chunk of request) hash.update(chunk as Buffer);
      if (request.method === "GET") response.end(request.url === "/large" ? bytes : "small");
      else response.end(hash.digest("hex"));
    });
    await once(backend.listen(0, "127.0.0.1"), "listening");
    const { port } = backend.address() as AddressInfo;
    const routes = [{ backends: [{ host: `127.0.0.1:${port}`, policies: { http: { version: "HTTP/1.1" } } }] }];
    const { certFile: cert, keyFile: key } = ca.issue("localhost");
    const start = (listener: object) =>
      LocalGateway.start({ binds: [{ port: 0, listeners: [{ ...listener, routes }] }] });
    plain = await start({});
    secure = await start({ protocol: "HTTPS", tls: { cert, key } });
  });
  after(async () => {
    await plain?.[Symbol.asyncDispose]();
    await secure?.[Symbol.asyncDispose]();
    backend.closeAllConnections();
    backend.close();
    ca[Symbol.dispose]();
    rmSync(folder, { recursive: true });
  });

  const url = (scheme: "http" | "https", path: string): string =>
    `${scheme}://localhost:${(scheme === "http" ? plain : secure).port()}${path}`;
  const digest = createHash("sha256").update(bytes).digest("hex");

  test("curl uploads and downloads, with prior knowledge and by ALPN", { skip: without("curl") }, async () => {
    for (const [scheme, ...flags] of [
      ["http", "--http2-prior-knowledge"],
      ["https", "--http2", "--cacert", ca.certFile],
    ] as const) {
      const curl = (...args: string[]) => run("curl", ["--silent", "--show-error", "--ipv4", ...flags, ...args]);
      const written = ["--write-out", "%{http_version} %{http_code}"];
      const down = await curl(...written, "--output", download, url(scheme, "/large"));
      assert.equal(down.stdout, "2 200");
      assert.ok(readFileSync(download).equals(bytes));
      // More than 1 MB: curl waits for 100 Continue first.
      const up = await curl(...written, "--data-binary", `@${upload}`, url(scheme, "/"));
      assert.equal(up.stdout, `${digest}2 200`);
    }
  });

  test("nghttp sends several requests at once", { skip: without("nghttp") }, async () => {
    const paths = ["/a", "/b", "/large"].map((path) => url("http", path));
    const { stdout } = await run("nghttp", ["--stat", "--null-out", ...paths]);
    assert.equal(stdout.match(/ 200 /g)?.length, 3, stdout);
  });

  test("h2load gets responses to all its requests", { skip: without("h2load") }, async () => {
    for (const scheme of ["http", "https"] as const) {
      const { stdout } = await run("h2load", ["-n", "1000", "-c", "5", "-m", "20", url(scheme, "/small")]);
      assert.match(stdout, /1000 done, 1000 succeeded, 0 failed, 0 errored/);
    }
    await logged(plain, { "http.path": "/small", "http.version": "HTTP/2", "http.status": 200 });
  });
});
