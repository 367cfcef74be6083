import type { ListenerState, Overview } from "../admin/plane/answers.ts";
import type { ConfigStatus } from "../admin/plane/config-status.ts";
import { type Locate, withPlace } from "../base/origin.ts";
import { formatBindAddresses } from "../ir/bind-addresses.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import type { RecordAnswer, RecordQuery } from "../recorder/records.ts";
import { groupsOf } from "../report/recorded.ts";
import type { Supervisor } from "../worker/supervisor.ts";
import { STEP, type TrafficHistory } from "./traffic-history.ts";

/** Milliseconds: failures as old as the traffic that is shown. */
const PERIOD = 900_000;
/** The newest failures, which are counted, and the groups that are shown. */
const MOST_FAILURES = 2000;
const MOST_GROUPS = 50;

/** The part of a gateway that an overview shows. */
interface OverviewSource {
  readonly supervisor: Pick<Supervisor, "ports" | "states">;
  readonly configuration: PackedIr;
  readonly pending: readonly string[];
  readonly draining: boolean;
  readonly locate: Locate;
  readonly history: TrafficHistory;
}

type Find = (query: RecordQuery) => RecordAnswer;

/** Whether all is well with a gateway, and how much it does. `find`: searches the records, with the places of what decided; undefined: the recorder is off. */
export function overviewOf(
  gateway: OverviewSource,
  status: ConfigStatus,
  version: string,
  find: Find | undefined,
): Overview {
  const now = Date.now();
  const { configuration, supervisor, history, pending, draining } = gateway;
  return {
    version,
    status,
    pending,
    draining,
    workers: supervisor.states,
    listeners: listenersOf(configuration, supervisor.ports, gateway.locate),
    traffic: { step: STEP / 1000, points: history.points(now) },
    failures: find === undefined ? null : failuresSince(now - PERIOD, find),
  };
}

function listenersOf({ frame, routes }: PackedIr, ports: Supervisor["ports"], locate: Locate): ListenerState[] {
  const counts = new Map(routes.map(({ owner, count }) => [owner, count]));
  return frame.binds.flatMap((bind) =>
    bind.listeners.map(({ key, name, gatewayNamespace, gatewayName, hostname, protocol, tcpRoutes, origin }) =>
      withPlace(
        {
          key,
          name,
          gateway: `${gatewayNamespace}/${gatewayName}`,
          hostname: hostname === "" ? "*" : hostname,
          protocol,
          bind: bind.key,
          address: bind.mode === "internal" ? null : formatBindAddresses(bind, ports[bind.key] ?? bind.port),
          routes: (counts.get(key) ?? 0) + tcpRoutes.length,
          ...(origin && { origin }),
        },
        locate,
      ),
    ),
  );
}

function failuresSince(since: number, find: Find): Overview["failures"] {
  const { records: failed, found, until, ...reach } = find({ since, errors: true, limit: MOST_FAILURES });
  const groups = groupsOf(failed, reach.requests).slice(0, MOST_GROUPS);
  return { ...reach, since: new Date(since).toISOString(), found, groups };
}
