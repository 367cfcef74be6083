import assert from "node:assert/strict";
import { test } from "node:test";
import { CliError } from "../runner/errors.ts";
import type { FollowedItem, FollowedOutput } from "../trace/followed.ts";
import { toRecord } from "../trace/source.ts";
import type { ProxyAdmin } from "./admin.ts";
import { followReplicas } from "./follow-replicas.ts";

const event = (type: string, fields: object = {}): FollowedItem =>
  toRecord(JSON.stringify({ message: { type, ...fields } }));
const end = (reason: string): FollowedItem => event("followEnded", { reason });

/** A pod whose stream the test feeds. */
class Pod {
  readonly proxy: ProxyAdmin;
  /** Milliseconds, of each time that it was followed. */
  readonly opened: number[] = [];
  #opening = Promise.withResolvers<void>();
  #items: (FollowedItem | Error)[] = [];
  #wake = Promise.withResolvers<void>();

  constructor(name: string) {
    this.proxy = { name: `${name}.shop`, pod: { name, namespace: "shop" } } as ProxyAdmin;
  }

  async open(forMs: number): Promise<AsyncGenerator<FollowedItem>> {
    this.opened.push(forMs);
    this.#opening.resolve();
    return this.#stream();
  }

  /** Resolves when it is followed again. */
  async next(): Promise<void> {
    await this.#opening.promise;
    this.#opening = Promise.withResolvers();
  }

  send(...items: readonly (FollowedItem | Error)[]): void {
    this.#items.push(...items);
    this.#wake.resolve();
  }

  async *#stream(): AsyncGenerator<FollowedItem> {
    for (;;) {
      const item = this.#items.shift();
      if (item === undefined) {
        await this.#wake.promise;
        this.#wake = Promise.withResolvers();
        continue;
      }
      if (item instanceof Error) throw item;
      yield item;
      if (item.kind === "event" && item.raw.includes("followEnded")) return;
    }
  }
}

function following(first: readonly Pod[], serving: () => readonly Pod[]) {
  const pods = new Map<ProxyAdmin, Pod>();
  const proxiesOf = (of: readonly Pod[]) => {
    for (const pod of of) pods.set(pod.proxy, pod);
    return of.map(({ proxy }) => proxy);
  };
  return followReplicas({
    first: proxiesOf(first),
    serving: async () => proxiesOf(serving()),
    open: (proxy, forMs) => pods.get(proxy)?.open(forMs) ?? Promise.reject(new Error("unknown")),
    forMs: 60_000,
  });
}

const words = ({ pod, record, error }: FollowedOutput): string => {
  if (record === undefined) return `${pod} ! ${(error as Error).message}`;
  return `${pod} ${record.kind === "progress" ? record.text : JSON.parse(record.raw).message.type}`;
};

test("a pod that starts later is followed for the rest of the time, and one that ends is said", async () => {
  const [a, b] = [new Pod("a"), new Pod("b")];
  let serving = [a];
  const output: string[] = [];
  const streams = await following([a], () => serving);
  const done = (async () => {
    for await (const item of streams) output.push(words(item));
  })();
  a.send(event("requestStarted"), end("shutdown"));
  serving = [b];
  await b.next();
  b.send(event("requestStarted"), end("time"));
  await done;
  assert.deepEqual(output, [
    "a requestStarted",
    "a followEnded",
    "b is followed too from now on",
    "b requestStarted",
    "b followEnded",
  ]);
  assert.ok((b.opened[0] ?? 0) > 0 && (b.opened[0] ?? 0) < 60_000);
});

test("a pod whose stream has failed is said, and followed again while it serves", async () => {
  const a = new Pod("a");
  const streams = await following([a], () => [a]);
  await a.next();
  const output: string[] = [];
  const done = (async () => {
    for await (const item of streams) output.push(words(item));
  })();
  a.send(new CliError("failure", "it broke"));
  await a.next();
  a.send(end("count"));
  await done;
  assert.deepEqual(output, ["a ! it broke", "a is followed too from now on", "a followEnded"]);
});

test("a pod that cannot be followed at the beginning is an error", async () => {
  const a = new Pod("a");
  a.open = () => Promise.reject(new CliError("failure", "no"));
  await assert.rejects(
    following([a], () => [a]),
    /no/,
  );
});

test("a consumer that has seen enough ends it", async () => {
  const a = new Pod("a");
  a.send(event("requestStarted"));
  for await (const item of await following([a], () => [])) {
    assert.equal(words(item), "a requestStarted");
    break;
  }
});
