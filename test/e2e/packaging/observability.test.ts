/** The dashboard and the alert rules use only metrics and labels that the gateway and the controller have. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { before, test } from "node:test";
import { parse } from "yaml";
import { appRoot } from "../../../src/base/app-root.ts";
import { METRICS } from "../../../src/telemetry/metric-table.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { closedPort } from "../../helpers/raw-peer.ts";

const FOLDER = `${appRoot}install/observability/`;
const CERTS = `${appRoot}examples/recipes/certs/`;
/** Labels that Prometheus adds to scraped metrics. */
const SCRAPED = ["job", "instance", "namespace"];

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string; readonly exemplar?: boolean }[];
}
interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
}
interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string; readonly annotations: object }[];
  }[];
}

const dashboard = JSON.parse(readFileSync(`${FOLDER}grafana-dashboard.json`, "utf8")) as Dashboard;
const { groups } = parse(readFileSync(`${FOLDER}alerts.yaml`, "utf8")) as Rules;
const rules = groups.flatMap((group) => group.rules);

/** Labels by metric, as `/metrics` has them. */
const labels = new Map<string, Set<string>>();

/** Adds the metrics of a text in the format of Prometheus. */
function read(text: string): void {
  for (const [, name = ""] of text.matchAll(/^# TYPE (\S+)/gm)) if (!labels.has(name)) labels.set(name, new Set());
  for (const [, sample = "", written = ""] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm)) {
    const known = labels.get(sample) ?? new Set();
    labels.set(sample, known);
    for (const [, label = ""] of written.matchAll(/([a-z_]+)="/g)) known.add(label);
  }
}

/** A request over TLS, as a call of gRPC. */
function call(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/grpc" };
    const ca = readFileSync(`${CERTS}ca.pem`);
    const opened = request({ port, host: "localhost", ca, agent: false, method: "POST", headers });
    opened
      .on("response", (response) => response.resume().on("end", resolve))
      .on("error", reject)
      .end();
  });
}

/** A gateway with a sample of every metric. */
before(async () => {
  const backend = createServer((_request, response) => response.end());
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(backend.address() as AddressInfo).port}`;
  const health = { eviction: { duration: "1s" }, active: { http: { path: "/" }, interval: "100ms" } };
  const routes = [{ backends: [{ host, policies: { health } }] }];
  const tls = { cert: `${CERTS}server.pem`, key: `${CERTS}server.key` };
  const gateway = await GatewayProcess.start({
    frontendPolicies: { tracing: { host: `127.0.0.1:${await closedPort()}`, randomSampling: true } },
    binds: [{ port: 0, listeners: [{ protocol: "HTTPS", tls, routes }] }],
  });
  try {
    await call(gateway.port());
    const deadline = Date.now() + 20_000;
    while (!labels.get("tracegate_health_checks_total")?.has("result")) {
      assert.ok(Date.now() < deadline, "a probe is counted");
      read(await gateway.metricsText());
    }
  } finally {
    await gateway.stop();
    backend.closeAllConnections();
    backend.close();
  }
  for (const [name, spec] of Object.entries(METRICS)) {
    const known = labels.get(`tracegate_${name}`) ?? new Set();
    labels.set(`tracegate_${name}`, known);
    for (const label of spec.labels) known.add(label);
  }
});

/** Metrics of the controller, from their page, because a controller needs a cluster. */
const ofController = new Map(
  [...readFileSync(`${appRoot}docs/metrics.md`, "utf8").matchAll(/^\| `(tracegate_(?:controller|xds)_\w+)`/gm)].map(
    ([, name = ""]) => [name, new Set<string>()] as const,
  ),
);

/** Metrics and labels of an expression that do not exist. */
function problems(expression: string, shown: string): string[] {
  const found: string[] = [];
  const used = new Set<string>(SCRAPED);
  const names = [...expression.matchAll(/\b((?:tracegate|process)_\w+)(?:\{([^}]*)\})?/g)];
  if (names.length === 0) found.push("names no metric");
  for (const [, name = "", matchers = ""] of names) {
    const known = labels.get(name) ?? ofController.get(name);
    if (known === undefined) found.push(`no metric ${name}`);
    for (const label of known ?? []) used.add(label);
    for (const [, label = ""] of matchers.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g))
      if (known?.has(label) !== true && !SCRAPED.includes(label)) found.push(`${name} has no label ${label}`);
  }
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/));
  const legends = [...shown.matchAll(/\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}/g)].map(([, label = ""]) => label);
  for (const label of [...grouped, ...legends]) if (!used.has(label)) found.push(`no label ${label}`);
  return found;
}

test("every panel of the dashboard shows metrics and labels that exist", () => {
  const panels = dashboard.panels.filter(({ targets }) => targets !== undefined);
  assert.ok(panels.length >= 20);
  for (const { title, targets = [] } of panels)
    for (const { expr, legendFormat } of targets) assert.deepEqual(problems(expr, legendFormat), [], title);
  for (const { definition } of dashboard.templating.list) {
    if (definition === undefined) continue;
    const [, selector = "", label = ""] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? [];
    assert.deepEqual(problems(`sum by (${label}) (${selector})`, ""), [], definition);
  }
});

test("the panels of durations show exemplars", () => {
  const targets = dashboard.panels.flatMap((panel) => panel.targets ?? []);
  const named = targets.filter(({ expr }) =>
    /tracegate_(request_duration|request_processing)_seconds_bucket/.test(expr),
  );
  assert.ok(named.length > 0);
  assert.deepEqual(
    targets.filter(({ exemplar }) => exemplar === true),
    named,
  );
});

test("every alert watches metrics and labels that exist", () => {
  assert.ok(rules.length >= 12);
  for (const { alert, expr, annotations } of rules)
    assert.deepEqual(problems(expr, JSON.stringify(annotations)), [], alert);
});

test("the check finds metrics and labels that do not exist", () => {
  assert.deepEqual(problems("rate(tracegate_request_total[5m])", ""), ["no metric tracegate_request_total"]);
  assert.deepEqual(problems('tracegate_requests_total{verb="GET"}', ""), [
    "tracegate_requests_total has no label verb",
  ]);
  assert.deepEqual(problems("sum by (pod) (tracegate_requests_total)", "{{zone}}"), ["no label pod", "no label zone"]);
});
