import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, type TestContext, test } from "node:test";
import { bundleWebView } from "../../../scripts/bundle/web-view.ts";
import { invoke } from "../../../src/cli/fixtures/invoke.ts";
import { exchangeRaw } from "../../helpers/admin/raw-request.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { TGCTL } from "../../helpers/programs.ts";
import { until } from "../../helpers/until.ts";

const CONFIG = {
  binds: [{ port: 0, listeners: [{ routes: [{ name: "shop", policies: { directResponse: { status: 200 } } }] }] }],
};

suite("tgctl ui", () => {
  let gateway: TestGateway;
  let home: string;
  before(async () => {
    // A run of all tests has it already, in the package.
    await bundleWebView();
    home = await mkdtemp(join(tmpdir(), "tgctl-ui-"));
    gateway = await TestGateway.start(CONFIG);
  });
  after(async () => {
    await gateway.stop();
    await rm(home, { recursive: true });
  });

  /** Starts the command, and resolves with the address that it prints. */
  async function start(t: TestContext, ...words: readonly string[]): Promise<{ child: ChildProcess; url: string }> {
    const admin = gateway.url("admin").replace("http://", "");
    const env = { PATH: `${home}:${process.env.PATH}`, HOME: home, TGCTL_ADMIN: admin };
    const child = spawn(TGCTL, ["ui", "--local", ...words], { env, stdio: ["ignore", "pipe", "inherit"] });
    t.after(() => child.kill("SIGKILL"));
    const [text] = await once(child.stdout.setEncoding("utf8"), "data");
    const [url = ""] = String(text).split("\n");
    return { child, url };
  }

  async function end(child: ChildProcess): Promise<unknown> {
    const exit = once(child, "exit");
    child.kill("SIGINT");
    return (await exit)[0];
  }

  test("shows the gateway at the same secret address each time, until Ctrl-C", async (t) => {
    const { child, url } = await start(t, "--no-open");
    assert.match(url, /^http:\/\/localhost:2\d{4}\/[\w-]{27}\/ui\/$/);
    const page = await fetch(url);
    assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'none'/);
    assert.match(await page.text(), /<title>tracegate<\/title>/);
    const overview = await fetch(new URL("../overview", url));
    assert.equal(overview.headers.get("cache-control"), "no-store");
    const { listeners } = (await overview.json()) as { listeners: readonly { routes: number }[] };
    assert.deepEqual(
      listeners.map(({ routes }) => routes),
      [1],
    );
    assert.equal(await end(child), 130);
    await assert.rejects(fetch(url));
    assert.equal((await start(t, "--no-open")).url, url);
    assert.notEqual((await start(t, "--no-open")).url, url, "the port is in use");
  });

  test("answers and refuses as the gateway does", async (t) => {
    const { url } = await start(t, "--no-open");
    const explained = await fetch(new URL("../explain", url), {
      method: "POST",
      body: JSON.stringify({ request: { url: "http://shop.example/cart" } }),
    });
    assert.match(await explained.text(), /"route":"default\/shop"/);
    const gone = await fetch(new URL("../explain", url), { method: "POST", body: JSON.stringify({ id: "9-9" }) });
    assert.equal(gone.status, 400);
    assert.match(await gone.text(), /"code":"record"/);
    const wrong = await fetch(new URL("../requests?where=1%20%2B", url));
    assert.deepEqual([wrong.status, (await wrong.text()).slice(0, 7)], [400, "where: "]);
    assert.equal((await fetch(new URL("../requests/9-9", url))).status, 404);
    assert.equal((await fetch(new URL("../requests?nonsense=1", url))).status, 400);
    const trace = (query: string) => fetch(new URL(`../debug/trace?${query}`, url));
    assert.equal((await trace("reveal=true")).status, 400);
    assert.match(await (await trace("expression=1%20%2B")).text(), /^trace stream returned 400: /);
    const events = await trace("expression=true");
    await fetch(`http://127.0.0.1:${gateway.port()}/next`);
    assert.match(await events.text(), /"path":"\/next"[\s\S]*requestFinished/);
  });

  test("the browser is led to the address by a link that works once", async (t) => {
    const said = join(home, "opened");
    await writeFile(join(home, "xdg-open"), `#!/bin/sh\nprintf %s "$1" > ${said}.new && mv ${said}.new ${said}\n`);
    await chmod(join(home, "xdg-open"), 0o755);
    const { url } = await start(t);
    await until(() => existsSync(said));
    const link = await readFile(said, "utf8");
    assert.ok(!link.includes(new URL(url).pathname.split("/")[1] ?? ""), "other users see the command line");
    assert.equal((await fetch(link)).url, url);
    assert.equal((await fetch(link)).status, 404);
  });

  test("the view may probe with its token: the gateway takes that for a question of tgctl", async (t) => {
    const { url } = await start(t, "--no-open");
    const { origin } = new URL(url);
    const post = (path: string, headers: Readonly<Record<string, string>>) =>
      fetch(new URL(`..${path}`, url), { method: "POST", headers });
    const { token } = (await (await post("/page-token", { origin })).json()) as { token: string };
    const allowed = await post("/probe/nothing", { origin, "x-tracegate-page-token": token });
    assert.deepEqual(
      [allowed.status, await allowed.text()],
      [404, 'no backend has the key "nothing"; /backends lists them'],
    );
    assert.equal((await post("/probe/nothing", { origin })).status, 403);
    assert.equal((await post("/page-token", {})).status, 403);
    assert.equal((await post("/page-token", { origin: "http://localhost:3000" })).status, 403);
  });

  test("nobody else gets an answer, and nothing else can be changed", async (t) => {
    const { url } = await start(t, "--no-open");
    const { host, origin, pathname } = new URL(url);
    const [, secret = ""] = pathname.split("/");
    for (const path of ["/", "/ui/", "/overview", `/${secret.slice(1)}/overview`, `/${secret}x/overview`])
      assert.equal((await fetch(`${origin}${path}`)).status, 404, path);
    const send = (path: string, headers: Readonly<Record<string, string>>) =>
      exchangeRaw(
        host,
        `GET /${secret}${path} HTTP/1.1\r\nconnection: close\r\n${Object.entries({ host, ...headers })
          .map(([name, value]) => `${name}: ${value}\r\n`)
          .join("")}\r\n`,
      );
    assert.match(await send("/overview", {}), /^HTTP\/1\.1 200 /);
    assert.match(await send("/overview", { host: "evil.example" }), /^HTTP\/1\.1 403 /);
    assert.match(await send("/overview", { origin: "http://evil.example" }), /^HTTP\/1\.1 403 /);
    assert.match(await send("/overview", { "sec-fetch-site": "cross-site" }), /^HTTP\/1\.1 403 /);
    for (const path of ["/quitquitquit", "/config_dump", "/debug/pprof/heap"])
      assert.equal((await fetch(new URL(`..${path}`, url), { method: "POST" })).status, 404, path);
    // The view may change log levels, but only with its token.
    const withoutToken = await fetch(new URL("../logging?level=debug", url), { method: "POST", headers: { origin } });
    assert.equal(withoutToken.status, 403);
  });

  test("a gateway that has gone is reported, and asked again", async (t) => {
    const brief = await TestGateway.start(CONFIG);
    const env = { PATH: process.env.PATH, HOME: home, TGCTL_ADMIN: brief.url("admin").replace("http://", "") };
    const child = spawn(TGCTL, ["ui", "--local", "--no-open"], { env, stdio: ["ignore", "pipe", "inherit"] });
    t.after(() => child.kill("SIGKILL"));
    const [text] = await once(child.stdout.setEncoding("utf8"), "data");
    await brief.stop();
    const lost = await fetch(new URL("../overview", String(text).split("\n")[0]));
    assert.equal(lost.status, 503);
    assert.match(await lost.text(), /^no admin server reached at .*connection refused/);
  });

  test("without a gateway, the command fails and says what to do", async () => {
    const { code, stderr } = await invoke(["ui", "--local", "--proxy-admin-port", "1"], "", { HOME: home });
    assert.equal(code, 3);
    assert.match(stderr, /^Error: no admin server reached at http:\/\/localhost:1: .*\nTry: start a proxy/);
  });
});
