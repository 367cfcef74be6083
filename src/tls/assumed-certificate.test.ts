import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { connect, createServer, type TLSSocket } from "node:tls";
import { type Identity, noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { tlsServers } from "../net/node-internals-tls.ts";
import { certificatesIn, whyRejected } from "./assumed-certificate.ts";
import { readIssuer } from "./x509/issuer.ts";
import { mintLeaf } from "./x509/leaf.ts";

/** What a handshake says about a client's certificate, with this CA. */
async function handshake(server: Identity, clientCa: string, cert: string, key: string): Promise<string | undefined> {
  const tls = createServer({ ...server, ca: clientCa, requestCert: true, rejectUnauthorized: false });
  tlsServers.trustIntermediates(tls);
  tls.listen(0, "127.0.0.1");
  await once(tls, "listening");
  const { port } = tls.address() as AddressInfo;
  const secured = once(tls, "secureConnection");
  const client = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, cert, key });
  const [socket] = (await secured) as [TLSSocket];
  client.destroy();
  socket.destroy();
  tls.close();
  await once(tls, "close");
  return socket.authorized ? undefined : String(socket.authorizationError);
}

test("a certificate without its key is judged as a handshake with the key judges it", { skip: noOpenssl }, async () => {
  using ca = new TestCa();
  using other = new TestCa("another CA");
  const server = ca.issue("a.example");
  const intermediate = ca.issueCa("intermediate");
  const below = ca.issueBelow(intermediate, "client.example");
  const forServers = mintLeaf(readIssuer(ca.cert, ca.key), "client.example", Date.now());
  const valid = ca.issue("client.example");
  const expired = ca.issueExpired("client.example");
  const early = ca.issueEarly("client.example");
  const foreign = other.issue("client.example");
  const cases: readonly (readonly [what: string, cert: string, key: string, clientCa: string])[] = [
    ["valid", valid.cert, valid.key, ca.cert],
    ["one of two CAs", foreign.cert, foreign.key, ca.cert + other.cert],
    ["expired", expired.cert, expired.key, ca.cert],
    ["not valid yet", early.cert, early.key, ca.cert],
    ["of another CA", foreign.cert, foreign.key, ca.cert],
    ["with its intermediate", below.cert + intermediate.cert, below.key, ca.cert],
    ["without its intermediate", below.cert, below.key, ca.cert],
    ["of a trusted intermediate", below.cert, below.key, intermediate.cert],
    ["with an intermediate of another CA", below.cert + intermediate.cert, below.key, other.cert],
    ["of servers only", forServers.cert, forServers.key, ca.cert],
  ];
  for (const [what, cert, key, clientCa] of cases)
    assert.equal(whyRejected(certificatesIn(cert), clientCa), await handshake(server, clientCa, cert, key), what);
});
