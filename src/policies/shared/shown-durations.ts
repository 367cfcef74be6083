import { formatDuration } from "../../base/durations.ts";

/** A configuration for dumps and traces: the named fields, which hold milliseconds, become texts such as `1m30s`. */
export function withDurations<Config extends object>(
  config: Config,
  ...fields: readonly (keyof Config)[]
): Readonly<Record<string, unknown>> {
  const times = fields.flatMap((field) => {
    const value = config[field];
    return typeof value === "number" ? [[field, formatDuration(value)] as const] : [];
  });
  return { ...config, ...Object.fromEntries(times) };
}
