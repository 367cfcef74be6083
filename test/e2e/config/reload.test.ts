import assert from "node:assert/strict";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { stringify } from "yaml";
import { TestGateway } from "../../helpers/gateway.ts";

/** A configuration that responds to every request with `body`; further binds respond with the name of their port. */
function answering(body: string, others: object = {}): string {
  return stringify({
    config: { adminAddr: "127.0.0.1:0", statsAddr: "127.0.0.1:0", readinessAddr: "off", workerThreads: 1 },
    ...others,
    binds: [{ port: 0, listeners: [{ routes: [answer(body)] }] }],
  });
}

function answer(body: string): object {
  return { policies: { directResponse: { status: 200, body } } };
}

async function get(gateway: TestGateway, bind?: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${gateway.port(bind)}/`);
  return response.text();
}

function reloads(gateway: TestGateway): number {
  return gateway.lines.filter((line) => line.message === "configuration reloaded").length;
}

async function afterReload(gateway: TestGateway, change: () => Promise<unknown>): Promise<void> {
  const before = reloads(gateway);
  await change();
  await gateway.until(() => reloads(gateway) > before, "the reload");
}

test("a file that is written in place, replaced, or removed and created again is reloaded", async () => {
  await using gateway = await TestGateway.start(answering("first"));
  assert.equal(await get(gateway), "first");

  await afterReload(gateway, () => writeFile(gateway.file, answering("written")));
  assert.equal(await get(gateway), "written");

  const aside = join(gateway.folder, "next.yaml");
  await writeFile(aside, answering("renamed over"));
  await afterReload(gateway, () => rename(aside, gateway.file));
  assert.equal(await get(gateway), "renamed over");

  await rm(gateway.file);
  await afterReload(gateway, () => writeFile(gateway.file, answering("made again")));
  assert.equal(await get(gateway), "made again");
});

test("a mounted ConfigMap, whose link ..data is swapped, is reloaded", async () => {
  await using gateway = await TestGateway.start(answering("unused"));
  const mount = join(gateway.folder, "mount");
  const version = async (name: string, body: string): Promise<void> => {
    await mkdir(join(mount, name), { recursive: true });
    await writeFile(join(mount, name, "gateway.yaml"), answering(body));
    await symlink(name, join(mount, "..data_tmp"));
    await rename(join(mount, "..data_tmp"), join(mount, "..data"));
  };
  await version("..v1", "v1");
  await rm(gateway.file);
  await afterReload(gateway, () => symlink(join(mount, "..data", "gateway.yaml"), gateway.file));
  assert.equal(await get(gateway), "v1");
  await afterReload(gateway, () => version("..v2", "v2"));
  assert.equal(await get(gateway), "v2");
});

test("an invalid file leaves the old configuration in effect, and log, status and metrics say why; a valid one recovers", async () => {
  await using gateway = await TestGateway.start(answering("good"));
  const status = async (): Promise<{ lastError: { message: string; diagnostics: object[] } | null }> =>
    (await fetch(`${gateway.url("admin")}/config/status`)).json() as never;
  const synchronized = async (): Promise<string | undefined> =>
    /^tracegate_config_synchronized (\d)$/m.exec(await (await fetch(`${gateway.url("stats")}/metrics`)).text())?.[1];
  assert.equal(await synchronized(), "1");

  const bad = `${answering("bad")}colour: blue\n`;
  assert.equal(await gateway.reconfigure(bad), "rejected");
  assert.equal(await get(gateway), "good");
  assert.equal(await synchronized(), "0");
  const { lastError } = await status();
  const line = bad.split("\n").length - 1;
  assert.match(lastError?.message ?? "", new RegExp(`gateway\\.yaml:${line}:1: error: colour: unknown field`));
  const [diagnostic] = lastError?.diagnostics ?? [];
  assert.deepEqual(
    { ...diagnostic, expected: undefined },
    {
      severity: "error",
      file: gateway.file,
      line,
      column: 1,
      path: "colour",
      message: "unknown field",
      expected: undefined,
      source: "colour: blue",
    },
  );
  assert.ok(gateway.lines.some((each) => /^Failed to reload config: .*unknown field/s.test(String(each.message))));

  assert.equal(await gateway.reconfigure(answering("better")), "applied");
  assert.equal(await get(gateway), "better");
  assert.equal(await synchronized(), "1");
  assert.equal((await status()).lastError, null);
});

test("a bind that the file adds opens, and closes when the file removes it", async () => {
  await using gateway = await TestGateway.start(answering("first"));
  await using other = await TestGateway.start(answering("lends its port"));
  const port = other.port();
  await other.stop();
  const gateways = { gateways: { more: { port } }, routes: [{ gateways: "more", ...answer("more") }] };
  assert.equal(await gateway.reconfigure(answering("first", gateways)), "applied");
  assert.equal(await get(gateway, `bind/${port}`), "more");
  assert.equal(await get(gateway, "bind/0"), "first");
  assert.equal(await gateway.reconfigure(answering("alone")), "applied");
  assert.equal(await get(gateway, "bind/0"), "alone");
  await assert.rejects(fetch(`http://127.0.0.1:${port}/`));
});
