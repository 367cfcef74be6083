import assert from "node:assert/strict";
import { once } from "node:events";
import { suite, test } from "node:test";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { Acceptor, SocketBudget } from "../net/acceptor.ts";
import { DOCUMENTED, sockets } from "../net/node-internals.ts";
import type { Transport, TransportHandler } from "../net/transport.ts";
import { TlsTerminator } from "./tls-terminator.ts";

interface Served {
  readonly transport: Transport;
  /** `data:<text>` and `end`, in the order of the transport. */
  readonly events: string[];
  /** The buffers that reads have delivered. */
  readonly buffers: Set<Buffer>;
}

/** A port that ends TLS; what its clients are to each other is up to the test. */
class TlsPort implements AsyncDisposable {
  readonly served: Served[] = [];
  readonly #acceptor: Acceptor;
  readonly #clients: TLSSocket[] = [];

  private constructor(acceptor: Acceptor) {
    this.#acceptor = acceptor;
  }

  static async listen(terminator: TlsTerminator, onData = (_transport: Transport): void => {}): Promise<TlsPort> {
    const options = { host: "127.0.0.1", port: 0, reusePort: false, keepAliveDelay: 0, budget: new SocketBudget() };
    const acceptor = await Acceptor.listen(options, (transport) => ({
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
  async connect(options: ConnectionOptions): Promise<TLSSocket> {
    const client = connect({ host: "127.0.0.1", port: this.#acceptor.port, servername: "a.example", ...options });
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
      onDrain: () => {},
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

/** The next bytes that a client gets, as text. */
async function received(client: TLSSocket, length: number): Promise<string> {
  let text = "";
  while (text.length < length) text += String((await once(client, "data"))[0]);
  return text;
}

suite("bytes inside TLS", { skip: noOpenssl }, () => {
  const ca = new TestCa();
  const { cert, key } = ca.issue("a.example");
  const terminator = (): TlsTerminator => new TlsTerminator({ cert, key }, [], () => {});

  test("are read into one buffer, again and again", async () => {
    await using port = await TlsPort.listen(terminator());
    const client = await port.connect({ ca: ca.cert });
    for (const text of ["one", "two", "three"]) {
      client.write(text);
      assert.equal(await received(client, text.length), text);
    }
    assert.deepEqual(port.served[0]?.events, ["data:one", "data:two", "data:three"]);
    assert.equal(port.served[0]?.buffers.size, 1);
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

  test("that were decrypted before a pause wait for its end, and the end of the stream for them", async () => {
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
