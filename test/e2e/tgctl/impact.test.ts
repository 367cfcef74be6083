import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { invoke, type Outcome } from "../../../src/cli/fixtures/invoke.ts";
import type { GatewayImpact } from "../../../src/impact/merge.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { Upstream } from "../trace/support.ts";

suite("tgctl impact", () => {
  let folder: string;
  let upstream: Upstream;
  let gateway: GatewayProcess;

  const config = (admin: object, backend = upstream.address): object => {
    const backends = [{ host: backend }];
    const routes = [
      {
        name: "admin",
        matches: [{ path: { pathPrefix: "/admin" } }],
        policies: admin,
        backends: [{ host: upstream.address }],
      },
      { name: "shop", matches: [{ path: { pathPrefix: "/" } }], backends },
    ];
    return { binds: [{ port: 0, listeners: [{ name: "web", routes }] }] };
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "tracegate-impact-"));
    upstream = await Upstream.start();
    gateway = await GatewayProcess.start(config({}));
    for (const path of ["/cart", "/cart", "/admin/users"]) await fetch(`http://127.0.0.1:${gateway.port()}${path}`);
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
    await rm(folder, { recursive: true });
  });

  async function impact(config: object, ...words: readonly string[]): Promise<Outcome> {
    const file = join(folder, "new.yaml");
    await writeFile(file, JSON.stringify(config));
    const TGCTL_ADMIN = gateway.url("admin").replace("http://", "");
    const outcome = await invoke(["impact", "--config", file, ...words], "", { TGCTL_ADMIN });
    return { ...outcome, stdout: outcome.stdout.replaceAll(`${folder}/`, "") };
  }

  test("says who is refused, by what, and fails only for changes that it was told to fail on", async () => {
    const denying = config({ authorization: { rules: [{ deny: "true" }] } });
    const { code, stdout, stderr } = await impact(denying);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /1 is refused with 403 by authorization at new\.yaml:1 on the route default\/admin /);
    assert.match(stdout, /GET 127\.0\.0\.1:\d+\/admin\/users\n/);
    assert.match(stdout, /2 do not change/);
    assert.equal((await impact(denying, "--fail-on", "granted,moved")).code, 0);
    assert.equal((await impact(denying, "--fail-on", "granted,refused")).code, 1);
  });

  test("says what refused until now, and where the file in effect has it; examples are different ones", async () => {
    await using denying = await GatewayProcess.start(config({ authorization: { rules: [{ deny: "true" }] } }));
    for (const path of ["/admin/a", "/admin/a", "/admin/b"])
      await fetch(`http://127.0.0.1:${denying.port()}${path}`).then((response) => response.text());
    const file = join(folder, "new.yaml");
    await writeFile(file, JSON.stringify(config({})));
    const TGCTL_ADMIN = denying.url("admin").replace("http://", "");
    const { stdout } = await invoke(["impact", "--config", file], "", { TGCTL_ADMIN });
    assert.match(
      stdout,
      /3 are no longer refused with 403 by authorization at [^\s:]+\.\w+:\d+ on the route \S+: they go to /,
    );
    assert.deepEqual(stdout.match(/\/admin\/\w/g), ["/admin/a", "/admin/b"]);
  });

  test("as JSON, and only for the requests of some time", async () => {
    const moved = config({}, "127.0.0.1:9");
    const { code, stdout } = await impact(moved, "-o", "json");
    assert.equal(code, 0);
    const { classes, samples } = JSON.parse(stdout) as GatewayImpact;
    assert.deepEqual([classes.movedBackend.samples, samples], [2, 3]);
    const none = await impact(moved, "--last", "0s");
    assert.deepEqual([none.code, none.stdout], [0, "There are no samples to judge by.\n"]);
  });

  test("wrong words and configurations", async () => {
    const wrong = await impact({ binds: [{ port: 80, listners: [] }] });
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /the configuration is not valid\n.*new\.yaml:1:\d+.*listners/s);
    assert.match((await impact(config({}), "--fail-on", "better")).stderr, /--fail-on better: no such change/);
    assert.match((await impact(config({}), "--last", "soon")).stderr, /invalid last "soon"/);
    assert.match(
      (await invoke(["impact", "--local"])).stderr,
      /impact needs either a new configuration or changed objects/,
    );
  });
});
