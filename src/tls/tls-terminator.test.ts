import assert from "node:assert/strict";
import { once } from "node:events";
import { suite, test } from "node:test";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { until } from "../../test/helpers/until.ts";
import type { Acceptor } from "../net/acceptor.ts";
import { DOCUMENTED, sockets } from "../net/node-internals.ts";
import { documentedSetTickets, tlsServers } from "../net/node-internals-tls.ts";
import { acceptLocally } from "../net/testing/acceptor.ts";
import type { Transport, TransportHandler } from "../net/transport.ts";
import { TicketSecrets } from "./ticket-keys.ts";
import type { TlsServer } from "./tls-settings.ts";
import { TlsTerminator } from "./tls-terminator.ts";

interface Served {
  readonly transport: Transport;
  /** `data:<text>` and `end`, in the order of the transport. */
  readonly events: string[];
  /** The buffers that reads have delivered. */
  readonly buffers: Set<Buffer>;
}

/** A port that terminates TLS, with the clients that a test connects. */
class TlsPort implements AsyncDisposable {
  readonly served: Served[] = [];
  onDrain = (_transport: Transport): void => {};
  readonly #acceptor: Acceptor;
  readonly #clients: TLSSocket[] = [];

  private constructor(acceptor: Acceptor) {
    this.#acceptor = acceptor;
  }

  static async listen(terminator: TlsTerminator, onData = (_transport: Transport): void => {}): Promise<TlsPort> {
    const acceptor = await acceptLocally((transport) => ({
      onData: (buffer, length) => {
        terminator.accept(transport, Buffer.from(buffer.subarray(0, length)), "a.example", {
          onSecure: (secure) => port.#serve(secure, onData),
          onHandshakeFailure: (message) => assert.fail(message),
        });
      },
      onEnd: () => {},
      onDrain: () => {},
      onClose: () => {},
      onFault: (error) => assert.fail(String(error)),
    }));
    const port = new TlsPort(acceptor);
    return port;
  }

