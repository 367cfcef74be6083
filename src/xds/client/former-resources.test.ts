import assert from "node:assert/strict";
import { test } from "node:test";
import { FormerResources, type Received } from "./former-resources.ts";

/** A resource; `value` is what it holds. */
interface TestResource extends Received {
  readonly value: object;
}

const HELD_BACK = new Set(["b/web"]);

/** The resources of a proxy, by name. */
class SharedProxy {
  readonly newest = new Map<string, TestResource>();
  readonly former = new FormerResources<TestResource>({
    get: (name) => this.newest.get(name),
    ofKind: (kind) => [...this.newest.values()].filter((each) => each.kind === kind),
    parse: ({ value }) => value,
  });

  set(name: string, owner: string, value: object): void {
    const kind = name.slice(0, name.indexOf("/"));
    this.former.note(name, this.newest.get(name));
    this.newest.set(name, { name, kind, owner, value });
  }

  delete(name: string): void {
    this.former.note(name, this.newest.get(name));
    this.newest.delete(name);
  }

  listener(team: string, name: string, hostname: string, bind = "bind/80"): void {
    this.set(`listener/${team}/web.${name}`, bind, { gatewayNamespace: team, gatewayName: "web", hostname });
  }

  route(team: string, version: number): void {
    this.set(`route/${team}/web.http/r`, `${team}/web.http`, { version });
  }

  bind(protocol = "http"): void {
    this.set("bind/bind/80", "", { protocol });
  }

  apply(heldBack: ReadonlySet<string> = new Set()): void {
    this.former.take(heldBack);
    this.former.accept();
  }

  /** What is in place of the newest: values by name, null if there is nothing. */
  overrides(heldBack: ReadonlySet<string> = HELD_BACK): Record<string, object | null> {
    const overrides = this.former.take(heldBack);
    return Object.fromEntries([...overrides].map(([name, resource]) => [name, resource?.value ?? null]));
  }
}

/** Gateways `a/web` and `b/web`, in effect. */
function shared(): SharedProxy {
  const proxy = new SharedProxy();
  proxy.bind();
  for (const team of ["a", "b"]) {
    proxy.listener(team, "http", `${team}.example.com`);
    proxy.route(team, 1);
  }
  proxy.apply();
  return proxy;
}

test("a Gateway that is held back keeps its listeners and routes, changed, new or removed; the others get what is new", () => {
  const proxy = shared();
  for (const team of ["a", "b"]) {
    proxy.route(team, 2);
    proxy.listener(team, "new", `${team}.example.com`);
    proxy.set(`tcpRoute/${team}/web.new/r`, `${team}/web.new`, {});
    proxy.delete(`listener/${team}/web.http`);
  }
  assert.deepEqual(proxy.overrides(), {
    "route/b/web.http/r": { version: 1 },
    "listener/b/web.new": null,
    "tcpRoute/b/web.new/r": null,
    "listener/b/web.http": { gatewayNamespace: "b", gatewayName: "web", hostname: "b.example.com" },
  });
  assert.deepEqual(proxy.overrides(new Set()), {});
  proxy.former.accept();
  assert.deepEqual(proxy.overrides(), {}, "all of it is in effect");
});

test("what a Gateway keeps stays the same through further changes, also those that arrive while a state is applied", () => {
  const proxy = shared();
  proxy.route("b", 2);
  proxy.route("b", 3);
  proxy.former.take(HELD_BACK);
  proxy.route("b", 4);
  proxy.route("a", 2);
  proxy.former.accept();
  assert.deepEqual(proxy.overrides(), { "route/b/web.http/r": { version: 1 } });
  proxy.former.accept();
  proxy.route("a", 3);
  proxy.apply(new Set());
  proxy.route("b", 5);
  assert.deepEqual(proxy.overrides(), { "route/b/web.http/r": { version: 4 } });
});

test("a host that another Gateway has got since is not kept, and does not come back", () => {
  const proxy = shared();
  proxy.listener("b", "http", "other.b.example.com");
  proxy.listener("a", "more", "*.example.com");
  assert.deepEqual(proxy.overrides(), { "listener/b/web.http": null });
  proxy.former.accept();
  proxy.delete("listener/a/web.more");
  assert.deepEqual(proxy.overrides(), { "listener/b/web.http": null });
});

test("a port that has another protocol since is not kept", () => {
  const proxy = shared();
  proxy.delete("listener/b/web.http");
  proxy.bind("tls");
  proxy.listener("a", "http", "a.example.com");
  assert.deepEqual(proxy.overrides(), { "listener/b/web.http": null });
});

test("former routes keep the port and the services that nothing else uses, but no pods that have ended", () => {
  const proxy = shared();
  for (const service of ["b/former", "b/both"]) proxy.set(`service/${service}`, "", {});
  const pod = (name: string, service: string): void =>
    proxy.set(`workload/${name}`, "", { services: { [service]: {} } });
  pod("former", "b/former");
  pod("ended", "b/both");
  pod("relabelled", "b/former");
  proxy.apply();
  for (const name of ["service/b/former", "workload/former", "workload/ended", "bind/bind/80"]) proxy.delete(name);
  proxy.set("service/b/both", "", { changed: true });
  pod("relabelled", "b/both");
  proxy.route("b", 2);
  assert.deepEqual(Object.keys(proxy.overrides()).sort(), [
    "bind/bind/80",
    "route/b/web.http/r",
    "service/b/former",
    "workload/former",
  ]);
});
