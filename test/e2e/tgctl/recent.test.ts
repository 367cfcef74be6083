import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { invoke } from "../../../src/cli/fixtures/invoke.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { Upstream } from "../trace/support.ts";

suite("tgctl recent", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  const DENIED = 25;

  before(async () => {
    upstream = await Upstream.start();
    const backends = [{ host: upstream.address }];
    const authorization = { rules: [{ deny: 'request.path == "/admin"' }] };
    const routes = [
      { name: "shop", backends },
      { name: "admin", matches: [{ path: { pathPrefix: "/admin" } }], policies: { authorization }, backends },
    ];
    gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
    const send = async (path: string): Promise<void> => {
      const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`);
      await response.text();
    };
    await send("/cart?token=secret");
    for (let i = 0; i < DENIED; i++) await send("/admin");
    // A record is written after its response has been sent.
    while ((await recent("--route", "admin", "--top", "-o", "json")).stdout.includes(`"count": ${DENIED}`) === false);
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  async function recent(...words: readonly string[]) {
    const env = { TGCTL_ADMIN: gateway.url("admin").replace("http://", "") };
    return await invoke(["recent", ...words], "", env);
  }

  test("prints a line for each request, the newest first, with what decided", async () => {
    const { code, stdout, stderr } = await recent("--limit", "100");
    assert.equal(stderr, "");
    assert.equal(code, 0);
    const [header = "", ...lines] = stdout.trimEnd().split("\n");
    assert.match(header, /^TIME +METHOD +URL +STATUS +DURATION +ROUTE +BACKEND +DECIDED BY$/);
    assert.equal(lines.length, DENIED + 1);
    const denied =
      /^\d\d:\d\d:\d\d\.\d{3} +GET +127\.0\.0\.1\/admin +403 +[\d.]+m?s +default\/admin +authorization failed, at \S+gateway\.yaml:\d+$/;
    assert.match(lines[0] ?? "", denied);
    assert.match(lines.at(-1) ?? "", /GET +127\.0\.0\.1\/cart +200 +[\d.]+m?s +default\/shop +127\.0\.0\.1:\d+$/);
    assert.ok(!stdout.includes("secret"));
  });

  test("--top counts requests that ended alike, those that were not kept included", async () => {
    const { stdout } = await recent("--top", "--errors");
    const [, first = "", total = ""] = stdout.split("\n");
    assert.match(first, new RegExp(`^${DENIED} +96% +403 +default/admin +authorization failed, at .* GET 127`));
    assert.equal(total, `of ${DENIED + 1} requests`);
  });

  test("lines of JSON are whole records; an expression chooses", async () => {
    const { stdout } = await recent("-o", "jsonl", "--where", "response.code == 200");
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      lines.map(({ path, status, route }) => ({ path, status, route })),
      [{ path: "/cart", status: 200, route: "default/shop" }],
    );
  });

  test("--id shows all about one request; an unknown one says how far records reach back", async () => {
    const { stdout: line } = await recent("-o", "jsonl", "--limit", "1");
    const { id, worker, number } = JSON.parse(line) as { id: string; worker: number; number: number };
    for (const name of [id, `${worker}-${number}`]) {
      const { stdout } = await recent("--id", name);
      assert.match(
        stdout,
        /^GET 127\.0\.0\.1\/admin → 403 in [\d.]+m?s · authorization failed, at \S+gateway\.yaml:\d+\n/,
      );
      assert.match(stdout, /^ {2}route +default\/admin$/m);
    }
    const unknown = await recent("--id", "nowhere");
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /^Error: no record of the request "nowhere": records reach back to \d{4}-\S+\n$/);
    for (const other of [["--route", "admin"], ["--errors"], ["--slow"], ["--top"]]) {
      const { code, stderr } = await recent("--id", "nowhere", ...other);
      assert.equal(code, 2);
      assert.match(stderr, /^Error: --id chooses the request alone\n/);
    }
  });

  test("says how far records reach back if there is none, and where an expression is wrong", async () => {
    const none = await recent("--where", "response.code == 418");
    assert.match(none.stdout, /^no such request; records reach back to \d{4}-/);
    const wrong = await recent("--where", "response.code === 1");
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /\^ line 1, column 17/);
  });
});
