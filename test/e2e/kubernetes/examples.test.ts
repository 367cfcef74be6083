/** The examples of `examples/kubernetes/`, with the objects that they need: no condition says that something is wrong, and curl gets what their first lines say. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { appRoot } from "../../../src/base/app-root.ts";
import { allIngressProblems } from "../../../src/controller/status/ingress-statuses.ts";
import { desiredStatuses } from "../../../src/controller/status/statuses.ts";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { clusterOf } from "../../helpers/kube/cluster-of.ts";
import { crdProblems } from "../../helpers/kube/crd-problems.ts";
import { Backends, OneProxy, service } from "../../helpers/kube/one-proxy.ts";

const FOLDER = `${appRoot}examples/kubernetes/`;
const GATEWAY = readFileSync(`${appRoot}install/examples/hello.yaml`, "utf8");
/** `#   curl … → 200 with TEXT`: a command, the status that it prints, and a text in the head or body. */
const TRY = /^#\s+curl (.*?)\s+→ (\d{3})(?: with (.+))?$/gm;
/** Kinds that the controller does not read. */
const OF_OTHERS = ["Deployment", "Issuer"];
const CLUSTER_SCOPED = ["IngressClass"];
/** Conditions that are True where something fails, or is most likely not intended. */
const BAD = ["Conflicted", "PartiallyInvalid", "Overridden", "Replaceable", "tracegate.dev/Findings"];
const files = readdirSync(FOLDER);
const run = promisify(execFile);
const tools = await run("curl", ["--version"]).then(
  () => noOpenssl,
  () => "no curl here",
);

const backends = new Backends();
after(() => backends[Symbol.dispose]());
let surroundings = "";
before(async () => {
  const echo = createServer((request, response) => request.resume().on("end", () => response.end("hello")));
  const port = await backends.listen(echo);
  surroundings = service("hello", port) + shared(port);
  if (tools !== false) return;
  using ca = new TestCa();
  const { cert, key } = ca.issue("shop.example.com");
  surroundings += `---\n${JSON.stringify({ kind: "Secret", metadata: { name: "shop-tls" }, type: "kubernetes.io/tls", data: { "tls.crt": base64(cert), "tls.key": base64(key) } })}\n`;
});

for (const file of files)
  test(`examples/kubernetes/${file} is valid and does what it says`, { skip: tools }, async () => {
    const text = readFileSync(FOLDER + file, "utf8");
    assert.deepEqual(
      parseAllDocuments(text).flatMap((each) => crdProblems(each.toJS())),
      [],
    );
    const objects = objectsOf(`${GATEWAY}\n---\n${text}`) + surroundings;
    assert.deepEqual(problemsOf(objects), []);
    await using proxy = await OneProxy.start(`---\n${objects}`);
    for (const [line, args = "", status, content = ""] of text.matchAll(TRY)) {
      const words = [...args.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
      const bind = args.includes("https://") ? "bind/443" : "bind/80";
      const to = ["--connect-to", `::127.0.0.1:${proxy.port(bind)}`];
      const { stdout } = await run("curl", ["-s", "-m", "20", "-w", "\n%{http_code}", ...to, ...words], {
        cwd: appRoot,
      });
      assert.ok(stdout.endsWith(`\n${status}`), `${line}\n${stdout}`);
      assert.ok(stdout.includes(content), `${line}\n${stdout}`);
    }
  });

test("docs/recipes.md lists every example", () => {
  const page = readFileSync(`${appRoot}docs/recipes.md`, "utf8");
  const listed = [...page.matchAll(/\.\.\/examples\/kubernetes\/([\w-]+\.yaml)/g)].map(([, name]) => name);
  assert.deepEqual(listed.sort(), files.sort());
});

/** As the API server stores them; those of the example replace those of the same name. */
function objectsOf(text: string): string {
  const objects = new Map<string, string>();
  for (const document of parseAllDocuments(text)) {
    assert.deepEqual(document.errors, []);
    const { stringData, metadata, ...rest } = document.toJS();
    if (OF_OTHERS.includes(rest.kind)) continue;
    // The test has a Service of its own, with endpoints.
    if (rest.kind === "Service") continue;
    const data =
      stringData && Object.fromEntries(Object.entries(stringData).map(([name, each]) => [name, base64(String(each))]));
    const namespace = CLUSTER_SCOPED.includes(rest.kind) ? "" : "default";
    const object = { ...rest, ...(data && { data }), metadata: { namespace, ...metadata } };
    objects.set(`${rest.kind}/${metadata.name}`, JSON.stringify(object));
  }
  return `${[...objects.values()].join("\n---\n")}\n`;
}

/** What the statuses and Events of these objects say is wrong. */
function problemsOf(objects: string): readonly string[] {
  const graph = clusterOf(objects);
  const conditions = graph.query(desiredStatuses, "").flatMap(({ kind, key, status }) =>
    conditionsIn(status)
      .filter(({ type, status }) => (status === "True") === BAD.includes(type))
      .map(({ type, message }) => `${kind} ${key}: ${type}: ${message}`),
  );
  const events = [...graph.query(allIngressProblems, "")].map(
    ([key, problems]) => `Ingress ${key}: ${JSON.stringify(problems)}`,
  );
  return [...conditions, ...events];
}

type Draft = Readonly<Record<"type" | "status" | "message", string>>;

function conditionsIn(part: unknown): readonly Draft[] {
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([field, value]) => (field === "conditions" ? value : conditionsIn(value)));
}

/** A Service of several clusters, as an implementation of the MCS API makes it. */
function shared(port: number): string {
  return `---
kind: ServiceImport
metadata: { name: hello }
spec: { type: ClusterSetIP, ips: [198.19.9.9], ports: [{ name: web, port: 80, protocol: TCP }] }
---
kind: EndpointSlice
metadata: { name: imported, labels: { multicluster.kubernetes.io/service-name: hello } }
addressType: IPv4
ports: [{ name: web, port: ${port} }]
endpoints: [{ addresses: [127.0.0.1], conditions: { ready: true } }]
`;
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
