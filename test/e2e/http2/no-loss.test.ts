import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { BusyBackend } from "../../helpers/busy-backend.ts";
import { type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { LateLink } from "../../helpers/late-link.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer } from "../../helpers/raw-peer.ts";
import { tlsConnect } from "../tls/support.ts";

/** Clients that send requests without a pause on a connection that they keep, several at a time. */
const BUSY_CLIENTS = 6;
const STREAMS = 5;
/** Clients whose connection is idle most of the time. */
const PAUSING_CLIENTS = 8;
const MAX_PAUSE_MS = 100;
/** Clients that open a connection for every request. */
const FRESH_CLIENTS = 4;

/** An idle timeout, and the delay with which distant clients get what the gateway sends. */
const IDLE_MS = 60;
const LATE_MS = 30;

/** The outcomes of the requests of all clients. */
interface Tally {
  answered: number;
  /** Clients that have ended because the port is closed. */
  refused: number;
  /** Requests that were sent before their client got the GOAWAY, and whose response came after it. */
  crossed: number;
  readonly lost: string[];
  stopped: boolean;
}

suite("HTTP/2 under load", () => {
  let backend: BusyBackend;

  before(async () => {
    backend = await BusyBackend.start();
  });
  after(() => backend[Symbol.dispose]());

  const routes = () => [{ backends: [{ host: backend.address, policies: { http: { version: "HTTP/1.1" } } }] }];
  const settings = { config: { workerThreads: 2 } };

  test("a shutdown loses no request", async () => {
    await using gateway = await GatewayProcess.start({
      ...settings,
      binds: [{ port: 0, listeners: [{ routes: routes() }] }],
    });
    const tally = newTally();
    const port = gateway.port();
    const clients = allClients(() => RawPeer.connect(port), tally);
    while (tally.answered < 500) await delay(5);
    gateway.process.kill("SIGTERM");
    await Promise.all(clients);
    assert.deepEqual(tally.lost, []);
    assert.equal(tally.refused, clients.length);
    assert.equal(await gateway.exited(), 0);
    assert.ok(!gateway.lines.some(({ level }) => level === "warn"), "nothing was cut");
  });

  test("an idle timeout loses no request, although clients see the GOAWAY late", async () => {
    await using gateway = await LocalGateway.start({
      frontendPolicies: { http: { http1IdleTimeout: `${IDLE_MS}ms` } },
      binds: [{ port: 0, listeners: [{ routes: routes() }] }],
    });
    await using link = await LateLink.start(gateway.port(), LATE_MS);
    const tally = newTally();
    const clients: Promise<void>[] = [];
    for (let i = 0; i < PAUSING_CLIENTS; i++)
      clients.push(new Client(() => RawPeer.connect(link.port), tally, true).run(1, 2 * IDLE_MS, false));
    while (tally.crossed < 10 && tally.lost.length === 0) await delay(5);
    tally.stopped = true;
    await Promise.all(clients);
    assert.deepEqual(tally.lost, []);
  });

  suite("inside TLS", { skip: noOpenssl }, () => {
    let ca: TestCa;
    before(() => {
      ca = new TestCa();
    });
    after(() => ca[Symbol.dispose]());

    test("new routes, certificates and TLS settings lose no request", async () => {
      const config = ({ certFile: cert, keyFile: key }: Identity, name: string, tls: object = {}): object => ({
        ...settings,
        binds: [
          {
            port: 0,
            listeners: [
              {
                protocol: "HTTPS",
                tls: { cert, key, ...tls },
                routes: [{ name, matches: [{ path: { exact: `/${name}` } }], ...routes()[0] }, ...routes()],
              },
            ],
          },
        ],
      });
      const [first, second] = [ca.issue("a.example"), ca.issue("a.example")];
      await using gateway = await GatewayProcess.start(config(first, "one"));
      const tally = newTally();
      const port = gateway.port();
      const options = { ca: ca.cert, servername: "a.example", ALPNProtocols: ["h2"] };
      const clients = allClients(async () => (await tlsConnect(port, options)).peer, tally);
      const answered = async (more: number): Promise<void> => {
        const goal = tally.answered + more;
        while (tally.answered < goal && tally.lost.length === 0) await delay(5);
      };
      await answered(200);
      for (const next of [
        config(first, "two"),
        config(second, "two"),
        config(second, "two", { minTLSVersion: "TLS_V1_3" }),
      ]) {
        assert.equal(await gateway.reconfigure(next), "applied");
        await answered(200);
      }
      tally.stopped = true;
      await Promise.all(clients);
      assert.deepEqual(tally.lost, []);
    });
  });
});

function newTally(): Tally {
  return { answered: 0, refused: 0, crossed: 0, lost: [], stopped: false };
}

/** Opens a connection. */
type Target = () => Promise<RawPeer>;

function allClients(target: Target, tally: Tally): Promise<void>[] {
  const clients: Promise<void>[] = [];
  for (let i = 0; i < BUSY_CLIENTS; i++) clients.push(new Client(target, tally).run(STREAMS, 0, false));
  for (let i = 0; i < PAUSING_CLIENTS; i++) clients.push(new Client(target, tally).run(1, MAX_PAUSE_MS, false));
  for (let i = 0; i < FRESH_CLIENTS; i++) clients.push(new Client(target, tally).run(1, 0, true));
  return clients;
}

/** Uses a connection until it is asked to leave, then another one. Sends no request twice. */
class Client {
  readonly #target: Target;
  readonly #tally: Tally;
  readonly #waits: boolean;
  #client: H2Client | undefined;
  #connecting: Promise<void> | undefined;
  #refused = false;
  #nextId = 1;

  /** `waits`: until the gateway has acknowledged its settings. A connection on which nothing has arrived closes without a GOAWAY. */
  constructor(target: Target, tally: Tally, waits = false) {
    this.#target = target;
    this.#tally = tally;
    this.#waits = waits;
  }

  /** Sends requests on `streams` streams at a time until connections are refused. */
  async run(streams: number, maxPause: number, fresh: boolean): Promise<void> {
    await Promise.all(Array.from({ length: streams }, () => this.#send(maxPause, fresh)));
    if (this.#refused) this.#tally.refused++;
    this.#client?.peer.socket.destroy();
  }

  async #send(maxPause: number, fresh: boolean): Promise<void> {
    while (!this.#tally.stopped) {
      await this.#connect();
      const client = this.#client;
      if (this.#refused || client === undefined) return;
      const id = this.#nextId;
      this.#nextId += 2;
      client.request(id);
      const record = client.stream(id);
      await client.received(() => record.ended || record.reset !== undefined);
      if (record.ended && record.body === "complete") {
        this.#tally.answered++;
        if (client.goAways.length > 0) this.#tally.crossed++;
      } else this.#tally.lost.push(`${id}: ${JSON.stringify(record)} after GOAWAY ${client.goAways.join("; ")}`);
      client.streams.delete(id);
      if (fresh) {
        client.peer.socket.destroy();
        this.#client = undefined;
      }
      if (maxPause > 0) await delay(Math.random() * maxPause);
    }
  }

  /** Opens another connection if this one is being left; one for all streams. */
  async #connect(): Promise<void> {
    const client = this.#client;
    if (client !== undefined && client.goAways.length === 0 && client.peer.ended === undefined) return;
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = undefined;
    });
    await this.#connecting;
  }

  async #open(): Promise<void> {
    try {
      let client: H2Client;
      do {
        client = new H2Client(await this.#target());
        client.greet();
        if (this.#waits) await client.received(() => client.settingsAcks > 0);
      } while (client.goAways.length > 0 || client.peer.ended !== undefined);
      this.#client = client;
      this.#nextId = 1;
    } catch (error) {
      this.#client = undefined;
      if ((error as NodeJS.ErrnoException).code !== "ECONNREFUSED") this.#tally.lost.push(`connect: ${String(error)}`);
      this.#refused = true;
    }
  }
}
