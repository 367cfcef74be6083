import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import type { ProxyProtocol } from "../../ir/ir.ts";
import type { StageOwner } from "../../net/connection-stage.ts";
import { acceptLocally } from "../../net/testing/acceptor.ts";
import type { TransportHandler } from "../../net/transport.ts";
import { REJECTED } from "./arrival.ts";
import { ProxyHeaderStage } from "./proxy-header.ts";

/** Resolves with what becomes of a client that sends `bytes` and no more. */
async function outcome(settings: ProxyProtocol, bytes: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const owner: StageOwner = {
    onStagePassed: () => {},
    onStageFailed: (_stage, message) => resolve(message),
    onFault: (error) => resolve(String(error)),
  };
  const acceptor = await acceptLocally((transport) => {
    const served = (): TransportHandler => {
      resolve("served");
      transport.destroy();
      return REJECTED;
    };
    return new ProxyHeaderStage(transport, settings, owner, served, 20);
  });
  const client = connect(acceptor.port, "127.0.0.1");
  client.on("error", () => {});
  client.resume();
  client.write(bytes);
  const [text] = await Promise.all([promise, once(client, "close")]);
  acceptor.close();
  return text;
}

test("a header that does not arrive in time ends the connection", async () => {
  const strict = { version: "v1", mode: "strict" } as const;
  assert.equal(await outcome(strict, ""), "a PROXY header of version 1 did not arrive in time");
  assert.equal(await outcome(strict, "PROXY TCP4"), "a PROXY header of version 1 did not arrive in time");
});

test("where headers are optional, a client that waits for the server to speak is served", async () => {
  const optional = { version: "all", mode: "optional" } as const;
  assert.equal(await outcome(optional, ""), "served");
  assert.equal(await outcome(optional, "PROXY TCP4"), "a PROXY header did not arrive in time");
});
