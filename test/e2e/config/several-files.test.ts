import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { appRoot } from "../../../src/base/app-root.ts";
import { invoke } from "../../../src/cli/fixtures/invoke.ts";
import { startEcho } from "../../../src/main/run.ts";
import { TestGateway } from "../../helpers/gateway.ts";

const EXAMPLE = join(appRoot, "examples/conf.d");

suite("a configuration of a file and a folder", () => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-conf.d-"));
  let gateway: TestGateway;
  const echo = startEcho(0);

  before(async () => {
    const { port } = (await echo).address() as AddressInfo;
    for (const name of readdirSync(EXAMPLE)) {
      const text = readFileSync(join(EXAMPLE, name), "utf8");
      writeFileSync(join(folder, name), text.replaceAll("9099", String(port)).replaceAll("3000", "0"));
    }
    gateway = await TestGateway.start({ config: { logging: { reasons: "off" } } }, { files: [folder] });
  });
  after(async () => {
    (await echo).close();
    await gateway.stop();
    rmSync(folder, { recursive: true });
  });

  async function status(path: string): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`);
    await response.text();
    return response.status;
  }

  async function admin(path: string): Promise<string> {
    return (await fetch(`${gateway.url("admin")}${path}`)).text();
  }

  /** Makes a change; resolves with the line of the log about it. */
  async function change(make: () => void): Promise<string> {
    const before = gateway.lines.length;
    make();
    const line = () => gateway.lines.slice(before).find(({ message }) => /reload/.test(String(message)));
    await gateway.until(() => line() !== undefined, "the reload");
    return String(line()?.message);
  }

  /** In one step, so that the gateway does not see half of it. */
  function write(name: string, text: string): void {
    writeFileSync(join(folder, `.${name}`), text);
    renameSync(join(folder, `.${name}`), join(folder, name));
  }

  test("serves what all files say, and follows files that appear and go", async () => {
    assert.deepEqual([await status("/shop"), await status("/blog"), await status("/news")], [200, 200, 404]);
    const news = readFileSync(join(folder, "blog.yaml"), "utf8").replaceAll("blog", "news");
    assert.equal(await change(() => write("news.yaml", news)), "configuration reloaded");
    assert.deepEqual([await status("/shop"), await status("/news")], [200, 200]);
    assert.equal(await change(() => rmSync(join(folder, "news.yaml"))), "configuration reloaded");
    assert.deepEqual([await status("/shop"), await status("/news")], [200, 404]);
  });

  test("says where a part is written, what was refused, and in which file", async () => {
    assert.match(await admin("/routes"), /"file": "[^"]*\/shop\.yaml",\s*"line": 3,/);
    const shop = readFileSync(join(folder, "shop.yaml"), "utf8");
    const message = await change(() => write("shop.yaml", `${shop}config: {logging: {reasons: code}}\n`));
    assert.match(message, /shop\.yaml:7:20: error: config\.logging\.reasons: is set in two files; keep one of the two/);
    assert.match(message, /gateway\.yaml:\d+:\d+: config\.logging\.reasons: the first/);
    const { hunks } = JSON.parse(await admin("/config/difference")) as { hunks: { file: string }[] };
    assert.deepEqual(
      hunks.map(({ file }) => file),
      [join(folder, "shop.yaml")],
    );
    assert.equal(await status("/shop"), 200);
    assert.equal(await change(() => write("shop.yaml", shop)), "configuration reloaded");
  });

  test("tgctl judges the files of a folder by the gateway, with their names", async () => {
    const env = { TGCTL_ADMIN: gateway.url("admin") };
    const { stdout } = await invoke(["explain", "--config", folder, "--", "http://localhost/shop"], "", env);
    assert.match(stdout, /shop\.yaml:3/);
    const impact = await invoke(["impact", "--config", folder], "", env);
    assert.deepEqual([impact.code, impact.stderr], [0, ""]);
    const missing = await invoke(["impact", "--config", join(folder, "nowhere")], "", env);
    assert.match(missing.stderr, /nowhere: cannot read the file: it does not exist/);
  });
});
