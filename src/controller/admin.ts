/**
 * The admin server of the controller: what it holds and has computed, its log levels, profiles (docs/tgctl.md#tgctl-controller).
 */
import { setTimeout as delay } from "node:timers/promises";
import { adminHeaders, dispatchTo, routesByPath } from "../admin/admin-server.ts";
import type { PreviewReport } from "../admin/client/controller-client.ts";
import { AdminBadRequest, type AdminPlane } from "../admin/plane/plane.ts";
import { mergeCpuProfiles } from "../admin/pprof/cpu.ts";
import { mergeHeapProfiles } from "../admin/pprof/heap.ts";
import { profileRoutes } from "../admin/routes/profiles.ts";
import type { AdminRoute } from "../admin/routes/route.ts";
import { Guard } from "../admin/server/guard.ts";
import { type RunningServer, startHttpServer } from "../admin/server/http-server.ts";
import { jsonReply, textReply } from "../admin/server/reply.ts";
import { jsonOf } from "../base/fields.ts";
import type { ListenAddress } from "../base/listen-address.ts";
import type { Logger, LogOutput } from "../base/log.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import { heapProfile, startCpuProfile } from "../worker/profiles.ts";
import { changeLogLevels } from "./log-levels.ts";

/** What the server sees of the controller. */
interface ControllerPlane extends Pick<AdminPlane, "cpuProfile" | "heapProfile"> {
  readonly version: string;
  build(): object;
  readonly output: LogOutput;
  /** Objects by kind and key, without secrets. */
  objects(): unknown;
  /** What was computed for each Gateway. */
  gateways(): unknown;
  /** Connected proxies, and what each runs. */
  proxies(): unknown;
  /**
   * Keeps the state that a Gateway (`<namespace>/<name>`) would have with these objects, under this id for its proxies.
   * @throws AdminBadRequest for something else than objects, and for an unknown Gateway
   */
  preview(id: string, gateway: string, objects: readonly unknown[]): PreviewReport;
}

/** Bytes of the objects of a preview. */
const MAX_OBJECTS = 16 * 1024 * 1024;
const PREVIEW_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
const LOGGING_METHODS = { allow: "POST, PUT" };

const ROUTES: readonly AdminRoute<ControllerPlane>[] = [
  {
    path: "/",
    methods: ["GET"],
    summary: "this list",
    handle: ({ plane }) => {
      const lines = ROUTES.map(
        ({ path, methods, summary }) => `${methods.join(", ").padEnd(9)} ${path.padEnd(21)} ${summary}\n`,
      );
      return textReply(200, `tracegate ${plane.version} controller\n\n${lines.join("")}`);
    },
  },
  {
    path: "/snapshots",
    methods: ["GET"],
    summary: "names of the snapshots",
    handle: () => jsonReply(ROUTES.map(({ path }) => path).filter((path) => path.startsWith("/snapshots/"))),
  },
  {
    path: "/snapshots/objects",
    methods: ["GET"],
    summary: "objects of the cluster that the controller holds, by kind; without secrets",
    handle: ({ plane }) => jsonReply(plane.objects()),
  },
  {
    path: "/snapshots/gateways",
    methods: ["GET"],
    summary: "resources that each Gateway's proxies are sent, and desired statuses",
    handle: ({ plane }) => jsonReply(plane.gateways()),
  },
  {
    path: "/snapshots/proxies",
    methods: ["GET"],
    summary: "proxies that are connected to this replica, with the versions that they run",
    handle: ({ plane }) => jsonReply(plane.proxies()),
  },
  {
    path: "/previews/",
    methods: ["POST"],
    parameters: ["gateway"],
    maxBody: MAX_OBJECTS,
    summary:
      "keeps for two minutes what a list of objects, the body, would make of gateway=<namespace>/<name>, for its proxies",
    handle: ({ plane, rest, query, body }) => {
      if (!PREVIEW_ID.test(rest)) throw new AdminBadRequest("the id of a preview is a UUID");
      const objects = jsonOf(body.toString("utf8"));
      if (!Array.isArray(objects)) throw new AdminBadRequest("the body must be a list of objects in JSON");
      return jsonReply(plane.preview(rest, query.get("gateway") ?? "", objects));
    },
  },
  {
    path: "/logging",
    methods: ["POST", "PUT"],
    otherMethod: textReply(405, "method must be one of POST|PUT\n", LOGGING_METHODS),
    parameters: "any",
    summary: "log levels; level=<level> sets all components, <component>=<level> sets one",
    handle: ({ plane, query }) => changeLogLevels(plane.output, query),
  },
  {
    path: "/version",
    methods: ["GET"],
    summary: "version of the controller",
    handle: ({ plane }) => jsonReply(plane.build()),
  },
  ...profileRoutes,
];

const BY_PATH = routesByPath(ROUTES);

/** @throws Error when the address cannot be used */
export function startControllerAdmin(
  plane: ControllerPlane,
  address: ListenAddress,
  log: Logger,
  own: OwnSockets,
): Promise<RunningServer> {
  const guard = new Guard(address);
  return startHttpServer(address, {
    name: "admin",
    setting: "the admin port",
    log,
    own,
    headers: (request) => adminHeaders(guard, request),
    handle: (request, signal) => guard.check(request) ?? dispatchTo(BY_PATH, plane, guard, request, signal),
  });
}

/** Profiles of this thread, which is the only one that matters here. */
export const ownProfiles: Pick<AdminPlane, "cpuProfile" | "heapProfile"> = {
  async cpuProfile(seconds, hz, signal) {
    const running = await startCpuProfile(hz);
    await delay(seconds * 1000, undefined, { signal }).catch(() => undefined);
    return mergeCpuProfiles([{ thread: "main", profile: await running.stop() }], hz);
  },
  heapProfile: async () => mergeHeapProfiles([{ thread: "main", profile: await heapProfile() }]),
};
