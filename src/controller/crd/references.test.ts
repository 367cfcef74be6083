import assert from "node:assert/strict";
import { test } from "node:test";
import { formatPath, type Path } from "../../base/paths.ts";
import { type ClusterNames, textOfName, toFileSyntax } from "./references.ts";

const NAMES: ClusterNames = {
  namespace: "apps",
  text: ({ key }) => (key === "missing" ? undefined : ` text of ${key}\n`),
  backend: ({ name }) => (name === "missing" ? undefined : { service: { name: `apps/${name}`, port: 80 } }),
};

function rewrite(value: unknown, ...path: Path): { readonly value: unknown; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const report = (at: Path, { message }: { readonly message: string }): void => {
    problems.push(`${formatPath(at)}: ${message}`);
  };
  return { value: toFileSyntax(value, path, NAMES, report), problems };
}

test("a reference becomes a file name that encodes it", () => {
  const { value } = rewrite({ secretKeyRef: { name: "users", key: "a/b" } }, "basicAuth", "htpasswd");
  const { file } = value as { file: string };
  assert.deepEqual(textOfName(file), { kind: "Secret", namespace: "apps", name: "users", key: "a/b" });
});

test("users cannot write such a name, so they cannot read Secrets of other namespaces", () => {
  const forged = "\0Secret/other/users/a";
  assert.notEqual(textOfName(forged), undefined);
  assert.deepEqual(rewrite({ file: forged }, "basicAuth", "htpasswd"), {
    value: { file: "" },
    problems: ["basicAuth.htpasswd.file: has a NUL character; remove it"],
  });
  assert.equal(textOfName("/etc/passwd"), undefined);
});

test("files of backendTLS are texts", () => {
  const { value } = rewrite({ backendTLS: { root: "PEM", cert: { configMapKeyRef: { name: "a", key: "b" } } } });
  const { root, cert } = (value as { backendTLS: { root: string; cert: string } }).backendTLS;
  assert.equal(textOfName(root), "PEM");
  assert.deepEqual(textOfName(cert), { kind: "ConfigMap", namespace: "apps", name: "a", key: "b" });
});

test("secrets without a file syntax are inlined, without their final line break", () => {
  const keys = [
    { key: { secretKeyRef: { name: "keys", key: "a" } }, metadata: { secretKeyRef: { name: "b", key: "c" } } },
  ];
  assert.deepEqual(rewrite({ keys }, "apiKey").value, {
    keys: [{ key: "text of a", metadata: { secretKeyRef: { name: "b", key: "c" } } }],
  });
});

test("the service syntax of files is rejected: it could name another namespace", () => {
  assert.deepEqual(rewrite({ service: { name: "other/authz", port: 80 }, timeout: "1s" }, "extAuthz"), {
    value: { timeout: "1s", backend: "/" },
    problems: ["extAuthz.service: names an entry of a configuration file"],
  });
});

test("a missing backend becomes one that cannot be called", () => {
  assert.deepEqual(rewrite({ backendRef: { name: "authz", port: 80 } }, "extAuthz").value, {
    service: { name: "apps/authz", port: 80 },
  });
  assert.deepEqual(rewrite({ backendRef: { name: "missing", port: 80 } }, "extAuthz").value, { backend: "/" });
  assert.deepEqual(rewrite({ backendRef: { nam: "authz" } }, "extAuthz").value, { backend: "/" });
});
