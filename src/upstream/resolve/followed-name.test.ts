import assert from "node:assert/strict";
import type { LookupAddress } from "node:dns";
import { test } from "node:test";
import { ms } from "../../base/durations.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import type { DnsSettings, LookupFamily } from "../discovery/dns.ts";
import { FollowedName } from "./followed-name.ts";
import type { NamedAddress } from "./named-addresses.ts";
import { Resolver } from "./resolver.ts";

/** A name that is followed, with records and a clock that the test changes. */
class Fake {
  now = 1000;
  addresses: readonly string[] = ["10.0.0.1"];
  ttl: number | undefined;
  /** Families that the host reaches. */
  reached: readonly number[] = [4, 6];
  lookups = 0;
  /** Set: records are answered later, by what is in it. */
  records: ((ttl: number) => void)[] | undefined;
  readonly heard: (readonly NamedAddress[])[] = [];
  readonly name: FollowedName;
  #due: { readonly at: number; readonly callback: () => void } | undefined;

  constructor(dns: DnsSettings = {}, family: LookupFamily = "Auto", always = false) {
    const resolver = new Resolver(family, ANYWHERE, undefined, {
      lookup: (host, _options, done) => {
        assert.equal(host, "a.test");
        this.lookups++;
        const found = this.addresses.map((address): LookupAddress => ({ address, family: 4 }));
        done(found.length === 0 ? new Error("SERVFAIL") : null, found);
      },
      now: () => this.now,
      later: () => assert.fail("no other thread looks the name up"),
      idly: (callback, wait) => {
        const due = { at: this.now + wait, callback };
        this.#due = due;
        return () => {
          if (this.#due === due) this.#due = undefined;
        };
      },
      ttl: (_host, _addresses, callback) => {
        if (this.records === undefined) callback(this.ttl);
        else this.records.push(callback);
      },
      srv: () => {},
      reaches: (each) => this.reached.includes(each),
    });
    this.name = new FollowedName({ host: "a.test", dns, always }, resolver, (found) => this.heard.push(found));
  }

  /** Milliseconds until the next lookup; undefined: there will be none. */
  get next(): number | undefined {
    return this.#due && this.#due.at - this.now;
  }

  /** Lets time pass until then. */
  advance(): void {
    const due = this.#due;
    assert.ok(due, "a lookup is due");
    this.#due = undefined;
    this.now = Math.max(this.now, due.at);
    due.callback();
  }

  /** What was last heard, as text: backups in parentheses. */
  get last(): string | undefined {
    return this.heard
      .at(-1)
      ?.map(({ at, rank }) => (rank > 0 ? `(${at})` : at.join("|")))
      .join(" ");
  }
}

test("a name is looked up when it is first used, then as its TTL says, within limits", () => {
  for (const [dns, ttl, next] of [
    [{}, undefined, 5000],
    [{}, 1000, 5000],
    [{}, 20_000, 20_000],
    [{}, 86_400_000, 60_000],
    [{ minTtl: ms(1000) }, 2000, 2000],
    [{ minTtl: ms(1000) }, 0, 1000],
  ] as const) {
    const fake = new Fake(dns);
    fake.ttl = ttl;
    assert.deepEqual([fake.lookups, fake.next], [0, undefined]);
    fake.name.use();
    fake.name.use();
    assert.deepEqual([fake.lookups, fake.next], [1, next], `${JSON.stringify(dns)} ${ttl}`);
    fake.advance();
    assert.equal(fake.lookups, 2);
    fake.name.close();
    assert.equal(fake.next, undefined);
  }
});

test("a TTL counts from the lookup, and says nothing once the name is followed no more", () => {
  const fake = new Fake();
  fake.records = [];
  fake.name.use();
  fake.now += 3000;
  fake.records.shift()?.(20_000);
  assert.equal(fake.next, 17_000);
  fake.advance();
  fake.name.close();
  fake.records.shift()?.(20_000);
  assert.equal(fake.next, undefined);
});

test("while a lookup fails, the last addresses stay, and it is repeated", () => {
  const fake = new Fake();
  fake.addresses = [];
  fake.name.use();
  assert.deepEqual([fake.heard, fake.next], [[], 100]);
  fake.addresses = ["10.0.0.1"];
  fake.advance();
  assert.equal(fake.last, "10.0.0.1");
  fake.addresses = [];
  for (const wait of [5000, 100, 200, 400, 800, 1600, 3200, 5000, 5000]) {
    assert.equal(fake.next, wait);
    fake.advance();
  }
  assert.deepEqual(fake.heard.length, 1);
});

test("a name that nobody uses for five minutes is forgotten, one that is probed is not", () => {
  const fake = new Fake();
  fake.name.use();
  const start = fake.now;
  while (fake.next !== undefined) fake.advance();
  assert.equal(fake.now - start, 300_000);
  assert.equal(fake.last, "");
  fake.name.use();
  assert.equal(fake.last, "10.0.0.1");
  const probed = new Fake({}, "Auto", true);
  assert.deepEqual([probed.lookups, probed.next], [0, 0]);
  for (let i = 0; i < 100; i++) probed.advance();
  assert.equal(probed.last, "10.0.0.1");
});

test("the endpoints that addresses are", () => {
  const told = (addresses: readonly string[], family: LookupFamily, reached = [4, 6]): string | undefined => {
    const fake = new Fake({ family }, "Auto");
    fake.addresses = addresses;
    fake.reached = reached;
    fake.name.use();
    return fake.last;
  };
  // One server with two ways to it.
  assert.equal(told(["::1", "127.0.0.1"], "All", []), "::1|127.0.0.1");
  assert.equal(told(["10.0.0.1", "fd00::1"], "All"), "fd00::1|10.0.0.1");
  assert.equal(told(["fd00::1", "10.0.0.1"], "V4Preferred"), "10.0.0.1|fd00::1");
  assert.equal(told(["10.0.0.1", "fd00::1", "10.0.0.1"], "All"), "fd00::1|10.0.0.1", "an answer may repeat itself");
  assert.equal(told(["10.0.0.2", "10.0.0.1"], "All"), "10.0.0.1 10.0.0.2");
  const both = ["fd00::2", "10.0.0.2", "fd00::1", "10.0.0.1"];
  assert.equal(told(both, "All"), "10.0.0.1 10.0.0.2 fd00::1 fd00::2");
  assert.equal(told(both, "V4Preferred"), "10.0.0.1 10.0.0.2 (fd00::1) (fd00::2)");
  assert.equal(told(["fd00::2", "fd00::1"], "V4Preferred"), "fd00::1 fd00::2");
  // A host without IPv6; one without any network keeps all.
  assert.equal(told(both, "All", [4]), "10.0.0.1 10.0.0.2");
  assert.equal(told(["10.0.0.1", "fd00::1"], "All", [4]), "10.0.0.1");
  assert.equal(told(["10.0.0.1", "fd00::1"], "All", []), "fd00::1|10.0.0.1");
});
