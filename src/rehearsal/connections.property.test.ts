/** A real connection of TCP or TLS has the line in the access log that one of the outcomes of its rehearsal has. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectedGateway, connection, connectionConfig } from "../../test/fuzz/explain/connections.ts";
import { noOpenssl } from "../../test/helpers/certificates.ts";
import { fc } from "../../test/helpers/property.ts";

test("a rehearsal has the outcome of the real connection", { timeout: 120_000, skip: noOpenssl }, async () => {
  const gateway = await ConnectedGateway.start();
  try {
    const connections = fc.array(connection, { minLength: 4, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(connectionConfig, connections, async (shape, each) => {
        assert.equal(await gateway.compare(shape, each), undefined);
      }),
      { numRuns: 30, endOnFailure: true },
    );
  } finally {
    await gateway.close();
  }
});