  /** A client after its handshake. */
  async connect(options: ConnectionOptions, onTicket = (_session: Buffer): void => {}): Promise<TLSSocket> {
    const client = connect({ host: "127.0.0.1", port: this.#acceptor.port, servername: "a.example", ...options });
    client.on("session", onTicket);
    this.#clients.push(client);
    await once(client, "secureConnect");
    return client;
  }

  #serve(transport: Transport, onData: (transport: Transport) => void): TransportHandler {
    const events: string[] = [];
    const buffers = new Set<Buffer>();
    this.served.push({ transport, events, buffers });
    return {
      onData: (buffer, length) => {
        buffers.add(buffer);
        events.push(`data:${buffer.toString("latin1", 0, length)}`);
        transport.write(buffer, 0, length);
        onData(transport);
      },
      onEnd: () => {
        events.push("end");
        transport.end();
      },
      onDrain: () => this.onDrain(transport),
      onClose: () => {},
      onFault: (error) => assert.fail(String(error)),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.destroy();
    for (const { transport } of this.served) transport.destroy();
    this.#acceptor.close();
  }
}

/** What a client gets until the end. */
async function receivedAll(client: TLSSocket): Promise<string> {
  let text = "";
  for await (const bytes of client) text += String(bytes);
  return text;
}

/** The next bytes that a client gets, as text. */
async function received(client: TLSSocket, length: number): Promise<string> {
  let text = "";
  while (text.length < length) text += String((await once(client, "data"))[0]);
  return text;
}

suite("bytes inside TLS", { skip: noOpenssl }, () => {
  const ca = new TestCa();
  const { cert, key } = ca.issue("a.example");
  const terminator = (): TlsTerminator =>
    new TlsTerminator("listener", { cert, key }, [], new TicketSecrets(), () => {});

  test("follow a single handshake: a client of TLS 1.2 cannot renegotiate", async () => {
    await using port = await TlsPort.listen(terminator());
    const client = await port.connect({ ca: ca.cert, maxVersion: "TLSv1.2" });
    const { promise, resolve } = Promise.withResolvers<unknown>();
    client.on("error", resolve);
    client.renegotiate({}, resolve);
    assert.match(String(await promise), /no renegotiation/);
  });

  test("are read into one buffer, which is reused", async () => {
    await using port = await TlsPort.listen(terminator());
    const client = await port.connect({ ca: ca.cert });
    for (const text of ["one", "two", "three"]) {
      client.write(text);
      assert.equal(await received(client, text.length), text);
    }
    assert.deepEqual(port.served[0]?.events, ["data:one", "data:two", "data:three"]);
    assert.equal(port.served[0]?.buffers.size, 1);
  });

  test("are encrypted with AES-128, unless the listener has suites", async () => {
    for (const [cipherSuites, expected] of [
      [undefined, "TLS_AES_128_GCM_SHA256"],
      [["TLS_AES_256_GCM_SHA384"], "TLS_AES_256_GCM_SHA384"],
    ] as const) {
      const settings = { cert, key, cipherSuites };
      await using port = await TlsPort.listen(
        new TlsTerminator("listener", settings, [], new TicketSecrets(), () => {}),
      );
      const client = await port.connect({ ca: ca.cert });
      client.write("one");
      assert.equal(await received(client, 3), "one");
      assert.equal(client.getCipher().name, expected);
    }
  });

  test("are matched to connections by address where Node's internals are missing", async (t) => {
    t.mock.method(tlsServers, "carrierOf", () => undefined);
    await using port = await TlsPort.listen(terminator());
    const clients = await Promise.all([port.connect({ ca: ca.cert }), port.connect({ ca: ca.cert })]);
    for (const [i, client] of clients.entries()) {
      client.write(`client ${i}`);
      assert.equal(await received(client, 8), `client ${i}`);
    }
  });

  test("are read by events where Node's internals are missing", async (t) => {
    t.mock.method(sockets, "readInto", DOCUMENTED.readInto);
    await using port = await TlsPort.listen(terminator());
    const client = await port.connect({ ca: ca.cert });
    client.write("one");
    assert.equal(await received(client, 3), "one");
    client.end();
    await once(client, "close");
    assert.deepEqual(port.served[0]?.events, ["data:one", "end"]);
  });

  test("that were decrypted before a pause wait until it ends, and the end of the stream follows them", async () => {
    await using port = await TlsPort.listen(terminator(), (transport) => transport.pause());
    const client = await port.connect({ ca: ca.cert, allowHalfOpen: true } as ConnectionOptions);
    // Three records, which arrive by one read.
    client.setMaxSendFragment(512);
    const [first, rest] = ["a".repeat(512), `${"b".repeat(512)}c`];
    client.end(first + rest);
    assert.equal(await received(client, 512), first);
    const { events, transport } = port.served[0] ?? assert.fail();
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    assert.deepEqual(events, [`data:${first}`]);
    transport.resume();
    assert.deepEqual(events, [`data:${first}`], "not inside the call");
    assert.equal(await received(client, 513), rest);
    assert.deepEqual(events.slice(1), [`data:${rest}`]);
    const ended = once(client, "end");
    transport.resume();
    await ended;
    assert.equal(events.at(-1), "end");
  });
});

suite("writes inside TLS", { skip: noOpenssl }, () => {
  const ca = new TestCa();
  const { cert, key } = ca.issue("a.example");
  const listen = (onData: (transport: Transport) => void): Promise<TlsPort> =>
    TlsPort.listen(new TlsTerminator("listener", { cert, key }, [], new TicketSecrets(), () => {}), onData);
  const part = (name: string, length: number): string => name.repeat(length);

  /** Everything that a transport can do to write, in one turn; `taken` gets what `whenTaken` and `send` say. */
  function writeAll(transport: Transport, taken: string[]): string {
    const piece = (name: string): string => part(name, 20_000);
    const [a, b, c, d, e, f] = [piece("a"), piece("b"), piece("c"), piece("d"), piece("e"), piece("f")];
    transport.writeText(a);
    transport.whenTaken(() => taken.push("a"));
    transport.write(Buffer.from(b), 0, b.length);
    transport.send(Buffer.from(c), () => taken.push("c"));
    transport.gatherText(d);
    transport.gather(Buffer.from(e), 0, e.length);
    transport.flush();
    transport.writeText(f);
    return a + b + c + d + e + f;
  }

  for (const way of ["past the stream", "through the stream"] as const)
    test(`keep their order, and the end follows them (${way})`, async (t) => {
      if (way === "through the stream") t.mock.method(sockets, "directWrites", DOCUMENTED.directWrites);
      const taken: string[] = [];
      let sent = "";
      await using port = await listen((transport) => {
        sent = writeAll(transport, taken);
        transport.end();
      });
      const client = await port.connect({ ca: ca.cert });
      client.write("go");
      assert.ok((await receivedAll(client)) === `go${sent}`);
      assert.deepEqual(taken, ["a", "c"]);
    });

  test("wait for a client that reads slowly, and report once when they are sent", async () => {
    let drained = 0;
    const [large, small] = [part("x", 16 * 1024 * 1024), part("y", 70_000)];
    await using port = await listen((transport) => {
      assert.equal(transport.writeText(large), false);
      assert.equal(transport.writeText(small), false);
    });
    port.onDrain = (transport) => {
      assert.equal(transport.backlog, 0);
      drained++;
      transport.writeText("end");
      transport.end();
    };
    const client = await port.connect({ ca: ca.cert });
    client.write("go");
    client.pause();
    await until(() => port.served.length > 0 && port.served[0]?.events.length === 1);
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    const { transport } = port.served[0] ?? assert.fail();
    assert.ok(transport.backlog > small.length);
    assert.ok((await receivedAll(client)) === `go${large}${small}end`);
    assert.equal(drained, 1);
  });

  test("in progress end with the connection", async () => {
    await using port = await listen((transport) => {
      transport.writeText("one");
      transport.writeText("two");
      transport.destroy();
    });
    const client = await port.connect({ ca: ca.cert });
    client.on("error", () => {});
    client.resume();
    client.write("go");
    await once(client, "close");
    // A second write would have ended the process.
    assert.equal(port.served.length, 1);
  });
});

/** One connection to `terminator` and back; the latest ticket it got, and whether `session` was resumed. */
async function visit(
  terminator: TlsTerminator,
  options: ConnectionOptions,
): Promise<{ ticket: Buffer | undefined; resumed: boolean; verified: boolean }> {
  await using port = await TlsPort.listen(terminator);
  const tickets: Buffer[] = [];
  const client = await port.connect(options, (ticket) => tickets.push(ticket));
  // Tickets of TLS 1.3 come after the handshake, before what is echoed.
  client.write("hello");
  assert.equal(await received(client, 5), "hello");
  const verified = port.served[0]?.transport.tls?.client !== undefined;
  // Node reports no ticket that renews a session of TLS 1.2.
  const ticket = client.getProtocol() === "TLSv1.2" ? client.getSession() : tickets.at(-1);
  return { ticket, resumed: client.isSessionReused(), verified };
}

suite("sessions", { skip: noOpenssl }, () => {
  const ca = new TestCa();
  const identity = ca.issue("a.example");
  const { cert, key } = identity;
  const server = (secrets: TicketSecrets, settings: Partial<TlsServer> = {}, name = "listener"): TlsTerminator =>
    new TlsTerminator(name, { cert, key, ...settings }, [], new TicketSecrets(secrets.memory), () => {});

  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    test(`are resumed by every worker, and get a new ticket (${maxVersion})`, async () => {
      const secrets = new TicketSecrets();
      const options = { ca: ca.cert, maxVersion };
      const first = await visit(server(secrets), options);
      assert.equal(first.resumed, false);
      const second = await visit(server(secrets), { ...options, session: first.ticket });
      assert.equal(second.resumed, true);
      assert.notDeepEqual(second.ticket, first.ticket);
      const third = await visit(server(secrets), { ...options, session: second.ticket });
      assert.equal(third.resumed, true);
    });
  }

  test("outlive one rotation of the secrets, not two", async () => {
    const secrets = new TicketSecrets();
    const terminator = server(secrets);
    const { ticket } = await visit(terminator, { ca: ca.cert });
    secrets.rotate();
    const renewed = await visit(terminator, { ca: ca.cert, session: ticket });
    assert.equal(renewed.resumed, true);
    secrets.rotate();
    assert.equal((await visit(terminator, { ca: ca.cert, session: ticket })).resumed, false);
    assert.equal((await visit(terminator, { ca: ca.cert, session: renewed.ticket })).resumed, true);
  });

  test("belong to one listener with one set of settings, in one process", async () => {
    const secrets = new TicketSecrets();
    const { ticket: session } = await visit(server(secrets), { ca: ca.cert });
    const client = ca.issue("client");
    const options = { ca: ca.cert, cert: client.cert, key: client.key, session };
    const others = [
      server(secrets, {}, "another"),
      server(secrets, { clientCa: ca.cert }),
      server(secrets, { minVersion: "TLSv1.3" }),
      server(new TicketSecrets()),
    ];
    for (const other of others) assert.equal((await visit(other, options)).resumed, false);
    assert.equal((await visit(server(secrets), options)).resumed, true);
  });

  test("with a client's certificate keep it, and end with their first tickets", async () => {
    const secrets = new TicketSecrets();
    const client = ca.issue("client");
    const options = { ca: ca.cert, cert: client.cert, key: client.key };
    const first = await visit(server(secrets, { clientCa: ca.cert }), options);
    const second = await visit(server(secrets, { clientCa: ca.cert }), { ...options, session: first.ticket });
    assert.deepEqual([second.resumed, second.verified, second.ticket], [true, true, undefined]);
  });

  test("are resumed with the documented API too, until a rotation", async (t) => {
    t.mock.method(tlsServers, "setTickets", documentedSetTickets);
    const secrets = new TicketSecrets();
    const terminator = server(secrets);
    const { ticket } = await visit(server(secrets), { ca: ca.cert });
    assert.equal((await visit(terminator, { ca: ca.cert, session: ticket })).resumed, true);
    secrets.rotate();
    const after = await visit(terminator, { ca: ca.cert, session: ticket });
    assert.equal(after.resumed, false);
    assert.equal((await visit(terminator, { ca: ca.cert, session: after.ticket })).resumed, true);
  });
});
