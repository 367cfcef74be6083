import assert from "node:assert/strict";
import { test } from "node:test";
import { RawPeer } from "../../test/helpers/raw-peer.ts";
import { ConnectionStage, type StageOwner } from "./connection-stage.ts";
import { acceptLocally } from "./testing/acceptor.ts";
import type { Transport, TransportHandler } from "./transport.ts";

/** A stage that takes one line: `pass`, `pause` (reads no more until it has passed) or `throw`; anything else is rejected. */
class LineStage extends ConnectionStage {
  readonly lines: string[] = [];
  readonly #notes: string[];
  readonly #next: () => TransportHandler;
  protected readonly state = "line";
  protected readonly closedEarly = "closed before a line";

  constructor(transport: Transport, owner: StageOwner, notes: string[], next: () => TransportHandler) {
    super(owner);
    this.#notes = notes;
    this.#next = next;
    this.begin(transport, 1000);
  }

  protected override get allowHalfClose(): boolean {
    return true;
  }

  protected onHeld(): void {
    const text = this.held.view().toString("latin1");
    this.#notes.push(`held ${text.length}`);
    const end = text.indexOf("\n");
    if (end === -1) return;
    const line = text.slice(0, end);
    if (line === "throw") throw new Error("defect");
    this.held.consume(this.held.start + end + 1);
    if (line === "pause") this.transport.pause();
    else if (line === "pass") this.pass(this.#next);
    else this.reject(`not a line: ${line}`);
  }

  protected onExpired(): void {
    this.reject("too late");
  }

  protected override onClosed(): void {
    this.#notes.push("stage closed");
  }

  letPass(): void {
    this.pass(this.#next);
  }
}

/** A server with the stage, and what is reported about its one connection. */
async function serve() {
  const notes: string[] = [];
  let stage: LineStage | undefined;
  const wakers = new Set<() => void>();
  const note = (text: string): void => {
    notes.push(text);
    for (const wake of wakers) wake();
  };
  const next: TransportHandler = {
    onData: (buffer, length) => note(`next ${buffer.toString("latin1", 0, length)}`),
    onEnd: () => note("next end"),
    onDrain: () => {},
    onClose: () => note("next close"),
    onFault: () => note("next fault"),
  };
  const owner: StageOwner = {
    onStagePassed: () => note("passed"),
    onStageFailed: (_stage, message) => note(`failed: ${message}`),
    onFault: (error) => note(String(error)),
  };
  const acceptor = await acceptLocally((transport) => {
    stage = new LineStage(transport, owner, notes, () => next);
    return stage;
  });
  const client = await RawPeer.connect(acceptor.port);
  return {
    notes,
    client,
    /** The stage, once the connection has been accepted. */
    get stage(): LineStage {
      assert.ok(stage !== undefined);
      return stage;
    },
    /** Waits until `text` has been recorded. */
    async until(text: string): Promise<void> {
      for (let turn = 0; turn < 200_000 && !notes.includes(text); turn++) await new Promise(setImmediate);
      assert.ok(notes.includes(text), `no ${text} in ${notes.join(", ")}`);
    },
    [Symbol.dispose]: () => {
      client.socket.destroy();
      acceptor.close();
    },
  };
}

test("what a stage has not used goes to the next handler, with the FIN that came meanwhile", async () => {
  using server = await serve();
  server.client.send("pau");
  await server.until("held 3");
  server.client.send("se\nearly");
  await server.until("held 11");
  server.client.send("unread");
  server.client.end();
  server.stage.letPass();
  await server.until("next end");
  assert.deepEqual(server.notes.slice(2), ["stage closed", "passed", "next early", "next unread", "next end"]);
});

test("a FIN before the stage has passed is forwarded after the bytes", async () => {
  using server = await serve();
  server.client.send("early");
  await server.until("held 5");
  server.stage.onEnd();
  server.stage.letPass();
  await server.until("next end");
  assert.deepEqual(server.notes, ["held 5", "stage closed", "passed", "next early", "next end"]);
});

test("the deadline ends the stage, unless it has passed", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  {
    using late = await serve();
    late.client.send("pas");
    await late.until("held 3");
    t.mock.timers.tick(999);
    assert.deepEqual(late.notes, ["held 3"]);
    t.mock.timers.tick(1);
    await late.until("failed: too late");
    assert.deepEqual(late.notes, ["held 3", "stage closed", "failed: too late"]);
  }
  using early = await serve();
  early.client.send("pass\n");
  await early.until("passed");
  t.mock.timers.tick(1000);
  early.client.send("more");
  await early.until("next more");
  assert.deepEqual(early.notes, ["held 5", "stage closed", "passed", "next more"]);
});

type Server = Awaited<ReturnType<typeof serve>>;

for (const { name, act, reports } of [
  {
    name: "a rejection",
    act: ({ client }: Server) => client.send("what\n"),
    reports: ["held 6", "stage closed", "failed: not a line:  what"],
  },
  {
    name: "its owner",
    act: ({ stage }: Server) => stage.terminate("the gateway shut down"),
    reports: ["stage closed", "failed: the gateway shut down before the connection was done"],
  },
  {
    name: "the client",
    act: ({ client }: Server) => client.reset(),
    reports: ["stage closed", "failed: read ECONNRESET"],
  },
])
  test(`a stage ends once, and the connection with it: by ${name}`, async () => {
    using server = await serve();
    server.client.send(" ");
    await server.until("held 1");
    server.notes.length = 0;
    act(server);
    await server.until(reports.at(-1) ?? "");
    // Bytes that the system had read before the end are ignored.
    server.stage.onData(Buffer.from("pass\n"), 5);
    server.stage.terminate("again");
    if (name !== "the client") await server.client.closed();
    assert.deepEqual(server.notes, reports);
  });

test("a stage that throws reports the defect, and the connection ends", async () => {
  using server = await serve();
  server.client.send("throw\n");
  await server.client.closed();
  await server.until("failed: closed before a line");
  assert.deepEqual(server.notes, ["held 6", "Error: defect", "stage closed", "failed: closed before a line"]);
});
