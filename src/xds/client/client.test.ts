import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { GrpcServer } from "../../../test/helpers/grpc-server.ts";
import { until, untilTurn } from "../../../test/helpers/until.ts";
import { NODE } from "../../../test/helpers/xds-peer.ts";
import { LogOutput } from "../../base/log.ts";
import { parseLogFilter } from "../../base/log-filter.ts";
import {
  type DeltaDiscoveryRequest,
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  ResourceSchema,
} from "../../gen/envoy/service/discovery/v3/discovery_pb.ts";
import { ResourceSchema as PartSchema } from "../../gen/tracegate/dev/config/v1/config_pb.ts";
import { type PackedIr, unpackIr } from "../../ir/packed-ir.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { ADDRESS_TYPE, DELTA_METHOD, RESOURCE_TYPE } from "../resources.ts";
import { XdsClient } from "./client.ts";

type Call = ServerDuplexStream<Buffer, Uint8Array>;

/** A controller that sends what the test says; messages are those that the compiler has generated. */
class Controller {
  readonly calls: Call[] = [];
  /** Of all connections. */
  readonly requests: DeltaDiscoveryRequest[] = [];
  #server: GrpcServer | undefined;
  readonly changes: boolean[] = [];
  client: XdsClient | undefined;

  static async start(): Promise<Controller> {
    const controller = new Controller();
    const stream = (call: Call): void => {
      controller.calls.push(call);
      call.on("data", (bytes: Buffer) => controller.requests.push(fromBinary(DeltaDiscoveryRequestSchema, bytes)));
      call.on("error", () => {});
    };
    controller.#server = await GrpcServer.start({ [DELTA_METHOD]: { stream } });
    controller.client = new XdsClient({
      address: `http://127.0.0.1:${controller.#server.port}`,
      egress: ANYWHERE,
      node: NODE,
      log: new LogOutput(parseLogFilter("off"), "text", () => {}).logger("xds"),
      onState: (changed) => controller.changes.push(changed),
      random: () => 1,
    });
    return controller;
  }

  /** Sends a response; with a version it completes a batch. */
  send(nonce: string, version: string, parts: readonly Part[], removed: readonly string[] = []): void {
    const resources = parts.map(({ name, kind = "route", owner = "l", json }) =>
      create(ResourceSchema, {
        name,
        version: `${name} ${json}`,
        resource: create(AnySchema, {
          typeUrl: RESOURCE_TYPE,
          value: toBinary(PartSchema, create(PartSchema, { kind, owner, json: Buffer.from(json) })),
        }),
      }),
    );
    const response = create(DeltaDiscoveryResponseSchema, {
      systemVersionInfo: version,
      typeUrl: RESOURCE_TYPE,
      nonce,
      resources,
      removedResources: [...removed],
    });
    this.calls.at(-1)?.write(toBinary(DeltaDiscoveryResponseSchema, response));
  }

  get routes(): string[] {
    assert.ok(this.client !== undefined);
    return routesOf(this.client.pack(undefined));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client?.close();
    this.#server?.stop();
  }
}

function routesOf(packed: PackedIr): string[] {
  return unpackIr(packed).binds.flatMap(({ listeners }) =>
    listeners.flatMap(({ routes, tcpRoutes }) => [...routes, ...tcpRoutes].map(({ key }) => key)),
  );
}

interface Part {
  readonly name: string;
  readonly kind?: string;
  readonly owner?: string;
  readonly json: string;
}

const BIND: Part = { name: "bind/b", kind: "bind", owner: "", json: '{"key":"b"}' };
const LISTENER: Part = { name: "listener/l", kind: "listener", owner: "b", json: '{"key":"l"}' };

function route(key: string): Part {
  return { name: `route/l/${key}`, json: JSON.stringify({ key, backends: [] }) };
}

function tcpRoute(key: string, createdAt: number): Part {
  return { name: `route/l/${key}`, kind: "tcpRoute", json: JSON.stringify({ key, createdAt, backends: [] }) };
}

