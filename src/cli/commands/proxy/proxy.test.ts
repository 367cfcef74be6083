import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { serve } from "../../fixtures/admin.ts";
import { invoke } from "../../fixtures/invoke.ts";

test("log shows the filter, sets the level of everything or of modules", async (t) => {
  const admin = await serve(t, (request, response) => {
    const level = new URL(request.url ?? "", "http://x").searchParams.get("level") ?? "info";
    response.end(`current log level is ${level}\n`);
  });
  const log = (...more: string[]) =>
    invoke(["proxy", "log", "--local", "--proxy-admin-port", String(admin.port), ...more]);
  assert.equal((await log()).stdout, "current log level is info\n");
  assert.equal((await log("--level", "debug")).stdout, "current log level is debug\n");
  const set = await log("--set", "proxy=debug,request=off", "--set", "admin=trace");
  assert.equal(set.stdout, "current log level is proxy=debug,request=off,admin=trace\n");
  assert.deepEqual(JSON.parse((await log("--json")).stdout), { level: "info" });
  assert.deepEqual(
    admin.requests.map((line) => line.split("?")[0]),
    Array.from({ length: 4 }, () => "POST /logging"),
  );
});

test("log passes on why the proxy refused", async (t) => {
  const admin = await serve(t, (_request, response) => response.writeHead(400).end("Invalid level provided: x\n"));
  const { code, stderr } = await invoke(["proxy", "log", "--local", "--proxy-admin-port", String(admin.port)]);
  assert.equal(code, 1);
  assert.equal(stderr, "Error: unexpected status code: 400\nWhy: Invalid level provided: x\n");
});

test("a port that is not the admin server's is told as such", async (t) => {
  const listener = await serve(t, (_request, response) => response.writeHead(404).end("route not found"));
  for (const words of ["log", "config all", "trace --raw"]) {
    const line = ["proxy", ...words.split(" "), "--local", "--proxy-admin-port", String(listener.port)];
    const { code, stderr } = await invoke(line);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /404.*\nTry: what answers there is no admin server; give its port .* --proxy-admin-port\n$/s,
      words,
    );
  }
});

test("profiles are written to the file; cpu is what profile means alone", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tgctl-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const admin = await serve(t, (_request, response) => response.end(Buffer.from([31, 139, 0, 255])));
  const file = join(folder, "p.pb.gz");
  const profile = (...words: string[]) =>
    invoke(["proxy", "profile", ...words, "--local", "--proxy-admin-port", String(admin.port), "-o", file]);
  for (const [words, kind] of [
    [["cpu", "--seconds", "2"], "cpu"],
    [["--seconds", "300"], "cpu"],
    [["heap"], "heap"],
  ] as const) {
    assert.equal((await profile(...words)).stdout, `Wrote ${kind} profile to ${file}\n`);
    assert.deepEqual([...readFileSync(file)], [31, 139, 0, 255]);
  }
  assert.deepEqual(admin.requests, [
    "GET /debug/pprof/profile?seconds=2",
    "GET /debug/pprof/profile?seconds=300",
    "GET /debug/pprof/heap",
  ]);
});

test("a profile that fails leaves no file", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tgctl-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const admin = await serve(t, (_request, response) => response.writeHead(500).end("busy\n"));
  const heap = ["proxy", "profile", "heap", "--local", "--proxy-admin-port", String(admin.port), "-o"];
  const file = join(folder, "p.pb.gz");
  assert.equal((await invoke([...heap, file])).stderr, "Error: heap profile returned 500: busy\n");
  assert.equal(existsSync(file), false);
  const nowhere = await invoke([...heap, join(folder, "no/such/folder")]);
  assert.match(nowhere.stderr, /^Error: failed to create output file .*: ENOENT/);
});
