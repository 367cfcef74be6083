/** Decisions without a trace are those of rehearsals: the same routes, refusals, backends and heads, over random configurations and requests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { configuration, userConfig, type Written, written } from "../../test/fuzz/explain/cases.ts";
import { noOpenssl } from "../../test/helpers/certificates.ts";
import { fc } from "../../test/helpers/property.ts";
import { irOf } from "../../test/helpers/supervisor.ts";
import type { SampledRequest } from "../recorder/sample.ts";
import { CHANGING_FIELDS } from "./changing-fields.ts";
import type { Decision } from "./decider.ts";
import { factsOfRequest, type RequestFacts } from "./facts.ts";
import type { Outcome } from "./outcome.ts";
import { Rehearsal } from "./rehearsal.ts";
import { headOf } from "./sampled-head.ts";

const CONFIGURATIONS = 30;
const REQUESTS = 8;
const SETTINGS = { sensitiveHeaders: [], perRequest: 1_000_000, sessionKey: new Uint8Array(32) };
const BACKENDS = { plain: 9001, tls: 9002, gone: 9003, unverified: 9004 };

/** What decides whether two heads are alike, without fields of connections. */
const OF_CONNECTION = new Set(["host", "connection", "te", "content-length", "transfer-encoding"]);

function headText(method: string, target: string, headers: readonly string[]): string {
  const lines: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] ?? "").toLowerCase();
    if (name.startsWith(":") || OF_CONNECTION.has(name) || CHANGING_FIELDS.has(name)) continue;
    lines.push(`${name}: ${headers[i + 1]}`);
  }
  return [`${method} ${target}`, ...lines.sort()].join("\n");
}

function ofOutcome({ record, sent }: Outcome): string {
  const [first] = sent;
  if (first !== undefined) return `${record?.route}\n${headText(first.method, first.target, first.headers)}`;
  return `${record?.route} ${record?.status} ${record?.code}`;
}

function ofDecision({ route, sent, status, code }: Decision): string {
  if (sent !== undefined) return `${route}\n${headText(sent.method, sent.target, sent.headers)}`;
  return `${route} ${status} ${code}`;
}

/** Without a body and a client's certificate, which samples do not have. */
function factsOf({ client, host, method, target, headers }: Written): RequestFacts {
  const { scheme, version } = client;
  const fields = headers.map((line) => line.split(": ") as [string, string]);
  return factsOfRequest({ url: `${scheme}://${host}${target}`, method, headers: fields, body: "", version });
}

function sampleOf(facts: RequestFacts, bind: string): SampledRequest {
  const [, ...lines] = facts.head.slice(0, -4).split("\r\n");
  const fields = lines.map((line) => ({
    name: line.slice(0, line.indexOf(":")),
    value: line.slice(line.indexOf(":") + 2),
  }));
  const headers = fields.filter(({ name }) => name.toLowerCase() !== "host");
  const isTls = facts.serverName !== undefined;
  return {
    time: new Date().toISOString(),
    weight: 1,
    bind,
    scheme: isTls ? "https" : "http",
    version: facts.version ?? (isTls ? "2" : "1.1"),
    method: facts.method,
    authority: facts.url.host,
    target: facts.target,
    headers: headers.map(({ name, value }) => ({ name: name.toLowerCase(), value })),
    source: facts.source,
    ...(facts.serverName !== undefined && { serverName: facts.serverName }),
  };
}

test("decisions are those of rehearsals", { timeout: 240_000, skip: noOpenssl }, async (t) => {
  const counts = { all: 0, sent: 0, refused: 0, open: 0 };
  const requests = fc.array(written, { minLength: REQUESTS, maxLength: REQUESTS });
  await fc.assert(
    fc.asyncProperty(configuration, requests, async (shape, each) => {
      const plain = { ...shape, clientCertificates: undefined };
      const config = JSON.stringify(userConfig(plain, { backends: BACKENDS, tls: 9443 }));
      const rehearsal = new Rehearsal(irOf(JSON.parse(config)), SETTINGS);
      try {
        for (const request of each) {
          const facts = factsOf(request);
          const bind = rehearsal.bindFor(new URL(`${facts.url.protocol}//any/`));
          const { outcomes } = await rehearsal.outcomes(facts, bind, {});
          const { possible } = await rehearsal.decisions(headOf(sampleOf(facts, bind.key)), { numbers: new Map() });
          const decisions = new Set(possible.map(({ decision }) => ofDecision(decision)));
          assert.deepEqual([...decisions].sort(), [...new Set(outcomes.map(ofOutcome))].sort(), config);
          counts.all++;
          if (possible.length > 1) counts.open++;
          if (possible.some(({ decision }) => decision.refused)) counts.refused++;
          if (possible.some(({ decision }) => decision.sent !== undefined)) counts.sent++;
        }
      } finally {
        rehearsal.close();
      }
    }),
    { numRuns: CONFIGURATIONS, endOnFailure: true },
  );
  t.diagnostic(JSON.stringify(counts));
  for (const count of Object.values(counts)) assert.ok(count > CONFIGURATIONS / 6, JSON.stringify(counts));
});