suite("the stream client", () => {
  test("authenticates, subscribes to everything and orders routes of connections by age", async () => {
    await using controller = await Controller.start();
    await until(() => controller.requests.length === 2, "both subscriptions");
    const [first, second] = controller.requests;
    assert.deepEqual(first?.node?.metadata, NODE.metadata);
    assert.equal(first?.node?.cluster, "ns/gw");
    assert.deepEqual([first?.typeUrl, second?.typeUrl], [ADDRESS_TYPE, RESOURCE_TYPE]);
    assert.deepEqual(second?.resourceNamesSubscribe, ["*"]);
    controller.send("1", "v1", [tcpRoute("b", 2), LISTENER, tcpRoute("c", 1), BIND, tcpRoute("a", 2)]);
    await until(() => controller.changes.length === 1, "the state");
    assert.deepEqual(controller.routes, ["c", "a", "b"]);
    controller.send("2", "v2", [tcpRoute("b", 0)], ["route/l/c"]);
    await until(() => controller.changes.length === 2, "the change");
    assert.deepEqual(controller.routes, ["b", "a"]);
  });

  test("applies nothing of a truncated batch, and resumes with what it has", async () => {
    await using controller = await Controller.start();
    await until(() => controller.requests.length === 2, "the connection");
    controller.send("1", "v1", [BIND, LISTENER, route("a")]);
    await until(() => controller.changes.length === 1, "the state");
    controller.send("2", "", [route("half")], ["route/l/a"]);
    controller.calls.at(-1)?.end();
    await until(() => controller.requests.length === 4, "another connection");
    assert.equal(controller.changes.length, 1);
    assert.deepEqual(controller.routes, ["a"]);
    const known = controller.requests[3]?.initialResourceVersions ?? {};
    assert.deepEqual(Object.keys(known).sort(), ["bind/b", "listener/l", "route/l/a"]);
    assert.equal(known["bind/b"], 'bind/b {"key":"b"}');
    controller.send("1", "v1", []);
    await until(() => controller.changes.length === 2, "the answer to the resumption");
    assert.deepEqual(controller.changes, [true, false]);
  });

  test("acknowledges or rejects each response, with the reason", async () => {
    await using controller = await Controller.start();
    await until(() => controller.requests.length === 2, "the connection");
    controller.send("1", "", [BIND]);
    controller.send("2", "v1", [LISTENER]);
    await until(() => controller.changes.length === 1, "the state");
    const answer = controller.client?.takeResponses();
    answer?.("port 80 is taken");
    await until(() => controller.requests.length === 4, "the rejection");
    answer?.();
    await until(() => controller.requests.length === 6, "the success");
    assert.deepEqual(
      controller.requests.slice(2).map(({ responseNonce, errorDetail }) => [responseNonce, errorDetail?.message]),
      [
        ["1", "port 80 is taken"],
        ["2", "port 80 is taken"],
        ["1", undefined],
        ["2", undefined],
      ],
    );
  });

  test("rejects an invalid part by its name", async () => {
    await using controller = await Controller.start();
    await until(() => controller.requests.length === 2, "the connection");
    controller.send("1", "v1", [{ ...BIND, json: "{" }]);
    await until(() => controller.changes.length === 1, "the state");
    assert.throws(() => controller.routes, /resource bind\/b is not JSON/);
  });

  test("reports an unreadable message and reconnects", async () => {
    await using controller = await Controller.start();
    await until(() => controller.requests.length === 2, "the connection");
    controller.calls.at(-1)?.write(Buffer.of(0x0a, 0x7f));
    await until(() => controller.requests.length >= 4, "another connection");
    assert.deepEqual(controller.changes, []);
  });

  suite("a preview", () => {
    /** Gives the client the route `a`. */
    async function synchronize(controller: Controller): Promise<XdsClient> {
      await until(() => controller.requests.length === 2, "the connection");
      controller.send("1", "v1", [BIND, LISTENER, route("a")]);
      await until(() => controller.changes.length === 1, "the state");
      assert.ok(controller.client !== undefined);
      return controller.client;
    }

    test("is what the client has with the differences, and changes nothing of that", async () => {
      await using controller = await Controller.start();
      const client = await synchronize(controller);
      const preview = client.preview("p1", "own functions");
      await until(() => controller.requests.length === 4, "both subscriptions");
      const [, , first, second] = controller.requests;
      assert.deepEqual(first?.node?.metadata, { ...NODE.metadata, PREVIEW: "p1" });
      assert.deepEqual(second?.resourceNamesSubscribe, ["*"]);
      assert.deepEqual(Object.keys(second?.initialResourceVersions ?? {}).sort(), [
        "bind/b",
        "listener/l",
        "route/l/a",
      ]);
      const ended = new Promise((resolve) => controller.calls.at(-1)?.once("close", resolve));
      controller.send("1", "", [route("c")]);
      controller.send("2", "v2", [route("b")], ["route/l/a"]);
      const packed = await preview;
      assert.deepEqual(routesOf(packed), ["b", "c"]);
      assert.equal(packed.frame.customFunctions, "own functions");
      await ended;
      assert.deepEqual([controller.routes, controller.changes, client.version], [["a"], [true], "v1"]);
      assert.deepEqual([controller.calls.length, controller.requests.length], [2, 4]);
    });

    test("that the controller ends, that cannot be read or that comes too late is an error", async (t) => {
      await using controller = await Controller.start();
      const client = await synchronize(controller);
      const fails = async (end: () => void, message: RegExp): Promise<void> => {
        const before = controller.calls.length;
        const failure = assert.rejects(client.preview("p1", undefined), message);
        await untilTurn(() => controller.calls.length > before, "the stream");
        end();
        await failure;
      };
      await fails(() => controller.calls.at(-1)?.end(), /gRPC status 0/);
      await fails(() => controller.calls.at(-1)?.write(Buffer.of(0x0a, 0x7f)), /./);
      await fails(() => controller.send("1", "v2", [{ ...BIND, json: "{" }]), /resource bind\/b is not JSON/);
      t.mock.timers.enable({ apis: ["setTimeout"] });
      await fails(() => t.mock.timers.tick(30_000), /no preview within 30 s/);
      t.mock.timers.reset();
      await fails(() => client.close(), /the gateway is shutting down/);
      assert.deepEqual(controller.changes, [true]);
    });
  });
});
