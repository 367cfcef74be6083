import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { TestXdsServer } from "../../test/helpers/xds.ts";
import { NODE } from "../../test/helpers/xds-peer.ts";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import { ANYWHERE } from "../net/testing/egress.ts";
import { ResourceStore } from "../translation/resources/store.ts";
import { XdsClient } from "../xds/client/client.ts";
import { Documents } from "./documents.ts";
import { Graph } from "./graph/graph.ts";
import type { Inputs } from "./graph/inputs.ts";
import { policyModel } from "./translate/policy/model.ts";

const LOG = new LogOutput(parseLogFilter("off"), "text", () => {}).logger("default");
const KEY = '{"crv":"Ed25519","x":"lbN_QYjypLb79ONklVMtSRADKzUW7ZWQomICXA5ETDQ","kty":"OKP","kid":"a","alg":"EdDSA"}';
const KEYS = `{"keys":[${KEY}]}`;

/** A server whose answers are the entries of a list, the last one again and again. */
async function serve(answers: (string | number)[]) {
  const server = createServer((_request, response) => {
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (typeof answer === "number") response.writeHead(answer).end();
    else response.end(answer);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function policyOf(url: string): Inputs["TracegatePolicy"] {
  return {
    apiVersion: "tracegate.dev/v1alpha1",
    kind: "TracegatePolicy",
    metadata: { name: "login", namespace: "apps" },
    spec: {
      targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "edge" }],
      traffic: { jwtAuth: { issuer: "https://idp.example", jwks: { url } } },
    },
  };
}

/** Documents of a policy that names `url`; `next` resolves at the next change of the graph. */
function follow(url: string, store = new ResourceStore(ANYWHERE, { refresh: 60_000, retry: 1 })) {
  const graph = new Graph();
  graph.set(policyOf(url));
  let notify = (): void => {};
  const documents = new Documents({ graph, changed: () => notify(), log: LOG, store });
  const next = (): Promise<void> =>
    new Promise((resolve) => {
      notify = resolve;
    });
  const jwks = (): string | undefined => graph.query(policyModel, "apps/login")?.levels.route.set.jwtAuth?.jwks;
  return { graph, documents, next, jwks };
}

test("a key set is fetched once a policy names it, and dropped when none does", async () => {
  await using server = await serve([KEYS]);
  const { graph, documents, next, jwks } = follow(server.url);
  assert.deepEqual(graph.query(policyModel, "apps/login")?.warnings, [
    `spec.traffic.jwtAuth.jwks.url: ${server.url} has not been fetched yet`,
  ]);
  const fetched = next();
  documents.update();
  await fetched;
  assert.equal(jwks(), KEYS);
  graph.delete("TracegatePolicy", "apps/login");
  const dropped = next();
  documents.update();
  await dropped;
  assert.deepEqual(graph.list("FetchedDocument"), []);
  documents.close();
});

test("a document that cannot be fetched is a problem of the policy, and is fetched again until it succeeds", async () => {
  await using server = await serve([503, 503, KEYS]);
  const { graph, documents, next, jwks } = follow(server.url);
  const failed = next();
  documents.update();
  await failed;
  const [problem = ""] = graph.query(policyModel, "apps/login")?.problems ?? [];
  assert.match(problem, /^spec\.traffic\.jwtAuth\.jwks\.url: cannot fetch .* it responds with status 503$/);
  const succeeded = next();
  await succeeded;
  assert.equal(jwks(), KEYS);
  assert.deepEqual(graph.query(policyModel, "apps/login")?.problems, []);
  documents.close();
});

test("a refreshed document replaces the former one only if policies work with it", async () => {
  const other = KEYS.replace('"kid":"a"', '"kid":"b"');
  await using server = await serve([KEYS, '{"keys":[{"kty":"oct"}]}', other]);
  const { documents, next, jwks } = follow(server.url, new ResourceStore(ANYWHERE, { refresh: 1, retry: 1 }));
  const fetched = next();
  documents.update();
  await fetched;
  const replaced = next();
  await replaced;
  assert.equal(jwks(), other);
  documents.close();
});

test("a proxy that sees an unknown key triggers a new fetch of the key set over its stream; other URLs are not fetched", async () => {
  const other = KEYS.replace('"kid":"a"', '"kid":"b"');
  await using server = await serve([KEYS, other]);
  const { documents, next, jwks } = follow(
    server.url,
    new ResourceStore(ANYWHERE, { refresh: 60_000, retry: 60_000, cooldown: 0 }),
  );
  const wanted: string[] = [];
  await using xds = await TestXdsServer.start({
    onDocumentWanted: (url) => {
      wanted.push(url);
      documents.want(url);
    },
  });
  const fetched = next();
  documents.update();
  await fetched;
  assert.equal(jwks(), KEYS);
  const client = new XdsClient({ address: xds.address, egress: ANYWHERE, node: NODE, log: LOG, onState: () => {} });
  const replaced = next();
  client.wantDocument("http://127.0.0.1:1/elsewhere");
  client.wantDocument(server.url);
  await replaced;
  assert.equal(jwks(), other);
  assert.deepEqual(wanted, ["http://127.0.0.1:1/elsewhere", server.url]);
  client.close();
  documents.close();
});
