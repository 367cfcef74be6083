/**
 * What `convert` makes of `NAME.in.*`: `NAME.gateway-api.yaml`, `NAME.file.yaml`, and in `NAME.findings.txt` what it says for both. The objects have to be
 * accepted by the controller, in a cluster with the Services, Secrets and ConfigMaps that they name; the file has to be valid.
 * UPDATE_GOLDEN=1 writes them.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { before, test } from "node:test";
import { parseAllDocuments, stringify } from "yaml";
import { appRoot } from "../../src/base/app-root.ts";
import { convertCaddy } from "../../src/cli/convert/caddy/convert.ts";
import type { Converted } from "../../src/cli/convert/converted.ts";
import { Findings } from "../../src/cli/convert/findings.ts";
import { writeGatewayApi } from "../../src/cli/convert/gateway-api/write.ts";
import { convertIngress } from "../../src/cli/convert/ingress/convert.ts";
import { convertNginx } from "../../src/cli/convert/nginx/convert.ts";
import { writeFile } from "../../src/cli/convert/write-file.ts";
import { loadConfig } from "../../src/config/load.ts";
import { desiredStatuses } from "../../src/controller/status/statuses.ts";
import { formatDiagnostics } from "../../src/translation/problems/diagnostics.ts";
import { noOpenssl, TestCa } from "../helpers/certificates.ts";
import { clusterOf } from "../helpers/kube/cluster-of.ts";
import { crdProblems } from "../helpers/kube/crd-problems.ts";

const FOLDER = `${appRoot}test/golden/convert/`;
const USERS = "alice:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=";

const pems = { cert: "", key: "", ca: "" };

before(() => {
  if (noOpenssl !== false) return;
  using ca = new TestCa();
  Object.assign(pems, ca.issue("example.com"), { ca: ca.cert });
});

const CONVERTERS: Readonly<Record<string, (name: string, text: string) => Converted>> = {
  yaml: convertIngress,
  conf: (name, text) => convertNginx(name, text, undefined),
  caddyfile: (name, text) => convertCaddy(name, text, undefined),
};

for (const file of readdirSync(FOLDER).filter((each) => each.includes(".in.")))
  test(file, { skip: noOpenssl }, () => {
    const [name = "", , ending = ""] = file.split(".");
    const converted = CONVERTERS[ending]?.(file, readFileSync(join(FOLDER, file), "utf8"));
    assert.ok(converted !== undefined);
    const outputs = outputsOf(converted);
    for (const [form, text] of Object.entries(outputs)) {
      const path = join(FOLDER, `${name}.${form}`);
      if (process.env.UPDATE_GOLDEN !== undefined) writeFileSync(path, text);
      assert.ok(existsSync(path), `${path} is missing; run with UPDATE_GOLDEN=1 and read what it wrote`);
      assert.equal(text, readFileSync(path, "utf8"));
    }
    assertServed(outputs["gateway-api.yaml"]);
    assertValid(outputs["file.yaml"]);
  });

test("objects for what others are compared with are accepted", { skip: noOpenssl }, () => {
  for (const suite of ["nginx", "caddy"])
    for (const file of readdirSync(`${appRoot}test/suites/${suite}`)) {
      const text = readFileSync(`${appRoot}test/suites/${suite}/${file}`, "utf8");
      const converted = CONVERTERS[file.split(".").at(-1) ?? ""]?.(file, text);
      assert.ok(converted !== undefined, file);
      assertServed(outputsOf(converted)["gateway-api.yaml"]);
    }
});

function outputsOf(converted: Converted) {
  const [objects, file] = [new Findings(), new Findings()];
  const texts = { "gateway-api.yaml": writeGatewayApi(converted, objects), "file.yaml": writeFile(converted, file) };
  const parts = { convert: converted.findings, "--to gateway-api": objects.sorted(), "--to file": file.sorted() };
  const findings = Object.entries(parts).map(
    ([title, list]) => `${title}\n${list.map((each) => formatDiagnostics([{ path: "", ...each }])).join("")}`,
  );
  return { ...texts, "findings.txt": findings.join("\n") };
}

interface Reference {
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
  readonly port?: number;
}

/** Every object is accepted, with all that it refers to. */
function assertServed(text: string): void {
  const written = parseAllDocuments(text).map((each) => each.toJS());
  assert.deepEqual(written.flatMap(crdProblems), [], text);
  const needed = new Map<string, object>();
  const need = (kind: string, namespace: string | undefined, name: string, fields: object): void => {
    const metadata = { name, namespace: namespace ?? "default" };
    const isWritten = written.some(
      (each) =>
        each.kind === kind &&
        each.metadata.name === name &&
        (each.metadata.namespace ?? "default") === metadata.namespace,
    );
    if (!isWritten) needed.set(JSON.stringify([kind, metadata]), { kind, metadata, ...fields });
  };
  const visit = (value: unknown, namespace: string | undefined): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [field, each] of Object.entries(value)) {
      const references = (Array.isArray(each) ? each : [each]) as readonly Reference[];
      for (const { kind = "Service", name, namespace: other, port } of references)
        if (field === "certificateRefs") need("Secret", other ?? namespace, name, SECRET);
        else if (field === "secretKeyRef") need("Secret", namespace, name, SECRET);
        else if (field === "configMapKeyRef" || field === "caCertificateRefs")
          need("ConfigMap", namespace, name, CONFIG_MAP);
        else if ((field === "backendRefs" || field === "backendRef") && kind === "Service")
          need("Service", other ?? namespace, name, { spec: { ports: portsOf(needed, name, port) } });
      visit(each, namespace);
    }
  };
  for (const each of written) visit(each, each.metadata.namespace);
  for (const namespace of new Set(written.map((each) => each.metadata.namespace ?? "default")))
    need("Namespace", "", namespace, {});
  const graph = clusterOf(
    [...written, ...[...needed.values()].map(withLabels)].map((each) => stringify(each)).join("---\n"),
  );
  const problems = [...graph.query(desiredStatuses, "")].flatMap(({ kind, key, status }) =>
    failures(status).map((message) => `${kind} ${key}: ${message}`),
  );
  assert.deepEqual(problems, [], text);
}

