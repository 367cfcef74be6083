import assert from "node:assert/strict";
import { test } from "node:test";
import { ANYWHERE } from "../../net/testing/egress.ts";
import type { LookupFamily } from "../discovery/dns.ts";
import { LookupLanes } from "./lookup-lanes.ts";
import { Resolver, type System } from "./resolver.ts";

type Options = Parameters<System["lookup"]>[1];
type Done = Parameters<System["lookup"]>[2];

/** A resolver whose lookups the test answers, with a clock that the test moves. */
class Fake {
  readonly asked: { readonly host: string; readonly options: Options; readonly done: Done }[] = [];
  now = 1000;
  readonly resolver: Resolver;
  /** Checks whether other threads have finished. */
  #later: (() => void)[] = [];

  constructor(family: LookupFamily = "All", lanes = new LookupLanes()) {
    const system: System = {
      lookup: (host, options, done) => void this.asked.push({ host, options, done }),
      now: () => this.now,
      later: (callback) => void this.#later.push(callback),
      idly: () => () => {},
      ttl: () => {},
      srv: () => {},
      reaches: () => true,
    };
    this.resolver = new Resolver(family, ANYWHERE, undefined, system, lanes);
  }

  /** How many of them are due. */
  get checks(): number {
    return this.#later.length;
  }

