/**
 * The rules that are fuzzed: whatever streams do and however they end, the engine sends what the windows of its peer allow and nothing
 * else, and gives back the credit for every byte that it received. After random frames, pauses, resets and faults both sides end
 * all streams; then the windows of the connection have to be whole again, to the byte. And: broken frames end the connection, each
 * stream hears of it once, and nothing throws.
 */
import {
  DATA,
  DEFAULT_WINDOW,
  HEADERS,
  PRIORITY,
  PRIORITY_UPDATE,
  RST_STREAM,
  WINDOW_UPDATE,
} from "../../../src/http/h2/frames.ts";
import type { Http2Settings } from "../../../src/http/h2/settings.ts";
import { setMemoryShort } from "../../../src/net/frugality.ts";
import { Dice } from "../dice.ts";
import { EngineSide } from "./engine.ts";
import { ModelPeer, type ModelStream, Violation } from "./model.ts";
import { Wire } from "./wire.ts";

const STATUS_200 = Buffer.of(0x88);
const STATUS_103 = Buffer.from("0803313033", "hex");
/** `a: b` */
const TRAILER = Buffer.from("0001610162", "hex");
const MAX_STREAMS = 20;
/** Turns of the event loop after which something that was to happen will not. */
const PATIENCE = 500;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

class Game {
  readonly dice: Dice;
  readonly model: ModelPeer;
  readonly side: EngineSide;
  readonly #wire: Wire;
  /** Bytes that the peer has sent and that have not arrived. */
  #onTheWay = Buffer.alloc(0);
  #violation: unknown;
  readonly #role: "server" | "client";
  #announcements = 0;

