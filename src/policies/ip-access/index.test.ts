import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../base/errors.ts";
import { contextOf, creatorOf, RecordedTrace } from "../testing/context.ts";
import { ipAccess } from "./index.ts";

/** Whether a client with this address may pass, and what the trace says. */
function decide(config: { allow?: string[]; deny?: string[] }, address: string) {
  const trace = new RecordedTrace();
  const policy = creatorOf(ipAccess)(config);
  try {
    assert.equal(policy.onRequest?.(contextOf({}, { trace, source: { address } })), undefined);
    return { passes: true, events: trace.events };
  } catch (error) {
    assert.ok(error instanceof GatewayError && error.status === 403, String(error));
    return { passes: false, events: trace.events };
  }
}

test("a link-local client, whose address has a zone, is matched without it", () => {
  const address = "fe80::7%eth0";
  assert.equal(decide({ allow: ["fe80::/10"] }, address).passes, true);
  assert.equal(decide({ deny: ["fe80::7"] }, address).passes, false);
  const { passes, events } = decide({ allow: ["2001:db8::/32"] }, address);
  assert.equal(passes, false);
  assert.deepEqual(events, [{ kind: "ipAccess", details: { allowed: false, address }, severity: "error" }]);
});

test("an IPv4 address has one meaning, also when it is mapped to IPv6", () => {
  for (const address of ["192.0.2.7", "::ffff:192.0.2.7", "::ffff:c000:207"]) {
    assert.equal(decide({ deny: ["192.0.2.0/24"] }, address).passes, false, address);
    assert.equal(decide({ allow: ["192.0.2.0/24"] }, address).passes, true, address);
    assert.equal(decide({ deny: ["::/0"] }, address).passes, true, address);
  }
});

test("a client without an address is rejected, whatever the lists say", () => {
  for (const address of ["", "unknown", "192.0.2.7.1", "010.0.0.1"])
    assert.equal(decide({ deny: ["192.0.2.0/24"] }, address).passes, false, address);
});