  /** Runs them. */
  check(): void {
    for (const callback of this.#later.splice(0)) callback();
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

test("a name is cached for each family, and not looked up again right after a failure", () => {
  const fake = new Fake("Auto");
  const said: string[] = [];
  const heard = (addresses: readonly string[], error: string | undefined): unknown =>
    said.push(error ?? addresses.join());
  fake.get();
  fake.resolver.resolve("a.test", heard, "V6Only");
  fake.answer("10.0.0.1");
  // A thread looks a name up once at a time.
  fake.check();
  assert.equal(fake.asked[0]?.options.family, 6);
  fake.fail("no such name");
  fake.resolver.lookUp(
    "a.test",
    ({ addresses, error, repeatMs }) => said.push(`${addresses} ${error} ${repeatMs}`),
    "V6Only",
  );
  assert.deepEqual(said, ["no such name", " no such name 100"]);
  assert.deepEqual([fake.get(), fake.asked.length], ["10.0.0.1", 0]);
});

test("the requested address families, and their order", () => {
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
  // A result without addresses is a failure too.
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

/** Resolvers of two threads. */
function threads(): readonly [Fake, Fake] {
  const lanes = new LookupLanes();
  return [new Fake("All", lanes), new Fake("All", new LookupLanes(lanes.memory))];
}

test("names whose lookups fail slowly are looked up one at a time, by all threads together; other names are not delayed", () => {
  const [one, other] = threads();
  for (const host of ["dead.test", "gone.test"]) {
    one.get(host);
    one.now += 10_000;
    one.fail("EAI_AGAIN");
    one.now += 5000;
  }
  assert.equal(one.get("dead.test"), undefined);
  assert.equal(one.get("gone.test"), "EAI_AGAIN", "the other name has the slot");
  assert.equal(other.get("dead.test"), "name servers do not respond for dead.test");
  assert.equal(other.asked.length, 0);
  assert.equal(other.get("new.test"), undefined);
  other.answer("10.0.0.1");
  assert.equal(
    other.get("gone.test"),
    "name servers do not respond for gone.test",
    "a fast lookup does not free the slot",
  );
  one.now += 10_000;
  one.fail("EAI_AGAIN");
  assert.equal(other.get("dead.test"), undefined);
  other.answer("10.0.0.2");
  assert.equal(other.get("dead.test"), "10.0.0.2");
  assert.equal(one.get("gone.test"), undefined, "the slot is free again");
  other.now += 5000;
  assert.equal(other.get("dead.test"), "10.0.0.2");
  assert.equal(other.asked.length, 1, "a name that has been found does not wait for the slot");
});

test("a name that no thread knows is looked up by one of them; once it is found, the others need not wait", () => {
  const [one, other] = threads();
  assert.equal(one.get(), undefined);
  const heard: string[] = [];
  for (let i = 0; i < 2; i++) other.resolver.resolve("a.test", (addresses) => heard.push(addresses.join()));
  other.check();
  assert.equal(other.asked.length, 0, "its lookup would occupy the second thread of libuv too");
  one.answer("10.0.0.1");
  other.check();
  other.answer("10.0.0.1");
  assert.deepEqual(heard, ["10.0.0.1", "10.0.0.1"]);
  // Renewals: one at a time, and what is known serves meanwhile.
  for (const fake of [one, other]) {
    fake.now += 5000;
    assert.equal(fake.get(), "10.0.0.1");
  }
  assert.deepEqual([one.asked.length, other.asked.length], [1, 0]);
  assert.equal(other.checks, 0, "nobody waits for the other thread");
});

test("a lookup that must be new waits for that of another thread, even if the name is known", () => {
  const [one, other] = threads();
  for (const fake of [one, other]) {
    fake.get();
    fake.answer("10.0.0.1");
    fake.now += 5000;
  }
  one.get();
  const heard: string[] = [];
  other.resolver.lookUp("a.test", ({ addresses }) => heard.push(addresses.join()));
  other.check();
  assert.deepEqual([other.asked.length, heard], [0, []]);
  one.answer("10.0.0.2");
  other.check();
  other.answer("10.0.0.2");
  assert.deepEqual(heard, ["10.0.0.2"]);
});

test("requests that waited for another thread's lookup, which failed slowly, fail", () => {
  const [one, other] = threads();
  one.get("dead.test");
  const heard: (string | undefined)[] = [];
  other.resolver.resolve("dead.test", (_addresses, error) => heard.push(error));
  one.now += 10_000;
  one.fail("EAI_AGAIN");
  one.now += 5000;
  one.get("dead.test");
  other.check();
  assert.deepEqual(heard, ["name servers do not respond for dead.test"]);
  assert.equal(other.asked.length, 0);
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

test("the slots of a thread that has died become free", () => {
  let now = 5n;
  const { memory } = new LookupLanes();
  const [dead, alive] = [new LookupLanes(memory, () => now), new LookupLanes(memory, () => now)];
  assert.equal(dead.enter("a.test", false), "own");
  dead.leave("b.test", dead.enter("b.test", false), true);
  assert.equal(dead.enter("b.test", false), "slow");
  assert.deepEqual([alive.enter("a.test", false), alive.enter("b.test", false)], ["busy", "full"]);
  now += 20_000n;
  assert.deepEqual([alive.enter("a.test", false), alive.enter("b.test", false)], ["own", "full"]);
  now += 100_000n;
  assert.equal(alive.enter("b.test", false), "slow");
});

test("names that share a slot in the shared memory do not wait for each other", () => {
  const lanes = new LookupLanes();
  const names = Array.from({ length: 5000 }, (_, i) => `backend-${i}.test`);
  for (const name of names) assert.equal(lanes.enter(name, false), "own", name);
  for (const name of names) lanes.leave(name, "own", false);
  for (const name of names) assert.equal(lanes.enter(name, false), "own", name);
});

test("what is known of a name: its addresses, how old they are, and why the last lookup found none", () => {
  const fake = new Fake();
  assert.equal(fake.resolver.known("a.test"), undefined);
  fake.get();
  assert.deepEqual(fake.resolver.known("a.test"), { addresses: [], ageMs: null });
  fake.answer("10.0.0.1", "10.0.0.2");
  fake.now += 6000;
  assert.deepEqual(fake.resolver.known("a.test"), { addresses: ["10.0.0.1", "10.0.0.2"], ageMs: 6000 });
  fake.get();
  fake.fail("no answer");
  assert.deepEqual(fake.resolver.known("a.test"), {
    addresses: ["10.0.0.1", "10.0.0.2"],
    ageMs: 6000,
    error: "no answer",
  });
});
