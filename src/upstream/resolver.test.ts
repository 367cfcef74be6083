import assert from "node:assert/strict";
import { test } from "node:test";
import { type LookupFamily, Resolver, type System } from "./resolver.ts";
import { SlowLane } from "./slow-lane.ts";

type Options = Parameters<System["lookup"]>[1];
type Done = Parameters<System["lookup"]>[2];

/** A resolver whose lookups the test answers, with a clock that the test moves. */
class Fake {
  readonly asked: { readonly host: string; readonly options: Options; readonly done: Done }[] = [];
  now = 1000;
  readonly resolver: Resolver;

  constructor(family: LookupFamily = "All", slowLane = new SlowLane()) {
    const system: System = {
      lookup: (host, options, done) => void this.asked.push({ host, options, done }),
      now: () => this.now,
    };
    this.resolver = new Resolver(family, undefined, system, slowLane);
  }

  /** Answers the oldest lookup with these addresses, or with an error. */
  answer(...addresses: readonly string[]): void {
    this.asked.shift()?.done(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  }

  fail(message: string): void {
    this.asked.shift()?.done(new Error(message), []);
  }

  /** What the resolver returns now; undefined if it needs a lookup first. */
  get(host = "a.test"): string | undefined {
    let said: string | undefined;
    this.resolver.resolve(host, (addresses, error) => {
      said = error ?? addresses.join();
    });
    return said;
  }
}

test("addresses are not looked up", () => {
  const fake = new Fake();
  assert.deepEqual([fake.get("10.0.0.1"), fake.get("::1")], ["10.0.0.1", "::1"]);
  assert.equal(fake.asked.length, 0);
});

test("the families that are asked for, and their order", () => {
  for (const [family, number, order] of [
    ["All", 0, "verbatim"],
    ["Auto", 0, "ipv4first"],
    ["V4Preferred", 0, "ipv4first"],
    ["V4Only", 4, "ipv4first"],
    ["V6Only", 6, "ipv4first"],
  ] as const) {
    const fake = new Fake(family);
    fake.get();
    assert.deepEqual(fake.asked[0]?.options, { all: true, family: number, order });
  }
});

test("requests at the same time share one lookup, and all get its result", () => {
  const fake = new Fake();
  const heard: string[] = [];
  for (let i = 0; i < 3; i++) fake.resolver.resolve("a.test", (addresses) => heard.push(addresses.join()));
  assert.equal(fake.asked.length, 1);
  assert.deepEqual(heard, []);
  fake.answer("10.0.0.1", "10.0.0.2");
  assert.deepEqual(heard, ["10.0.0.1,10.0.0.2", "10.0.0.1,10.0.0.2", "10.0.0.1,10.0.0.2"]);
});

test("a known name is found at once; after five seconds it is renewed in the background", () => {
  const fake = new Fake();
  fake.get();
  fake.answer("10.0.0.1");
  fake.now += 4999;
  assert.equal(fake.get(), "10.0.0.1");
  assert.equal(fake.asked.length, 0);
  fake.now += 1;
  assert.equal(fake.get(), "10.0.0.1");
  assert.equal(fake.get(), "10.0.0.1");
  assert.equal(fake.asked.length, 1);
  fake.answer("10.0.0.2");
  assert.equal(fake.get(), "10.0.0.2");
  assert.equal(fake.asked.length, 0);
});

test("when a renewal fails, the last good addresses stay in use, and the lookup is repeated", () => {
  const fake = new Fake();
  fake.get();
  fake.answer("10.0.0.1");
  fake.now += 5000;
  fake.get();
  fake.fail("SERVFAIL");
  assert.equal(fake.get(), "10.0.0.1");
  assert.equal(fake.asked.length, 0);
  fake.now += 100;
  fake.get();
  // An answer without addresses is no better.
  fake.answer();
  assert.equal(fake.get(), "10.0.0.1");
  fake.now += 200;
  assert.equal(fake.get(), "10.0.0.1");
  fake.answer("10.0.0.3");
  assert.equal(fake.get(), "10.0.0.3");
  // The next failure counts as the first again.
  fake.now += 5000;
  fake.get();
  fake.fail("SERVFAIL");
  fake.now += 100;
  fake.get();
  assert.equal(fake.asked.length, 1);
});

test("a name that fails is looked up again after 0.1 s, then less and less often, up to every 5 s", () => {
  const fake = new Fake();
  assert.equal(fake.get(), undefined);
  fake.fail("ENOTFOUND a.test");
  for (const wait of [100, 200, 400, 800, 1600, 3200, 5000, 5000]) {
    fake.now += wait - 1;
    assert.equal(fake.get(), "ENOTFOUND a.test");
    assert.equal(fake.asked.length, 0, `after ${wait - 1} ms`);
    fake.now += 1;
    assert.equal(fake.get(), undefined);
    fake.fail("ENOTFOUND a.test");
  }
  fake.now += 5000;
  fake.get();
  fake.answer();
  assert.equal(fake.get(), "no address found for a.test");
});

test("a name that is not used is forgotten after five minutes", () => {
  const fake = new Fake();
  fake.get("old.test");
  fake.answer("10.0.0.1");
  fake.get("other.test");
  fake.now += 300_000;
  fake.get("other.test");
  fake.answer("10.0.0.2");
  assert.equal(fake.get("old.test"), "10.0.0.1");
  fake.answer("10.0.0.1");
  fake.now += 300_001;
  fake.get("other.test");
  fake.answer("10.0.0.2");
  assert.equal(fake.get("old.test"), undefined);
});

test("names whose lookups fail slowly are looked up one at a time, by all threads together; other names are not delayed", () => {
  const lane = new SlowLane();
  const [one, other] = [new Fake("All", lane), new Fake("All", new SlowLane(lane.memory))];
  for (const fake of [one, other]) {
    fake.get("dead.test");
    fake.now += 10_000;
    fake.fail("EAI_AGAIN");
    fake.now += 5000;
  }
  assert.equal(one.get("dead.test"), undefined);
  assert.equal(other.get("dead.test"), "EAI_AGAIN", "the other thread has the place");
  assert.equal(other.asked.length, 0);
  assert.equal(other.get("new.test"), undefined);
  other.answer("10.0.0.1");
  assert.equal(other.get("dead.test"), "EAI_AGAIN", "a fast lookup does not free the place");
  one.now += 10_000;
  one.fail("EAI_AGAIN");
  assert.equal(other.get("dead.test"), undefined);
  other.answer("10.0.0.2");
  assert.equal(other.get("dead.test"), "10.0.0.2");
  one.now += 5000;
  assert.equal(one.get("dead.test"), undefined, "the place is free again");
  other.now += 5000;
  assert.equal(other.get("dead.test"), "10.0.0.2");
  assert.equal(other.asked.length, 1, "a name that has been found does not wait for the place");
});

test("names whose lookups fail fast do not wait for each other", () => {
  const fake = new Fake();
  for (const host of ["a.test", "b.test"]) {
    fake.get(host);
    fake.fail("ENOTFOUND");
  }
  fake.now += 5000;
  for (const host of ["a.test", "b.test"]) fake.get(host);
  assert.equal(fake.asked.length, 2);
});

test("the slot of a thread that has died becomes free", () => {
  let now = 5n;
  const memory = new SlowLane().memory;
  const [dead, alive] = [new SlowLane(memory, () => now), new SlowLane(memory, () => now)];
  assert.equal(dead.take(), true);
  assert.equal(alive.take(), false);
  now += 120_000n;
  assert.equal(alive.take(), true);
});
