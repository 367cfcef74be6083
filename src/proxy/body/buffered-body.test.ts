import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { GatewayError } from "../../base/errors.ts";
import type { HeaderList, LocalReply } from "../../http/message/message.ts";
import { UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { BodySink, BodyStage } from "../../policies/contract/types.ts";
import { BufferBudget, BufferShare } from "./buffer-budget.ts";
import { type BodyDestination, type BodySide, BufferedBody } from "./buffered-body.ts";

/** A side of an exchange that records what a body requests of it. */
class Side implements BodySide, BodyDestination {
  closed = false;
  fromClient = false;
  destination: BodyDestination | undefined;
  readonly events: string[] = [];
  sent = "";
  /** Whether the destination takes more. */
  takes = true;
  readonly answers: (GatewayError | LocalReply)[] = [];

  pauseSource(): void {
    this.events.push("pause");
  }
  resumeSource(): void {
    this.events.push("resume");
  }
  breakOff(answer: GatewayError | LocalReply): void {
    this.answers.push(answer);
  }
  sendBody(buffer: Buffer, from: number, to: number): boolean {
    this.sent += buffer.subarray(from, to).toString();
    return this.takes;
  }
  sendEnd(trailers: HeaderList): void {
    this.events.push(["end", ...trailers].join(" "));
  }
  flush(): boolean {
    return this.takes;
  }
  /** From now on there is a connection for the bytes. */
  connect(body: BufferedBody): void {
    this.destination = this;
    body.sendTo(this);
  }
}

interface Options {
  readonly announced?: number;
  readonly limit?: number;
}

function bodyOf({ announced = UNKNOWN_LENGTH, limit = 1000 }: Options = {}) {
  const side = new Side();
  const headers: HeaderList = ["content-length", "5", "trailer", "x"];
  const budget = new BufferBudget();
  const share = new BufferShare(budget, limit, { address: "192.0.2.1", connection: {} });
  return { side, headers, budget, body: new BufferedBody({ headers }, announced, side, share) };
}

function receive(body: BufferedBody, text: string): boolean {
  const bytes = Buffer.from(`<${text}>`);
  const more = body.receive(bytes, 1, bytes.length - 1);
  // A source reuses its memory.
  bytes.fill("!");
  return more;
}

/** Writes each piece in brackets. */
const bracketing = (sink: BodySink): BodyStage => ({
  write: (bytes) => {
    sink.write(Buffer.from(`[${Buffer.from(bytes)}]`));
    return true;
  },
  end: (trailers) => sink.end(trailers),
  onDrain: () => sink.resume(),
});

describe("without a policy that reads it", () => {
  test("bytes are held until there is a destination, then pass directly, trailers last", () => {
    const { side, body, budget } = bodyOf();
    assert.equal(receive(body, "one"), false, "the source has to wait: nothing reads");
    assert.equal(budget.used, 3);
    side.connect(body);
    assert.deepEqual([side.sent, budget.used, side.events], ["one", 0, ["resume"]]);
    assert.equal(receive(body, "two"), true);
    side.takes = false;
    assert.equal(receive(body, "three"), false);
    body.end(["x", "1"]);
    assert.deepEqual([side.sent, side.events.at(-1), budget.used], ["onetwothree", "end x 1", 0]);
  });

  test("a slow destination keeps the source paused", () => {
    const { side, body } = bodyOf();
    receive(body, "one");
    side.takes = false;
    side.connect(body);
    assert.deepEqual(side.events, []);
  });

  test("a reader that can do without the whole body gives up when the budget is used up, and the source waits", async () => {
    const { body, side } = bodyOf({ limit: 4 });
    const read = body.tryBuffer(100);
    assert.equal(receive(body, "abc"), true);
    assert.equal(receive(body, "def"), false);
    assert.equal(receive(body, "ghi"), false, "another piece of the same read");
    assert.equal(await read, undefined);
    side.connect(body);
    assert.deepEqual([side.sent, side.answers], ["abcdefghi", []]);
  });

  test("bytes that do not fit into the budget end the exchange with TG_BUFFERS_FULL, and the rest is dropped", () => {
    const { side, body, budget } = bodyOf({ limit: 5 });
    receive(body, "four");
    assert.equal(receive(body, "more"), true);
    assert.deepEqual([(side.answers[0] as GatewayError).code, budget.used], ["TG_BUFFERS_FULL", 0]);
    assert.equal(receive(body, "1"), true);
    assert.equal(budget.used, 0);
  });
});

describe("a body that is kept for another attempt", () => {
  test("can be sent again from its first byte, while it fits", () => {
    const { side, body, budget } = bodyOf();
    body.keep(8);
    receive(body, "1234");
    side.connect(body);
    receive(body, "5678");
    assert.deepEqual([side.sent, body.repeatable, budget.used], ["12345678", true, 8]);
    side.sent = "";
    side.connect(body);
    assert.equal(side.sent, "12345678");
    receive(body, "9");
    assert.deepEqual([side.sent, body.repeatable, budget.used], ["123456789", false, 0]);
  });

  test("is no longer kept when the budget has no room, and continues", () => {
    const { side, body } = bodyOf({ limit: 5 });
    body.keep(100);
    side.connect(body);
    receive(body, "1234");
    receive(body, "5678");
    assert.deepEqual([side.sent, body.repeatable, side.answers], ["12345678", false, []]);
  });
});

describe("readers", () => {
  test("buffer: the whole body before anything is passed on; undefined once it is too long", async () => {
    const { side, body } = bodyOf();
    const [whole, short] = [body.buffer(10), body.buffer(5)];
    assert.equal(receive(body, "1234"), true);
    assert.equal(receive(body, "5678"), true, "one reader still waits");
    assert.equal(await short, undefined);
    body.end([]);
    assert.equal(String(await whole), "12345678");
    side.connect(body);
    assert.deepEqual([side.sent, side.events.at(-1)], ["12345678", "end"]);
  });

  test("buffer: a body that is announced as too long is not read", async () => {
    const { side, body } = bodyOf({ announced: 11 });
    assert.equal(await body.buffer(10), undefined);
    assert.deepEqual(side.events, []);
  });

  test("peek: the beginning of a longer body, which stays in place", async () => {
    const { side, body } = bodyOf();
    const start = body.peek(4);
    assert.equal(receive(body, "123456"), false);
    const { bytes, complete } = await start;
    assert.deepEqual([String(bytes), complete], ["1234", false]);
    side.connect(body);
    assert.equal(side.sent, "123456");
  });

  test("copy: bytes are passed on at once; no copy of a longer body", async () => {
    for (const [limit, expected] of [
      [6, "123456"],
      [5, undefined],
    ] as const) {
      const { side, body } = bodyOf();
      const copy = body.copy(limit);
      side.connect(body);
      receive(body, "123");
      receive(body, "456");
      assert.equal(side.sent, "123456");
      body.end([]);
      assert.equal((await copy)?.toString(), expected);
    }
  });

  test("copy: of what the sender sends, also if a policy replaces or pipes the body meanwhile", async () => {
    const act = {
      "new": (body: BufferedBody) => body.replace(Buffer.from("new")),
      "[123][456]": (body: BufferedBody) => body.through(bracketing),
    };
    for (const [sent, change] of Object.entries(act))
      for (const [limit, expected] of [
        [6, "123456"],
        [5, undefined],
      ] as const) {
        const { side, body, budget } = bodyOf();
        const copies = [body.copy(limit), body.copy(6)];
        receive(body, "123");
        change(body);
        side.connect(body);
        receive(body, "456");
        body.end([]);
        assert.deepEqual(
          (await Promise.all(copies)).map((copy) => copy?.toString()),
          [expected, "123456"],
        );
        assert.equal(side.sent, sent);
        assert.ok(budget.used <= 8, "copies are no longer counted");
      }
  });

  test("copy: bytes beyond the limit are not collected", async () => {
    const { side, body, budget } = bodyOf();
    const copy = body.copy(5);
    body.replace(Buffer.from("new"));
    side.connect(body);
    receive(body, "123");
    assert.equal(budget.used, 6);
    receive(body, "456");
    assert.deepEqual([await copy, budget.used], [undefined, 3]);
  });

  test("copy: none for which the budget has no room", async () => {
    const { side, body } = bodyOf({ limit: 8 });
    const copy = body.copy(10);
    receive(body, "123");
    body.replace(Buffer.from("new"));
    side.connect(body);
    receive(body, "456789");
    body.end([]);
    assert.equal(await copy, undefined);
    assert.equal(side.sent, "new");
  });
});

describe("replaced bodies", () => {
  test("are sent with their own length and without trailers; later bytes are dropped", () => {
    const { side, body, headers, budget } = bodyOf();
    receive(body, "old");
    body.replace(Buffer.from("new one"));
    assert.deepEqual([headers, body.length, budget.used], [["content-length", "7"], 7, 7]);
    assert.equal(receive(body, "rest"), true);
    side.connect(body);
    body.end(["x", "1"]);
    assert.deepEqual([side.sent, side.events], ["new one", ["end", "resume"]]);
  });

  test("pass through stages that are added later, and later bytes are still dropped", () => {
    const { side, body, headers } = bodyOf();
    body.replace(Buffer.from("new"));
    body.through(bracketing);
    assert.equal(receive(body, "rest"), true);
    side.connect(body);
    body.end([]);
    assert.deepEqual([side.sent, side.events], ["[new]", ["end"]]);
    assert.deepEqual(headers, []);
  });
});

describe("stages", () => {
  test("run in order, with the held bytes first; the length is unknown afterwards", () => {
    const { side, body, headers } = bodyOf({ announced: 5 });
    receive(body, "12");
    body.through(bracketing);
    body.through(bracketing);
    assert.deepEqual([body.length, headers], [UNKNOWN_LENGTH, ["trailer", "x"]]);
    side.connect(body);
    receive(body, "345");
    body.end(["x", "1"]);
    assert.deepEqual([side.sent, side.events.at(-1)], ["[[12]][[345]]", "end x 1"]);
  });

  test("a full stage pauses the source, and lets it resume", () => {
    const { side, body } = bodyOf();
    let sink: BodySink | undefined;
    body.through((given) => {
      sink = given;
      return { write: () => false, end: () => {}, onDrain: () => {} };
    });
    side.events.length = 0;
    assert.equal(receive(body, "1"), false);
    sink?.resume();
    assert.deepEqual(side.events, ["resume"]);
  });

  test("a stage that is too fast pauses the source: for a slow destination, or after 64 KiB without one", () => {
    const { side, body } = bodyOf({ limit: 1_000_000 });
    body.through((sink) => ({
      write: (bytes) => {
        sink.write(Buffer.alloc(bytes.length * 40_000, "y"));
        return true;
      },
      end: () => {},
      onDrain: () => {},
    }));
    side.events.length = 0;
    receive(body, "1");
    assert.deepEqual(side.events, []);
    receive(body, "2");
    assert.deepEqual(side.events, ["pause"]);
    side.connect(body);
    side.events.length = 0;
    side.takes = false;
    receive(body, "3");
    assert.deepEqual(side.events, ["pause"]);
  });

  test("a slow destination holds back every stage before it, until it has room", () => {
    const { side, body } = bodyOf();
    const log: string[] = [];
    const noting = (name: string) => (sink: BodySink) => ({
      write: (bytes: Uint8Array) => {
        const more = sink.write(bytes);
        log.push(`${name} ${more}`);
        return more;
      },
      end: (trailers: HeaderList) => sink.end(trailers),
      onDrain: () => {
        log.push(`${name} drains`);
        sink.resume();
      },
    });
    body.through(noting("first"));
    body.through(noting("second"));
    side.connect(body);
    log.length = 0;
    side.takes = false;
    assert.equal(receive(body, "1"), false);
    body.drained();
    assert.deepEqual(log, ["second false", "first false", "second drains", "first drains"]);
    assert.deepEqual([side.sent, side.events.at(-1)], ["1", "resume"]);
  });

  test("output of a stage after the end of the exchange is dropped", () => {
    const { side, body, budget } = bodyOf();
    let sink: BodySink | undefined;
    body.through((given) => {
      sink = given;
      return { write: () => true, end: () => {}, onDrain: () => {} };
    });
    side.destination = side;
    side.closed = true;
    side.events.length = 0;
    sink?.write(Buffer.from("late"));
    sink?.end([]);
    sink?.resume();
    assert.deepEqual([side.sent, side.events, budget.used], ["", [], 0]);
  });
});
