import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { invokeProgram } from "../../../src/cli/fixtures/invoke.ts";
import type { GatewayImpact } from "../../../src/impact/merge.ts";
import { tracegate } from "../../../src/main/commands.ts";
import type { ExplainRefusal } from "../../../src/rehearsal/explanation.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { Upstream } from "../trace/support.ts";

const SECRET = "hunter2-secret";

function config(upstream: Upstream, admin: object, settings: object = {}): object {
  const backends = [{ host: upstream.address }];
  const routes = [
    { name: "admin", matches: [{ path: { pathPrefix: "/admin" } }], policies: admin, backends },
    { name: "shop", matches: [{ path: { pathPrefix: "/" } }], backends },
  ];
  return { config: settings, binds: [{ port: 0, listeners: [{ name: "web", routes }] }] };
}

suite("the impact of a change on the requests of a gateway", () => {
  let upstream: Upstream;
  let gateway: GatewayProcess;

  before(async () => {
    upstream = await Upstream.start();
    gateway = await GatewayProcess.start(config(upstream, {}));
    for (const [path, key] of [
      ["/cart", ""],
      ["/admin/a", SECRET],
      ["/admin/b", "other"],
    ] as const) {
      const headers = { authorization: `Bearer ${SECRET}`, ...(key !== "" && { "x-api-key": key }) };
      await fetch(`http://127.0.0.1:${gateway.port()}${path}?api_key=${SECRET}`, { headers });
    }
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  async function ask(text: string, query = ""): Promise<{ status: number; body: string }> {
    const response = await fetch(`${gateway.url("admin")}/impact${query}`, { method: "POST", body: text });
    return { status: response.status, body: await response.text() };
  }

  async function impactOf(admin: object): Promise<GatewayImpact> {
    const { status, body } = await ask(JSON.stringify(config(upstream, admin)), "?last=1h");
    assert.equal(status, 200, body);
    assert.ok(!body.includes(SECRET), body);
    return JSON.parse(body) as GatewayImpact;
  }

  test("nothing changes with the same configuration, and nothing of another one is applied", async () => {
    const same = await impactOf({});
    assert.deepEqual(same.classes.unchanged, { requests: 3, samples: 3 });
    assert.ok(Date.parse(same.since ?? "") <= Date.now());
    const denied = await impactOf({ authorization: { rules: [{ deny: "true" }] } });
    assert.deepEqual(denied.classes.refused, { requests: 2, samples: 2 });
    assert.deepEqual(
      denied.changes.map(({ after: { policy, status, origin } }) => [
        policy,
        status,
        origin?.place?.line !== undefined,
      ]),
      [["authorization", 403, true]],
    );
    assert.equal((await fetch(`http://127.0.0.1:${gateway.port()}/admin/a`)).status, 200);
  });

  test("tracegate check asks the gateway, or reads its samples from a file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tracegate-impact-"));
    try {
      const write = async (name: string, text: string): Promise<string> => {
        await writeFile(join(folder, name), text);
        return join(folder, name);
      };
      const old = await write("old.yaml", JSON.stringify(config(upstream, {})));
      const changed = config(upstream, { authorization: { rules: [{ deny: 'request.path == "/admin/b"' }] } });
      const file = await write("new.yaml", JSON.stringify(changed));
      const samples = await write("samples.jsonl", await (await fetch(`${gateway.url("admin")}/samples`)).text());
      const check = async (...words: readonly string[]) =>
        invokeProgram(tracegate, ["check", "-f", file, "--fail-on", "refused", "-o", "json", "--impact", ...words]);
      for (const from of [[gateway.url("admin")], [samples, "--before", old]]) {
        const { code, stdout, stderr } = await check(...from);
        assert.equal(code, 1, stderr);
        const { diagnostics, impact } = JSON.parse(stdout);
        assert.deepEqual(diagnostics, [], "the samples were taken with the old configuration");
        const { changes } = impact as GatewayImpact;
        const refused = changes.filter((change) => change.class === "refused");
        assert.deepEqual(
          refused.map(({ samples: count, examples }) => [count, examples[0]?.target]),
          [[1, "/admin/b?api_key=<redacted>"]],
        );
      }
      const gone = await check("http://127.0.0.1:9");
      assert.match(gone.stderr, /127\.0\.0\.1:9/);
      assert.notEqual(gone.code, 0);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("a secret is compared with the values that the new configuration wants, though nobody can read it", async () => {
    const routes = (value: string): string => {
      const backends = [{ host: upstream.address }];
      const wanted = { path: { pathPrefix: "/admin" }, headers: [{ name: "x-api-key", value: { exact: value } }] };
      const text = {
        binds: [
          {
            port: 0,
            listeners: [
              {
                name: "web",
                routes: [
                  { name: "shop", backends },
                  { name: "keyed", matches: [wanted], backends },
                ],
              },
            ],
          },
        ],
      };
      return JSON.stringify(text);
    };
    const moved = async (value: string): Promise<unknown> => {
      const { body } = await ask(routes(value));
      const { changes } = JSON.parse(body) as GatewayImpact;
      return changes
        .filter(({ after }) => after.route?.endsWith("keyed"))
        .map(({ class: name, examples }) => [name, examples.map(({ target }) => target.split("?")[0])]);
    };
    assert.deepEqual(await moved(SECRET), [["movedRoute", ["/admin/a"]]]);
    assert.deepEqual(await moved("nobody has it"), []);
  });

  test("a configuration that is not valid: every problem with its place", async () => {
    const { status, body } = await ask("binds:\n- port: 80\n  listners: []\n", "?name=new.yaml");
    assert.equal(status, 400);
    const { error } = JSON.parse(body) as ExplainRefusal;
    assert.equal(error.code, "configuration");
    assert.match(error.message, /new\.yaml:3:3.*listners/s);
    const wrong = await ask("", "?last=soon");
    assert.deepEqual([wrong.status, wrong.body], [400, 'invalid last "soon": expected a duration such as 30s\n']);
  });

  test("a gateway that takes no samples says so", async (t) => {
    const other = await GatewayProcess.start(config(upstream, {}, { recorder: { samples: 0 } }));
    t.after(() => other.stop());
    const response = await fetch(`${other.url("admin")}/impact`, { method: "POST", body: "binds: []" });
    assert.equal(response.status, 400);
    assert.match(await response.text(), /config\.recorder\.samples is 0/);
  });
});