const SECRET = {
  type: "kubernetes.io/tls",
  get stringData() {
    return { "tls.crt": pems.cert, "tls.key": pems.key, "ca.crt": pems.ca, auth: USERS, users: USERS };
  },
};
const CONFIG_MAP = {
  get data() {
    return { "ca.crt": pems.ca };
  },
};

/** With those that another reference needs. */
function portsOf(needed: ReadonlyMap<string, object>, name: string, port: number | undefined): readonly object[] {
  const known = [...needed.values()].flatMap((each) =>
    "spec" in each && JSON.stringify(each).includes(`"name":"${name}"`)
      ? (each.spec as { ports: { port: number }[] }).ports
      : [],
  );
  return [...known.filter((each) => each.port !== port), { name: `p${port}`, port }];
}

function withLabels(object: object): object {
  if (!("kind" in object) || object.kind !== "Namespace" || !("metadata" in object)) return object;
  const { name } = object.metadata as { readonly name: string };
  return { ...object, metadata: { name, labels: { "kubernetes.io/metadata.name": name } } };
}

/** The conditions that say that something is wrong, wherever they are in a status. */
function failures(status: unknown): readonly string[] {
  if (typeof status !== "object" || status === null) return [];
  if (Array.isArray(status)) return status.flatMap(failures);
  if ("type" in status && "status" in status && "reason" in status && "message" in status) {
    const isGood = ["Conflicted", "Overridden", "Replaceable", "PartiallyInvalid"].includes(String(status.type))
      ? status.status === "False"
      : status.status === "True" && status.reason !== "PartiallyValid";
    return isGood ? [] : [`${status.type} ${status.reason} ${status.message}`];
  }
  return Object.values(status).flatMap(failures);
}

/** The file is valid where the files that it names are. */
function assertValid(text: string): void {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-convert-"));
  try {
    for (const [, path = ""] of text.matchAll(/(?<=[ :{])(secrets\/[\w./-]+)/g)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      const content = { crt: path.endsWith("ca.crt") ? pems.ca : pems.cert, key: pems.key }[
        path.split(".").at(-1) ?? ""
      ];
      writeFileSync(join(folder, path), content ?? USERS);
    }
    const loaded = loadConfig({ kind: "text", text: text.replaceAll("secrets/", `${folder}/secrets/`) }, {});
    assert.ok(loaded.ok, JSON.stringify(loaded));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
