import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { findCluster } from "./connect.ts";

const folder = mkdtempSync(join(tmpdir(), "tracegate-kubeconfig-"));
after(() => rmSync(folder, { recursive: true }));

function file(name: string, content: object): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify(content));
  return path;
}

const cluster = { server: "https://192.0.2.1:6443/prefix" };

function single(name: string, user: object, ofCluster: object = {}): string {
  return file(name, {
    "current-context": "main",
    clusters: [{ name: "main", cluster: { ...cluster, ...ofCluster } }],
    users: [{ name: "main", user }],
    contexts: [{ name: "main", context: { cluster: "main", user: "main", namespace: "apps" } }],
  });
}

test("certificates are read from data and from files beside the kubeconfig", async () => {
  writeFileSync(join(folder, "client.crt"), "certificate");
  const kubeconfig = single(
    "certificates",
    { "client-certificate": "client.crt", "client-key-data": Buffer.from("key").toString("base64") },
    { "certificate-authority-data": Buffer.from("ca").toString("base64"), "tls-server-name": "kubernetes" },
  );
  const access = await findCluster({}, { kubeconfig });
  assert.equal(access.server.href, "https://192.0.2.1:6443/prefix");
  assert.equal(access.namespace, "apps");
  const { tls, headers } = await access.credentials();
  assert.deepEqual(
    { ca: String(tls.ca), cert: String(tls.cert), key: String(tls.key), servername: tls.servername },
    { ca: "ca", cert: "certificate", key: "key", servername: "kubernetes" },
  );
  assert.deepEqual(headers, {});
});

test("tokens, token files that change, passwords and impersonation", async () => {
  const headers = async (user: object): Promise<unknown> =>
    (await (await findCluster({}, { kubeconfig: single("user", user) })).credentials()).headers;
  assert.deepEqual(await headers({ token: "abc", as: "jane" }), {
    authorization: "Bearer abc",
    "impersonate-user": "jane",
  });
  assert.deepEqual(
    await headers({
      token: "abc",
      as: "jane",
      "as-uid": "u-1",
      "as-groups": ["developers", "system:authenticated"],
      "as-user-extra": { "example.com/scope": ["read", "write"] },
    }),
    {
      authorization: "Bearer abc",
      "impersonate-user": "jane",
      "impersonate-uid": "u-1",
      "impersonate-group": ["developers", "system:authenticated"],
      "impersonate-extra-example.com%2fscope": ["read", "write"],
    },
  );
  await assert.rejects(headers({ token: "abc", "as-groups": ["developers"] }), /need as, the name of the user/);
  assert.deepEqual(await headers({ username: "jane", password: "pw" }), { authorization: "Basic amFuZTpwdw==" });
  writeFileSync(join(folder, "token"), "one\n");
  const access = await findCluster({}, { kubeconfig: single("token-file", { tokenFile: "token" }) });
  assert.deepEqual((await access.credentials()).headers, { authorization: "Bearer one" });
  writeFileSync(join(folder, "token"), "two\n");
  assert.deepEqual((await access.credentials()).headers, { authorization: "Bearer two" });
});

test("files are merged: the first entry of a name counts; files that are missing are skipped", async () => {
  const first = file("first", { users: [{ name: "u", user: { token: "first" } }] });
  const second = file("second", {
    "current-context": "c",
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user: { token: "second" } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
  });
  const access = await findCluster({ KUBECONFIG: `${first}:${join(folder, "none")}:${second}` });
  assert.equal(access.namespace, "default");
  assert.deepEqual((await access.credentials()).headers, { authorization: "Bearer first" });
});

test("a credential plugin is run; what it prints on failure is the message", async () => {
  const plugin = (script: string) => ({
    exec: { apiVersion: "client.authentication.k8s.io/v1", command: process.execPath, args: ["-e", script] },
  });
  const good = `process.stdout.write(JSON.stringify({ status: { token: "from-plugin" } }))`;
  const access = await findCluster({}, { kubeconfig: single("plugin", plugin(good)) });
  assert.deepEqual((await access.credentials()).headers, { authorization: "Bearer from-plugin" });
  const groups = { as: "jane", "as-groups": ["developers"] };
  const impersonating = await findCluster({}, { kubeconfig: single("plugin", { ...plugin(good), ...groups }) });
  assert.deepEqual((await impersonating.credentials()).headers, {
    authorization: "Bearer from-plugin",
    "impersonate-user": "jane",
    "impersonate-group": ["developers"],
  });
  const failing = await findCluster(
    {},
    { kubeconfig: single("plugin", plugin(`process.stderr.write("log in first"); process.exit(1)`)) },
  );
  await assert.rejects(failing.credentials(), /credentials of user "main": log in first/);
});

test("the error names what a kubeconfig lacks", async () => {
  const problem = (content: object): Promise<string> =>
    findCluster({}, { kubeconfig: file("bad", content) }).then(
      () => "none",
      (error: Error) => error.message.replace(folder, ""),
    );
  assert.equal(await problem({}), "kubeconfig /bad has no current-context; contexts: none");
  const contexts = [{ name: "c", context: { cluster: "x", user: "u" } }];
  assert.equal(
    await problem({ "current-context": "c", contexts }),
    'kubeconfig /bad: context "c" names cluster "x", which it lacks',
  );
  assert.equal(
    await problem({ "current-context": "c", contexts, clusters: [{ name: "x", cluster: { server: "nowhere" } }] }),
    'kubeconfig /bad: cluster "x": server "nowhere" is not a URL',
  );
});
