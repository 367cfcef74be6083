import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { TRACEGATE } from "../../helpers/programs.ts";

const OLD = "config:\n  logging:\n    filter: response.code >= 500 # errors\nbinds: []\n";
const NEW = "frontendPolicies:\n  accessLog:\n    filter: response.code >= 500 # errors\nbinds: []\n";

async function run(...args: string[]): Promise<{ code: number | null; out: string }> {
  const child = spawn(TRACEGATE, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [out] = await Promise.all([text(child.stdout), once(child, "close")]);
  return { code: child.exitCode, out };
}

suite("tracegate migrate", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "tracegate-migrate-"));
  });
  after(() => rm(folder, { recursive: true }));

  test("check names the fields, migrate moves them, check passes; a second run changes nothing", async () => {
    const real = join(folder, "real.yaml");
    const file = join(folder, "link.yaml");
    await writeFile(real, OLD);
    await chmod(real, 0o640);
    await symlink(real, file);
    const checked = await run("check", "-f", file);
    assert.equal(checked.code, 0);
    assert.match(checked.out, /:3:5: warning: config\.logging\.filter: .*tracegate migrate -f/);
    assert.deepEqual(await run("migrate", "-f", file), { code: 0, out: `Migrated config: ${file}\n` });
    assert.equal(await readFile(real, "utf8"), NEW);
    assert.equal((await stat(real)).mode & 0o777, 0o640);
    assert.equal((await run("check", "-f", file)).code, 0);
    assert.deepEqual(await run("migrate", "-f", file), { code: 0, out: `Nothing to migrate: ${file}\n` });
    assert.deepEqual((await readdir(folder)).sort(), ["link.yaml", "real.yaml"]);
  });

  test("a file that cannot be migrated or read is reported and left unchanged", async () => {
    const file = join(folder, "bad.yaml");
    await writeFile(file, "config: {tracing: {}}\n");
    assert.deepEqual(await run("migrate", "-f", file), {
      code: 1,
      out: `${file}:1:10: error: config.tracing.otlpEndpoint: is required: where traces are sent, such as http://collector:4317\n`,
    });
    assert.equal(await readFile(file, "utf8"), "config: {tracing: {}}\n");
    const missing = join(folder, "missing.yaml");
    const { code, out } = await run("migrate", "-f", missing);
    assert.deepEqual([code, out], [1, `${missing}: error: cannot read the file: it does not exist\n`]);
  });
});
