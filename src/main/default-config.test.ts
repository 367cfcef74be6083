import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { createDefaultConfig, defaultConfigPath, NoConfigError } from "./default-config.ts";

suite("the default configuration", () => {
  let folder: string;
  const absent = "/no/such/folder";
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "tracegate-default-"));
  });
  after(() => rmSync(folder, { recursive: true }));

  test("the mounted folder comes before the user's own", () => {
    assert.equal(defaultConfigPath({ HOME: "/users/me" }, folder), join(folder, "config.yaml"));
    assert.equal(defaultConfigPath({ HOME: "/users/me", XDG_CONFIG_HOME: "/x" }, absent), "/x/tracegate/config.yaml");
    assert.equal(defaultConfigPath({ HOME: "/users/me" }, absent), "/users/me/.config/tracegate/config.yaml");
    assert.equal(
      defaultConfigPath({ HOME: "/users/me", XDG_CONFIG_HOME: "relative" }, absent),
      "/users/me/.config/tracegate/config.yaml",
    );
  });

  test("a mounted configuration needs no folder that can be written", () => {
    const mounted = mkdtempSync(join(folder, "mounted-"));
    writeFileSync(join(mounted, "config.yaml"), "binds: []");
    chmodSync(mounted, 0o555);
    assert.equal(defaultConfigPath({ TRACEGATE_ENV: "container" }, mounted), join(mounted, "config.yaml"));
    chmodSync(mounted, 0o755);
  });

  test("no default where it would hide a forgotten configuration", () => {
    const rejected = (env: Record<string, string>, message: RegExp): void =>
      assert.throws(
        () => defaultConfigPath(env, absent),
        (error) => error instanceof NoConfigError && message.test(error.message),
      );
    rejected({ KUBERNETES_SERVICE_HOST: "10.0.0.1", HOME: "/root" }, /^configuration is required when running in Kube/);
    rejected({ TRACEGATE_ENV: "container", HOME: "/root" }, /is not mounted/);
    rejected({}, /neither XDG_CONFIG_HOME nor HOME is set/);
    assert.equal(defaultConfigPath({ KUBERNETES_SERVICE_HOST: "10.0.0.1", LOCAL_XDS_PATH: "/a.yaml" }), "/a.yaml");
  });

  test("the file is created with its folders, and never overwritten", () => {
    const file = join(folder, "a", "b", "config.yaml");
    assert.equal(createDefaultConfig(file), true);
    assert.match(readFileSync(file, "utf8"), /^gateways:$/m);
    writeFileSync(file, "mine");
    assert.equal(createDefaultConfig(file), false);
    assert.equal(readFileSync(file, "utf8"), "mine");
    assert.throws(() => createDefaultConfig(join(file, "config.yaml")), NoConfigError);
  });
});
