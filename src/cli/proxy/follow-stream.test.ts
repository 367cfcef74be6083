import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, before, suite, test } from "node:test";
import { TestGateway } from "../../../test/helpers/gateway.ts";
import { CliError } from "../runner/errors.ts";
import type { FollowedItem } from "../trace/followed.ts";
import { localProxy } from "./admin.ts";
import { openFollow } from "./follow-stream.ts";

const ROUTES = [{ name: "all", policies: { directResponse: { status: 200 } } }];

suite("a connection to the admin server that breaks", () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ routes: ROUTES }] }] });
  });
  after(() => gateway.stop());

  /** Passes connections on to the admin server; `cut` breaks them. */
  async function between() {
    const sockets = new Set<Socket>();
    const server = createServer((client) => {
      const upstream = connect(Number(new URL(link.gateway.url("admin")).port), "127.0.0.1");
      for (const socket of [client, upstream]) {
        sockets.add(socket.on("error", () => {}));
        socket.once("close", () => sockets.delete(socket));
      }
      client.pipe(upstream).pipe(client);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const cut = () => {
      for (const socket of sockets) socket.destroy();
    };
    const close = () => {
      server.close();
      cut();
    };
    const link = { gateway, port: (server.address() as AddressInfo).port, cut, close };
    return link;
  }

  const path = ({ kind, ...item }: FollowedItem): string | undefined =>
    kind === "event" ? /"path":"([^"]+)"/.exec(JSON.stringify(item))?.[1] : undefined;
  const call = (name: string) => fetch(`http://127.0.0.1:${gateway.port()}/${name}`);

  test("the stream goes on where it broke off, and says so; requests meanwhile are not lost", async () => {
    const { port, cut, close } = await between();
    const events = await openFollow(localProxy(port, {}), { count: 3 });
    await call("1");
    const paths = new Set<string>();
    const words: string[] = [];
    let last = "";
    for await (const item of events) {
      if (item.kind === "progress") words.push(item.text);
      else last = String((item.event.message as { type: string }).type);
      const seen = path(item);
      if (seen === undefined || paths.has(seen)) continue;
      paths.add(seen);
      if (paths.size === 3) continue;
      cut();
      await call(String(paths.size + 1));
    }
    close();
    assert.deepEqual([...paths], ["/1", "/2", "/3"]);
    assert.equal(last, "followEnded");
    assert.equal(words.length, 4);
    assert.match(words[0] ?? "", /^the stream broke off: .+; connecting again$/);
    assert.equal(words[1], "connected again; the stream goes on behind the last event");
  });

  test("a gateway that was started again does not know the stream: an error says so", async () => {
    const link = await between();
    const events = await openFollow(localProxy(link.port, {}), { count: 2 });
    await call("1");
    await using another = await TestGateway.start({ binds: [] });
    const words: string[] = [];
    await assert.rejects(
      async () => {
        for await (const item of events) {
          if (item.kind === "progress") words.push(item.text);
          link.gateway = another;
          link.cut();
        }
      },
      (error) => {
        assert.ok(error instanceof CliError);
        assert.equal(error.message, "the stream broke off and could not be resumed");
        assert.match(error.why ?? "", /^admin server at http:\S+ returned 410 .*the gateway was started again/);
        return true;
      },
    );
    assert.equal(words.length, 1);
    link.close();
  });
});
