import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { invoke } from "../../../src/cli/fixtures/invoke.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { call, Upstream } from "../trace/support.ts";

suite("tgctl trace --follow", () => {
  let upstream: Upstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await Upstream.start();
    const backends = [{ host: upstream.address }];
    const authorization = { rules: [{ deny: 'request.path == "/admin"' }] };
    gateway = await TestGateway.start({
      binds: [{ port: 0, listeners: [{ routes: [{ name: "shop", policies: { authorization }, backends }] }] }],
    });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  /** Follows while requests for these paths are sent again and again. */
  async function follow(paths: readonly string[], ...words: readonly string[]) {
    const env = { TGCTL_ADMIN: gateway.url("admin").replace("http://", "") };
    let over = false;
    const outcome = invoke(["trace", "--follow", ...words], "", env).finally(() => {
      over = true;
    });
    while (!over) for (const path of paths) await call(gateway.port(), { path });
    return outcome;
  }

  test("prints a line for each request with its outcome and what decided it", async () => {
    const { code, stdout, stderr } = await follow(["/cart", "/admin"], "--count", "4");
    assert.deepEqual({ code, stderr }, { code: 0, stderr: "4 requests followed\n" });
    const lines = stdout.trimEnd().split("\n");
    assert.equal(lines.length, 4);
    const shop = /^\d\d:\d\d:\d\d\.\d{3} {2}#\d {2}GET http:\/\/a\.test\/cart → 200 in [\d.]+ (?:µs|ms|s) · route shop/;
    const denied =
      /^\S+ {2}#\d {2}GET http:\/\/a\.test\/admin → 403 in [\d.]+ (?:µs|ms|s) · route shop · .*request\.path == "\/admin"/;
    for (const [index, line] of lines.entries()) {
      assert.match(line, /\/admin/.test(line) ? denied : shop);
      assert.ok(line.includes(`#${index + 1} `), "numbered by their start, one after another here");
    }
  });

  test("--where chooses by the outcome, --expression by the request", async () => {
    const { stdout } = await follow(["/cart", "/admin"], "--count", "2", "--where", "response.code == 403");
    assert.equal(stdout.match(/\/admin → 403/g)?.length, 2, stdout);
    assert.ok(!stdout.includes("/cart"));
    const other = await follow(["/cart", "/admin"], "--count", "2", "--expression", 'request.path == "/cart"');
    assert.equal(other.stdout.match(/\/cart → 200/g)?.length, 2, other.stdout);
  });

  test("-o jsonl prints each event with the number of its request, and the end", async () => {
    const { stdout, stderr } = await follow(["/cart"], "--count", "2", "-o", "jsonl");
    assert.equal(stderr, "");
    const events = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { request: number | null; message: { type: string } });
    assert.equal(events[0]?.message.type, "requestStarted");
    assert.deepEqual([...new Set(events.map(({ request }) => request))].slice(0, 2), [1, 2]);
    assert.equal(events.filter(({ message }) => message.type === "requestFinished").length, 2);
    assert.equal(events.at(-1)?.message.type, "followEnded");
  });

  test("mistakes of the command line are usage errors", async () => {
    const wrong: readonly (readonly [readonly string[], RegExp])[] = [
      [["--follow", "--where", "response.code === 1"], /\^ line 1, column 17/],
      [["--where", "true"], /--where requires --follow/],
      [["--follow", "--reveal"], /--follow does not accept --reveal/],
      [["--follow", "--for", "2h"], /invalid for "2h": expected a duration such as 30s, at most 1h/],
    ];
    const env = { TGCTL_ADMIN: gateway.url("admin").replace("http://", "") };
    for (const [words, message] of wrong) {
      const { code, stderr } = await invoke(["trace", ...words], "", env);
      assert.equal(code, 2, words.join(" "));
      assert.match(stderr, message);
    }
  });
});
