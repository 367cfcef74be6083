import { openFiles, openFilesLimit } from "../base/open-files.ts";
import { residentMemory } from "../base/resident-memory.ts";
import { counter, type ExtraMetric, gauge } from "./prometheus.ts";

interface BuildState {
  /** Version of the program. */
  readonly tag: string;
  /** Whether the configuration in effect is the newest one that was read. */
  readonly synchronized: boolean;
}

/** Seconds since 1970. Computed once: alerts count its changes as restarts, and the two clocks drift apart. */
const STARTED_AT = Math.round(Date.now() - process.uptime() * 1000) / 1000;

const LIMIT = openFilesLimit();

/** Build information, configuration state, and the process metrics under their customary Prometheus names. */
export async function processMetrics({ tag, synchronized }: BuildState): Promise<ExtraMetric[]> {
  const { user, system } = process.cpuUsage();
  const metrics = [
    gauge("tracegate_build_info", "Version of the program.", [{ labels: { tag }, value: 1 }]),
    gauge(
      "tracegate_config_synchronized",
      "1 when the newest configuration is in effect and is what is on disk.",
      synchronized ? 1 : 0,
    ),
    counter("process_cpu_seconds_total", "User and system CPU time of all threads.", (user + system) / 1e6),
    gauge("process_resident_memory_bytes", "Resident memory.", residentMemory().all),
    gauge("process_start_time_seconds", "Start of the process since the epoch.", STARTED_AT),
  ];
  // Where no descriptor is left to count them, all are open.
  const files = (await openFiles()) ?? LIMIT;
  if (files !== undefined) metrics.push(gauge("process_open_fds", "Open file descriptors.", files));
  if (LIMIT !== undefined) metrics.push(gauge("process_max_fds", "Limit of open file descriptors.", LIMIT));
  return metrics;
}
