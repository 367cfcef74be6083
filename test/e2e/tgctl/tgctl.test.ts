import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { Profile } from "pprof-format";
import { parse } from "yaml";
import type { TraceEvent } from "../../../src/trace/events.ts";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { TGCTL } from "../../helpers/programs.ts";
import { SEQUENCE_GET } from "../trace/expected.ts";
import { bodyAt, call, closedPort, messageOf, sequence, stateAt, Upstream } from "../trace/support.ts";

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

suite("tgctl and a running gateway", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let port: number;
  let adminPort: string;

  before(async () => {
    upstream = await Upstream.start();
    upstream.on("/echo", (request, response) => request.pipe(response));
    gateway = await TestGateway.start(proxyTo(upstream.address));
    port = gateway.port();
    adminPort = new URL(gateway.url("admin")).port;
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  async function tgctl(args: readonly string[], options: { local?: boolean; input?: string } = {}): Promise<Outcome> {
    const target = options.local === false ? [] : ["--local", "--proxy-admin-port", adminPort];
    const split = args.indexOf("--");
    const own = split === -1 ? args : args.slice(0, split);
    const child = spawn(TGCTL, [...own, ...target, ...(split === -1 ? [] : args.slice(split))], {
      cwd: gateway.folder,
    });
    child.stdin.end(options.input ?? "");
    const closed = once(child, "close");
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = (await closed) as [number | null];
    return { code, stdout, stderr };
  }

  test("trace --raw with a URL: sends the request with its arguments, prints one event per line", async () => {
    const { code, stdout, stderr } = await tgctl([
      ...["proxy", "trace", "--raw", "--reveal", "--port", String(port)],
      ...["--", "http://example.test/echo?x=1", "-X", "PUT", "-d", "some data", "-H", "authorization: Bearer t"],
    ]);
    assert.equal(code, 0, stderr);
    const events = lines(stdout);
    const { request } = stateAt(events, "initial request");
    assert.equal(request?.method, "PUT");
    assert.equal(request?.uri, "http://example.test/echo?x=1");
    assert.equal(request?.headers.authorization, "Bearer t");
    assert.equal(bodyAt(events, "final request").text.toString(), "some data");
    assert.equal(messageOf(events, "requestFinished").status, 200);
  });

  test("trace in watch mode: the next request of any client; a saved trace is shown the same way", async () => {
    let done = false;
    const watching = tgctl(["proxy", "trace", "--raw", "--expression", 'request.path == "/watched"']).finally(() => {
      done = true;
    });
    while (!done) await call(port, { path: "/watched", headers: { cookie: "s3cret" } });
    const { code, stdout } = await watching;
    assert.equal(code, 0);
    assert.deepEqual(sequence(lines(stdout)), SEQUENCE_GET);
    assert.ok(!stdout.includes("s3cret"));

    const file = join(gateway.folder, "trace.jsonl");
    await writeFile(file, stdout);
    const again = await tgctl(["proxy", "trace", "--raw", "--file", file], { local: false });
    assert.deepEqual(again, { code: 0, stdout, stderr: "" });
    const piped = await tgctl(["proxy", "trace", "--raw", "--file", "-"], { local: false, input: stdout });
    assert.equal(piped.stdout, stdout);
  });

  test("trace: the error of a failed request is shown beside its trace", async () => {
    const none = await closedPort();
    const { code, stdout, stderr } = await tgctl([
      ...["proxy", "trace", "--raw", "--port", String(none), "--", "http://a.test/"],
    ]);
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /failed to execute traced request: curl: \(7\)/);
  });

  test("trace: an invalid expression is reported with its position", async () => {
    const { code, stderr } = await tgctl(["proxy", "trace", "--raw", "--expression", "request.path ==="]);
    assert.equal(code, 1);
    assert.match(stderr, /invalid expression: .*\n.*request\.path ===\n *\^/);
  });

  test("config all: a table, the dump as JSON and YAML, and the same from a saved dump", async () => {
    const table = await tgctl(["proxy", "config", "all"]);
    assert.equal(table.code, 0, table.stderr);
    assert.match(table.stdout, new RegExp(`^\\[::\\]:${port} +http +direct +1$`, "m"));
    assert.match(table.stdout, new RegExp(upstream.address));
    const dump = await (await fetch(`${gateway.url("admin")}/config_dump`)).json();
    const json = await tgctl(["proxy", "config", "all", "-o", "json"]);
    assert.deepEqual(settled(JSON.parse(json.stdout)), settled(dump));
    const yaml = await tgctl(["proxy", "config", "all", "-o", "yaml"]);
    assert.deepEqual(settled(parse(yaml.stdout)), settled(dump));
    const file = join(gateway.folder, "dump.json");
    await writeFile(file, JSON.stringify(dump));
    const saved = await tgctl(["proxy", "config", "all", "--file", file], { local: false });
    assert.deepEqual(saved, table);
  });

  test("config backends: endpoints with their requests, as a table and JSON", async () => {
    await call(port, { path: "/counted" });
    const table = await tgctl(["proxy", "config", "backends"]);
    assert.equal(table.code, 0, table.stderr);
    const [head = "", row = ""] = table.stdout.split("\n");
    assert.deepEqual(head.split(/ {2,}/), ["TYPE", "NAME", "NAMESPACE", "ENDPOINT", "HEALTH", "REQUESTS", "LATENCY"]);
    assert.match(row, new RegExp(`^Backend .*${upstream.address} +1\\.00 +\\d+ +[\\d.]+ms`));
    for (const [format, read] of [
      ["json", (output: string): unknown => JSON.parse(output)],
      ["yaml", (output: string): unknown => parse(output)],
    ] as const) {
      const { stdout } = await tgctl(["proxy", "config", "backends", "-o", format]);
      const [first] = read(stdout) as { endpoint: string; requests: number }[];
      assert.equal(first?.endpoint, upstream.address);
      assert.ok(Number(first?.requests) >= 1);
    }
  });

  test("log: shows the filter, sets it for all and for one module", async () => {
    assert.match((await tgctl(["proxy", "log"])).stdout, /current log level is info\n$/);
    assert.match((await tgctl(["proxy", "log", "--level", "debug"])).stdout, /current log level is debug\n$/);
    assert.match((await tgctl(["proxy", "log", "--set", "request=off"])).stdout, /is debug,request=off\n$/);
    const filter = await (await fetch(`${gateway.url("admin")}/logging`)).text();
    assert.equal(filter, "current log level is debug,request=off\n");
    const wrong = await tgctl(["proxy", "log", "--level", "loud"]);
    assert.equal(wrong.code, 2);
    await fetch(`${gateway.url("admin")}/logging?reset`, { method: "POST" });
  });

  test("status: exit code 1 and the reason while the file has a rejected configuration, else 0", async () => {
    const before = await tgctl(["status"]);
    assert.equal(before.code, 0, before.stderr);
    assert.match(before.stdout, /^synchronized +yes$/m);
    assert.equal(await gateway.reconfigure({ ...proxyTo(upstream.address), nonsense: 1 }), "rejected");
    const refused = await tgctl(["status"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stdout, /^synchronized +no$/m);
    assert.match(refused.stdout, /nonsense/);
    assert.match(refused.stderr, /^Error: the newest configuration is not in effect\nWhy: /);
    assert.equal(await gateway.reconfigure(proxyTo(upstream.address)), "applied");
    port = gateway.port();
    assert.equal((await tgctl(["status"])).code, 0);
  });

  test("profile: the files can be decoded", async () => {
    const cpu = await tgctl(["proxy", "profile", "cpu", "--seconds", "1", "-o", "cpu.pb.gz"]);
    assert.equal(cpu.code, 0, cpu.stderr);
    const heap = await tgctl(["proxy", "profile", "heap", "-o", "heap.pb.gz"]);
    assert.equal(heap.code, 0, heap.stderr);
    for (const name of ["cpu.pb.gz", "heap.pb.gz"]) {
      const profile = Profile.decode(gunzipSync(await readFile(join(gateway.folder, name))));
      assert.ok(profile.sampleType.length > 0, name);
    }
  });

  test("without a running proxy: exit code 3 and what to do, as text and as JSON", async () => {
    const none = ["--local", "--proxy-admin-port", String(await closedPort())];
    for (const command of [
      ["trace", "--raw"],
      ["config", "all"],
      ["config", "backends"],
      ["log"],
      ["profile", "heap"],
    ]) {
      const { code, stdout, stderr } = await tgctl(["proxy", ...command, ...none], { local: false });
      assert.equal(code, 3, `${command.join(" ")}: ${stderr}`);
      assert.equal(stdout, "");
      assert.match(stderr, /localhost:\d+/);
    }
    const { stderr } = await tgctl(["proxy", "log", "--json", ...none], { local: false });
    const { error } = JSON.parse(stderr) as { error: { kind: string; exitCode: number } };
    assert.equal(error.kind, "unreachable");
    assert.equal(error.exitCode, 3);
  });
});

function lines(output: string): TraceEvent[] {
  return output
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as TraceEvent);
}

/** A dump without the numbers that change while requests pass. */
function settled(dump: unknown): unknown {
  return JSON.parse(
    JSON.stringify(dump, (key, value: unknown) =>
      /^(requestLatency|totalRequests|pendingRequests)$/.test(key) ? 0 : value,
    ),
  );
}
