import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { ControllerClient } from "./controller-client.ts";

/** A client of a server that answers each request with `answer`, and the requests that have arrived. */
async function controller(t: TestContext, answer: unknown) {
  const requests: string[] = [];
  const server = createServer(async (request, response) => {
    request.setEncoding("utf8");
    requests.push(`${request.method} ${request.url} ${(await request.toArray()).join("")}`.trimEnd());
    response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { client: new ControllerClient(`http://127.0.0.1:${port}`), requests };
}

test("previews, snapshots and log levels are asked for as the controller expects it", async (t) => {
  const report = { problems: [], missing: [{ kind: "Secret", key: "shop/tls" }] };
  const { client, requests } = await controller(t, report);
  assert.deepEqual(await client.preview("p1", "shop/web", [{ kind: "HTTPRoute" }]), report);
  await client.snapshot("gateways");
  await client.setLogging(new Map([["level", "debug"]]));
  await client.logging();
  assert.deepEqual(requests, [
    'POST /previews/p1?gateway=shop%2Fweb [{"kind":"HTTPRoute"}]',
    "GET /snapshots/gateways",
    "POST /logging?level=debug",
    "POST /logging",
  ]);
});

test("an answer that is not a report about a preview is an error, as from another program at this port", async (t) => {
  for (const answer of [{}, { problems: [] }, { problems: {}, missing: [] }, []]) {
    const { client } = await controller(t, answer);
    await assert.rejects(client.preview("p", "shop/web", []), { kind: "protocol", message: /other than a report/ });
  }
});
