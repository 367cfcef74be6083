/** What three proxies of a Gateway say together about requests that are over, and about those that pass. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { RequestRecord } from "../../src/recorder/records.ts";
import { get } from "./lib/http.ts";
import { applyReplicated } from "./lib/replicated.ts";
import { apply, eventually, getJson, kubectl, tgctl } from "./lib/tools.ts";

const NS = "e2e-recorder";
const HOST = "recorder.example.com";
const TARGET = ["gateway/web", "-n", NS];
const DENIED = "/denied";
let address = "";
let pods: string[] = [];
/** Requests sent: each has an id of its own. */
let sent = 0;

interface Recorded extends RequestRecord {
  readonly pod: string;
}

before(async () => {
  address = await applyReplicated(NS, HOST);
  await apply(`
apiVersion: tracegate.dev/v1alpha1
kind: TracegatePolicy
metadata: {name: rules, namespace: ${NS}}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: main}]
  traffic: {authorization: {rules: [{deny: 'request.path.startsWith("${DENIED}")'}]}}
`);
  const { items } = await getJson<{ items: { metadata: { name: string } }[] }>(
    ...["-n", NS, "pods", "-l", "gateway.networking.k8s.io/gateway-name=web"],
  );
  pods = items.map(({ metadata }) => metadata.name);
  assert.equal(pods.length, 3);
});

after(() => kubectl("delete", "namespace", NS, "--wait=false"));

async function output(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await tgctl(...args);
  assert.equal(code, 0, `tgctl ${args.join(" ")}: ${stderr}`);
  return stdout;
}

async function send(path: string, id: string): Promise<number> {
  return (await get({ address, host: HOST, path, headers: { "x-request-id": id } })).status;
}

/** Sends requests until each of the pods has denied one. */
async function denyEverywhere(): Promise<Recorded[]> {
  return eventually("a denied request at each pod", async () => {
    await send("/served", `served-${sent}`);
    if ((await send(`${DENIED}/${sent}`, `denied-${sent++}`)) !== 403) return undefined;
    const { records } = JSON.parse(
      await output("recent", ...TARGET, "--where", "response.code == 403", "-o", "json"),
    ) as { records: Recorded[] };
    return pods.every((pod) => records.some((record) => record.pod === pod)) && records;
  });
}

test("recent merges the records of all pods by time, with the name of each; --top counts them together", async () => {
  const records = await denyEverywhere();
  const ends = records.map(({ time, duration }) => Date.parse(time) + duration);
  assert.deepEqual(
    ends,
    ends.toSorted((a, b) => b - a),
  );
  for (const { pod, path, decider } of records) {
    assert.ok(pods.includes(pod) && path.startsWith(DENIED));
    assert.deepEqual([decider?.policy, decider?.rule], ["authorization", 0]);
  }
  const lines = await output("recent", ...TARGET, "--errors");
  for (const pod of pods) assert.ok(lines.includes(pod), lines);
  assert.ok(!lines.includes("/served"), lines);
  const top = await output("recent", ...TARGET, "--errors", "--top");
  assert.match(top, new RegExp(`^${records.length} +\\S+ +403 +${NS}/main`, "m"));
});

test("explain with an id asks all pods, and tells which rule has denied the request", async () => {
  const [{ id = "", pod } = assert.fail()] = await denyEverywhere();
  const found = JSON.parse(await output("recent", ...TARGET, "--id", id, "-o", "json")) as { records: Recorded[] };
  assert.deepEqual(
    found.records.map((record) => [record.id, record.pod]),
    [[id, pod]],
  );
  const tree = await output("explain", id, ...TARGET);
  assert.match(tree, /403/);
  assert.match(tree, /authorization/);
  const { code, stderr } = await tgctl("explain", "nowhere", ...TARGET);
  assert.equal(code, 1);
  assert.match(stderr, /nowhere/);
});

test("trace --follow shows the requests of all pods that have the outcome", async () => {
  let over = false;
  const following = tgctl(
    ...["trace", ...TARGET, "--follow", "--count", "30", "--for", "60s", "--where", "response.code == 403"],
  ).finally(() => {
    over = true;
  });
  for (let i = 0; !over; i++) {
    await send(`${DENIED}/${i}`, `followed-${i}`);
    await send("/served", `followed-served-${i}`);
  }
  const { code, stdout, stderr } = await following;
  assert.equal(code, 0, stderr);
  const lines = stdout.trimEnd().split("\n");
  assert.equal(lines.length, 30, stdout);
  assert.ok(
    lines.every((line) => line.includes("→ 403") && line.includes(DENIED)),
    stdout,
  );
  for (const pod of pods) assert.ok(stdout.includes(pod), `${pod}: ${stdout}`);
});
