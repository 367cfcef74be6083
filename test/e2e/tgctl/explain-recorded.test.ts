import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { invoke } from "../../../src/cli/fixtures/invoke.ts";
import type { RecordAnswer, RequestRecord } from "../../../src/recorder/records.ts";
import type { Explanation } from "../../../src/rehearsal/explanation.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { closedPort, Upstream } from "../trace/support.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

suite("what happened to a request", () => {
  let upstream: Upstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await Upstream.start();
    const backends = [{ host: upstream.address }];
    const authorization = { rules: [{ deny: 'request.headers["x-role"] == "guest"' }] };
    const routes = [
      { name: "shop", matches: [{ path: { pathPrefix: "/cart" } }], backends },
      { name: "admin", matches: [{ path: { pathPrefix: "/admin" } }], policies: { authorization }, backends },
      {
        name: "down",
        matches: [{ path: { exact: "/down" } }],
        backends: [{ host: `127.0.0.1:${await closedPort()}` }],
      },
    ];
    gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ name: "web", routes }] }] });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  /** The record of a request, once there is one. */
  async function recorded(path: string, headers: Readonly<Record<string, string>> = {}): Promise<RequestRecord> {
    const before = (await newest())?.number ?? 0;
    const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers });
    await response.text();
    for (;;) {
      const record = await newest();
      if (record !== undefined && record.number > before) return record;
    }
  }

  async function newest(): Promise<RequestRecord | undefined> {
    const response = await fetch(`${gateway.url("admin")}/requests?limit=1`);
    return ((await response.json()) as RecordAnswer).records[0];
  }

  async function explain(...words: readonly string[]) {
    return await invoke(["explain", ...words], "", { TGCTL_ADMIN: gateway.url("admin").replace("http://", "") });
  }

  async function treeOf(path: string, headers = {}, ...words: readonly string[]): Promise<string[]> {
    const { worker, number } = await recorded(path, headers);
    const { code, stdout, stderr } = await explain(`${worker}-${number}`, ...words);
    assert.deepEqual([code, stderr], [0, ""]);
    const file = join(gateway.folder, "gateway.yaml");
    const lines = readFileSync(file, "utf8").split("\n");
    // What is written at a place, instead of the place.
    const shown = stdout.replaceAll(
      new RegExp(`${file}:(\\d+)`, "g"),
      (_, line) => lines[Number(line) - 1]?.trim() ?? "",
    );
    return shown.trimEnd().split("\n");
  }

  test("the tree of what decided, found by the number of the record, and what follows from it", async () => {
    const guest = { "x-role": "guest" };
    const [title, about, follows, ...steps] = await treeOf("/admin?token=secret", guest);
    assert.equal(title, "GET 127.0.0.1/admin → 403 · route default/admin · authorization failed");
    assert.match(about ?? "", /^at \d{4}-\S+ · record \d+-\d+ · id \S+$/);
    assert.equal(follows, 'it follows that `request.headers["x-role"] == "guest"` is true');
    assert.deepEqual(steps.slice(0, -1), [
      "✓ request GET 127.0.0.1/admin  not recorded: query, header fields, the client's address",
      "✓ listener web  any host  - name: web",
      "✓ route admin  the only route that matches  - name: admin",
      "    ✗ route shop  path: /admin is not under prefix /cart  - name: shop",
      "    ✗ route down  path: /admin is not exactly /down  - name: down",
      "✗ policy authorization  deny rules[0] is true  authorization:",
      '    ? rule deny request.headers["x-role"] == "guest" → assumed true; not known: the field x-role  - deny: request.headers["x-role"] == "guest"',
    ]);
    assert.match(steps.at(-1) ?? "", /^✗ response 403 {2}by the gateway: authorization failed, after [\d.]+ m?s$/);
    const supplied = await treeOf("/admin", guest, "--", "-H", "x-role: guest");
    assert.ok(!supplied.some((line) => line.startsWith("it follows")));
    assert.ok(supplied.some((line) => line.startsWith('    ✓ rule deny request.headers["x-role"] == "guest" → true')));
    const wrong = await treeOf("/admin", guest, "--", "-H", "x-role: admin");
    assert.match(
      wrong.join("\n"),
      /\n✗ policy authorization {2}authorization failed; of the route; with what is known it would pass/,
    );
  });

  test("what the backend did: it responded, or could not be reached", async () => {
    const [served, down] = [await treeOf("/cart"), await treeOf("/down")];
    assert.match(served.at(-2) ?? "", /^✓ endpoint \S+ {2}called after [\d.]+ ms, responded [\d.]+ m?s later$/);
    assert.match(served.at(-1) ?? "", /^✓ response 200 {2}by the backend, after [\d.]+ m?s$/);
    assert.match(down.at(-2) ?? "", /^✗ endpoint \S+ {2}called after [\d.]+ ms, upstream call failed {2}- host: 127/);
  });

  test("by a trace id or traceparent, of several requests the newest", async () => {
    const parent = `00-${TRACE}-00f067aa0ba902b7-01`;
    await recorded("/cart", { traceparent: parent });
    const last = await recorded("/none", { traceparent: parent });
    for (const id of [TRACE, parent, last.id ?? ""]) {
      const { stdout } = await explain("-o", "json", id);
      const { record, alike, generation, outcomes } = JSON.parse(stdout) as Explanation;
      assert.deepEqual([record, generation, outcomes.length], [last, 1, 1]);
      assert.equal(alike, id === last.id ? undefined : 2);
    }
    assert.match((await explain(TRACE)).stdout, /\n2 records have this id; this is the newest, and tgctl recent --id/);
  });

  test("an id without a record: since when there are records", async () => {
    const { code, stderr } = await explain("nowhere");
    assert.equal(code, 1);
    assert.match(stderr, /^Error: no record of the request "nowhere": records reach back to \d{4}-\S+\n$/);
  });

  test("mistakes on the command line", async () => {
    const mistakes: [words: readonly string[], message: RegExp][] = [
      [[], /explain needs a request after --, or the id of one that is over\nTry: tgctl explain -- /],
      [["gateway/web"], /gateway\/web is not the id of a request/],
      [["http://shop.example/"], /a request goes after --\nTry: tgctl explain -- http:\/\/shop\.example\/\n/],
      [["a", "gateway/web", "c"], /what is c\?/],
      [["a", "--config", "new.yaml"], /--config is for a request after --/],
      [["a", "--assume", "extAuthz=x"], /extAuthz cannot be "x"/],
      [["a", "--", "-X", "POST"], /the record has method, URL and version/],
      [["a", "--", "--unknown"], /unknown option --unknown of the request/],
      [["a", "gateway/web", "--", "http://a"], /with a request after --, only the resource goes before it/],
    ];
    for (const [words, message] of mistakes) {
      const { code, stderr } = await explain(...words);
      assert.equal(code, 2, words.join(" "));
      assert.match(stderr, message);
    }
  });

  test("the admin server says what is wrong with a question", async () => {
    const ask = async (question: object): Promise<[number, unknown]> => {
      const body = JSON.stringify(question);
      const response = await fetch(`${gateway.url("admin")}/explain`, { method: "POST", body });
      return [response.status, ((await response.json()) as { error: { code: string } }).error.code];
    };
    assert.deepEqual(await ask({ id: "nowhere" }), [400, "record"]);
    assert.deepEqual(await ask({ id: 1 }), [400, "question"]);
    assert.deepEqual(await ask({ id: "nowhere", config: "{}" }), [400, "question"]);
    assert.deepEqual(await ask({ id: "nowhere", request: { url: "http://a" } }), [400, "question"]);
    assert.deepEqual(await ask({ id: "nowhere", request: { query: "?a" } }), [400, "question"]);
  });

  test("a reload: which configuration was in effect", async () => {
    const { worker, number } = await recorded("/cart");
    assert.equal(await gateway.reconfigure({ binds: [] }), "applied");
    const { stdout } = await explain(`${worker}-${number}`);
    assert.match(stdout, /\nconfiguration 1 was in effect then; it is explained with 2, which is in effect now\n/);
    assert.match(stdout, /\n✓ route default\/shop\n/);
  });
});

test("an id whose record has been overwritten: since when there are records of all requests", async () => {
  const policies = { directResponse: { status: 204 } };
  const gateway = await TestGateway.start({
    // A ring of 256 records.
    config: { workerThreads: 1, recorder: { recent: 65_536 } },
    binds: [{ port: 0, listeners: [{ routes: [{ policies }] }] }],
  });
  try {
    const env = { TGCTL_ADMIN: gateway.url("admin").replace("http://", "") };
    for (let i = 0; i < 300; i++) await fetch(`http://127.0.0.1:${gateway.port()}/`);
    for (const words of [
      ["explain", "0-1"],
      ["recent", "--id", "0-1"],
    ]) {
      const { code, stderr } = await invoke(words, "", env);
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^Error: no record of the request "0-1": records of all requests reach back to \S+Z, those of failed and slow ones to \S+Z\n$/,
      );
    }
  } finally {
    await gateway.stop();
  }
});
