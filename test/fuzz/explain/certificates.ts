/** Certificates for listeners with TLS and their clients: a good one, and one for each thing that can be wrong. */
import { type Identity, TestCa } from "../../helpers/certificates.ts";

const ca = new TestCa();
// Configurations name its files.
process.once("exit", () => ca[Symbol.dispose]());
using stranger = new TestCa("stranger");

/** Of clients and backends. */
export const CA_FILE = ca.certFile;
export const BACKEND = ca.issue("backend.test");
/** One that its clients do not trust. */
export const IMPOSTOR = stranger.issue("backend.test");
export const SERVER = ca.issue("*.test");

export const SPIFFE_ID = "spiffe://cluster.test/ns/shop/sa/cart";

/** PEM of the certificate and its key, as `--cert` of curl takes them. */
export const CLIENTS = {
  good: pemOf(ca.issue("client.test", SPIFFE_ID)),
  expired: pemOf(ca.issueExpired("client.test")),
  foreign: pemOf(stranger.issue("client.test")),
};

function pemOf({ cert, key }: Identity): string {
  return `${cert}${key}`;
}
