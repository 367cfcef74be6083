import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

/** Responds with the traces of policies: the fields that routes set, and the path. */
function echo(): Promise<RawUpstream> {
  return RawUpstream.answering((request) => {
    const from = valuesOf(request, "x-from").join();
    return reply(`${request.start.split(" ")[1]} ${from}`);
  });
}

async function ask(gateway: Pick<TestGateway, "port">, path: string) {
  const client = await RawPeer.connect(gateway.port());
  client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  const response = await client.message();
  client.socket.destroy();
  return response;
}

const from = (name: string): object => ({ set: { "x-from": name } });
const at = (pathPrefix: string): object[] => [{ path: { pathPrefix } }];

test("where routes that delegate to each other have the same policy, that of the leaf wins", async () => {
  await using upstream = await echo();
  const backends = [{ host: `127.0.0.1:${upstream.port}` }];
  await using gateway = await LocalGateway.start({
    routeGroups: [
      {
        name: "middle",
        routes: [
          {
            name: "middle",
            policies: { requestHeaderModifier: from("middle"), urlRewrite: { path: { full: "/middle" } } },
            backends: [{ routeGroup: "leaves" }],
          },
        ],
      },
      {
        name: "leaves",
        routes: [
          {
            name: "own",
            matches: at("/own"),
            policies: {
              requestHeaderModifier: from("leaf"),
              responseHeaderModifier: from("leaf"),
              authorization: { rules: [{ deny: 'request.headers[?"x-deny"].orValue("") == "leaf"' }] },
            },
            backends,
          },
          { name: "none", matches: at("/none"), backends },
          {
            name: "refusal",
            matches: at("/refusal"),
            policies: { directResponse: { status: 418 } },
            backends,
          },
        ],
      },
    ],
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              {
                name: "top",
                policies: {
                  requestHeaderModifier: from("top"),
                  responseHeaderModifier: from("top"),
                  authorization: { rules: [{ deny: 'request.path.startsWith("/own/secret")' }] },
                },
                backends: [{ routeGroup: "middle" }],
              },
            ],
          },
        ],
      },
    ],
  });
  const own = await ask(gateway, "/own");
  assert.deepEqual([own.body, valuesOf(own, "x-from")], ["/middle leaf", ["leaf"]]);
  // A kind that the leaf does not have comes from the nearest route that has it.
  const none = await ask(gateway, "/none");
  assert.deepEqual([none.body, valuesOf(none, "x-from")], ["/middle middle", ["top"]]);
  assert.equal(statusOf(await ask(gateway, "/refusal")), 418);
  // A leaf cannot undo the rules of routes above it.
  assert.equal(statusOf(await ask(gateway, "/own/secret")), 403);
});