  constructor(seed: number) {
    const dice = new Dice(seed);
    this.dice = dice;
    this.#role = dice.of(["server", "client"]);
    const streamWindow = dice.of([1000, DEFAULT_WINDOW, 100_000]);
    const settings: Http2Settings = {
      streamWindow,
      frugalWindow: this.#role === "client" ? dice.of([streamWindow, 500]) : streamWindow,
      largestWindow: streamWindow * dice.of([1, 1, 10]),
      connectionWindow: dice.of([DEFAULT_WINDOW, 100_000, 1_000_000]),
      maxFrameSize: 16_384,
      maxHeaderListSize: 16_384,
      maxFields: 100,
      maxStreams: 100,
      connectProtocol: false,
    };
    this.model = new ModelPeer(this.#role, settings);
    this.#wire = new Wire((bytes) => {
      try {
        this.model.receive(bytes);
      } catch (error) {
        this.#violation ??= error;
      }
    });
    let side: EngineSide | undefined;
    this.#wire.connect((transport) => {
      side = new EngineSide(this.#role, transport, settings, dice);
      return side.connection;
    });
    if (side === undefined) throw new Error("not connected");
    this.side = side;
  }

  /** Lets what the peer has sent arrive, whole or in part. */
  deliver(whole: boolean): void {
    this.#onTheWay = Buffer.concat([this.#onTheWay, this.model.take()]);
    while (this.#onTheWay.length > 0) {
      const length = whole ? this.#onTheWay.length : 1 + this.dice.below(this.#onTheWay.length);
      this.push(this.#onTheWay.subarray(0, length));
      this.#onTheWay = this.#onTheWay.subarray(length);
      if (!whole && this.dice.chance(0.5)) return;
    }
  }

  push(bytes: Buffer): void {
    if (!this.#wire.destroyed && !this.#wire.readableEnded) this.#wire.push(Buffer.from(bytes));
  }

  check(): void {
    const wrong = this.#violation ?? this.side.problem;
    if (wrong !== undefined) throw wrong;
    if (this.model.goAway !== "") throw new Violation(`the engine has ended the connection: ${this.model.goAway}`);
  }

  /** Streams may be opened. A client of the model knows the settings of the engine first; the engine need not wait for its server. */
  async begin(): Promise<void> {
    if (this.#role === "server" || this.dice.chance(0.5)) await this.settle();
  }

  /** What was sent so far has been handled on both sides, again and again until `done`. */
  async until(done: () => boolean, what: string): Promise<void> {
    for (let turns = 0; !done(); turns++) {
      if (turns > PATIENCE) throw new Violation(`in vain: ${what}`);
      this.deliver(true);
      await turn();
      this.check();
    }
  }

  async settle(): Promise<void> {
    for (let round = 0; round < 2; round++) {
      this.model.ping();
      await this.until(() => this.model.pongs === this.model.pings, "an answer to PING");
    }
  }

  /** One random step of either side. */
  step(): void {
    const { dice, model, side } = this;
    const { sendable } = model;
    const open = model.openStreams;
    const stream = sendable.length > 0 ? dice.of(sendable) : undefined;
    const streams = side.streams.filter((each) => !side.gone.has(each) || !each.ended);
    const own = streams.length > 0 ? dice.of(streams) : undefined;
    switch (dice.below(17)) {
      case 0:
      case 1:
        if (open.length >= MAX_STREAMS) break;
        if (this.#role === "client") side.open();
        else model.open(dice.chance(0.2), 1 + dice.below(3));
        break;
      case 2:
      case 3:
      case 4:
        if (stream !== undefined) this.#sendData(stream);
        break;
      case 5:
        if (stream !== undefined && dice.chance(0.5)) this.#sendBlock(stream);
        break;
      case 6:
        if (open.length > 0 && dice.chance(0.3)) model.reset(dice.of(open), dice.of([0, 1, 7, 8]));
        break;
      case 7:
        model.credit(undefined, 1 + dice.below(20_000));
        break;
      case 8:
        if (open.length > 0) model.credit(dice.of(open), 1 + dice.below(20_000));
        break;
      case 9:
        if (this.#announcements++ < 20) model.announceWindow(dice.of([0, 1, 1000, DEFAULT_WINDOW, 200_000]));
        break;
      case 10:
        this.#sendNoise();
        break;
      case 11:
        this.#wire.congested = true;
        break;
      case 12:
        this.#wire.relax();
        break;
      case 13:
        own?.hold();
        break;
      case 14:
        own?.goOn();
        break;
      case 15:
        setMemoryShort(dice.chance(0.5));
        break;
      default:
        own?.beginOrCancel();
    }
  }

  #sendData(stream: ModelStream): void {
    const { dice, model } = this;
    // A response begins with its head.
    if (this.#role === "client" && stream.sent === 0 && !this.#answered.has(stream)) this.#answer(stream);
    const room = model.room(stream);
    const padding = dice.chance(0.2) ? Math.min(room, 1 + dice.below(256)) : 0;
    const rest = room - padding;
    model.sendData(stream, dice.chance(0.3) ? rest : dice.below(rest + 1), padding, dice.chance(0.1));
  }
  readonly #answered = new Set<ModelStream>();

  #answer(stream: ModelStream): void {
    this.#answered.add(stream);
    this.model.sendBlock(stream, STATUS_200, false);
  }

  #sendBlock(stream: ModelStream): void {
    const { dice, model } = this;
    if (this.#role === "server") model.sendBlock(stream, TRAILER, true, 1 + dice.below(3));
    else if (this.#answered.has(stream)) model.sendBlock(stream, TRAILER, true);
    else if (dice.chance(0.5)) model.sendBlock(stream, STATUS_103, false);
    else this.#answer(stream);
  }

  #sendNoise(): void {
    const { dice, model } = this;
    const open = model.openStreams;
    const id = open.length > 0 ? dice.of(open).id : 1;
    const priority = Buffer.alloc(5);
    priority.writeUInt32BE(id);
    switch (dice.below(4)) {
      case 0:
        model.ping();
        break;
      case 1:
        model.send(0xbe, 0xff, dice.below(10), Buffer.alloc(dice.below(50)));
        break;
      case 2:
        model.send(PRIORITY, 0, id + 2, priority);
        break;
      default: {
        const value = Buffer.from(`u=${dice.below(8)}, i`);
        if (this.#role === "server") model.send(PRIORITY_UPDATE, 0, 0, Buffer.concat([priority.subarray(0, 4), value]));
      }
    }
  }

  /** Both sides end all streams in good order. */
  async endAll(): Promise<void> {
    const { model, side } = this;
    side.wild = false;
    this.#wire.relax();
    this.deliver(true);
    await this.settle();
    for (const stream of side.streams) stream.goOn();
    await this.settle();
    this.#checkStreamWindows();
    for (const stream of side.streams) stream.finish();
    for (const stream of model.sendable) {
      if (this.#role === "client" && !this.#answered.has(stream)) this.#answer(stream);
      model.sendData(stream, 0, 0, true);
    }
    await this.until(
      () => {
        // As much as the engine needs, step by step.
        if (model.receiveWindow < 50_000) model.credit(undefined, 50_000);
        for (const stream of model.openStreams) if (stream.receiveWindow < 20_000) model.credit(stream, 50_000);
        return model.openStreams.length === 0 && side.connection.streamCount === 0;
      },
      `the end of all streams; open: ${model.openStreams.map(({ id }) => id)}, of the engine: ${side.connection.streamCount}`,
    );
    await this.settle();
  }

  /** What a stream has taken comes back once it is half of its window: less than that may be missing. */
  #checkStreamWindows(): void {
    const { model, side } = this;
    for (const stream of model.sendable) {
      const own = side.streams.find(({ id }) => id === stream.id);
      if (own === undefined || own.finished !== "") continue;
      const missing = model.engineStreamWindow - stream.sendWindow;
      if (missing > 0 && missing >= model.engineStreamWindow / 2)
        throw new Violation(`stream ${stream.id} has taken all, and ${missing} bytes of its window are missing`);
    }
  }

  /** The engine has to give back exactly what it received since the beginning. */
  async checkReceiving(): Promise<void> {
    const { model } = this;
    const whole = model.engineConnectionWindow;
    const pending = whole - model.sendWindow;
    if (pending >= whole / 2)
      throw new Violation(`${pending} bytes of the connection's window of ${whole} are missing`);
    // With these bytes it has taken half of the window, so it gives back all of it.
    let left = Math.ceil(whole / 2) - pending;
    const stream = await this.#freshStream();
    while (left > 0) {
      await this.until(() => model.room(stream) > 0, `credit for stream ${stream.id}`);
      // The last byte on its own: the credit comes with it.
      const length = Math.min(model.room(stream), left > 1 ? left - 1 : 1);
      model.sendData(stream, length, 0, false);
      left -= length;
    }
    await this.settle();
    // A window that has grown shrinks with what the next streams send.
    const exact = model.engineLargestWindow === model.engineStreamWindow;
    if (exact ? model.sendWindow !== whole : model.sendWindow < whole / 2)
      throw new Violation(`${whole - model.sendWindow} bytes of credit have leaked`);
    model.sendData(stream, 0, 0, true);
    this.side.streams.at(-1)?.finish();
    await this.endAll();
  }

  /** The engine has to use the window of its peer to the last byte. */
  async checkSending(): Promise<void> {
    const { model, side } = this;
    const stream = await this.#freshStream();
    const more = 1000;
    model.credit(stream, model.receiveWindow + more + DEFAULT_WINDOW);
    side.streams.at(-1)?.begin(model.receiveWindow + more);
    await this.until(() => model.receiveWindow <= 0, "the window to be used up");
    await this.settle();
    model.credit(undefined, more + DEFAULT_WINDOW);
    await this.endAll();
  }

  async #freshStream(): Promise<ModelStream> {
    const { model, side } = this;
    model.announceWindow(DEFAULT_WINDOW);
    if (this.#role === "server") {
      const stream = model.open(false);
      await this.settle();
      return stream;
    }
    const { id } = side.open();
    await this.until(() => model.streams.has(id), `stream ${id}`);
    const stream = model.streams.get(id);
    if (stream === undefined) throw new Error("unreachable");
    this.#answer(stream);
    await this.settle();
    return stream;
  }

  /** Frames that no peer sends; then the end of the transport, in one of its ways. */
  async breakDown(): Promise<void> {
    const { dice, model, side } = this;
    this.#wire.relax();
    side.broken = true;
    for (let n = 1 + dice.below(10); n > 0; n--) {
      const type = dice.of([
        DATA,
        HEADERS,
        PRIORITY,
        RST_STREAM,
        4,
        5,
        6,
        7,
        WINDOW_UPDATE,
        9,
        PRIORITY_UPDATE,
        dice.below(256),
      ]);
      const payload = Buffer.from(
        Array.from({ length: dice.of([0, 1, 4, 5, 6, 8, dice.below(100)]) }, () => dice.below(256)),
      );
      model.send(type, dice.below(256), dice.chance(0.8) ? dice.below(2 * MAX_STREAMS) : dice.below(2 ** 31), payload);
    }
    let bytes = model.take();
    if (dice.chance(0.5)) bytes = bytes.subarray(dice.below(bytes.length));
    for (let at = 0; at < bytes.length; ) {
      const length = 1 + dice.below(bytes.length);
      this.push(bytes.subarray(at, at + length));
      at += length;
      if (dice.chance(0.3)) await turn();
    }
    await turn();
    if (dice.chance(0.5)) this.#wire.push(null);
    else this.#wire.destroy(dice.chance(0.5) ? new Error("reset by the test") : undefined);
    for (let turns = 0; side.closed === 0 && turns < PATIENCE; turns++) {
      // It may linger, so that its GOAWAY arrives.
      side.connection.sweep(performance.now() + 10_000);
      await turn();
    }
    if (side.problem !== undefined) throw side.problem;
    if (side.closed !== 1) throw new Violation(`onClosed was called ${side.closed} times`);
    side.wild = false;
    for (const stream of side.streams) {
      stream.goOn();
      if (!stream.over) throw new Violation(`stream ${stream.id} has outlived its connection`);
      if (stream.finished === "" && !stream.ended && !stream.mayVanish)
        throw new Violation(`stream ${stream.id} was not ended`);
      if (!side.gone.has(stream)) throw new Violation(`stream ${stream.id} is not gone`);
    }
    if (side.connection.streamCount > 0) throw new Violation("streams are left");
    if (side.problem !== undefined) throw side.problem;
  }

  close(): void {
    setMemoryShort(false);
    this.#wire.destroy();
  }
}

/** Plays one game that `seed` makes; returns what went wrong. */
export async function playFlow(seed: number): Promise<object | undefined> {
  const game = new Game(seed);
  try {
    await game.begin();
    for (let n = 30 + game.dice.below(200); n > 0; n--) {
      game.step();
      if (game.dice.chance(0.7)) game.deliver(false);
      if (game.dice.chance(0.4)) await turn();
      game.check();
    }
    if (game.dice.chance(0.25)) await game.breakDown();
    else {
      await game.endAll();
      await game.checkReceiving();
      await game.checkSending();
    }
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    game.close();
  }
}
