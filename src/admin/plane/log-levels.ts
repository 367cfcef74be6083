import type { LogThreshold } from "../../base/log-filter.ts";

/** Which lines a gateway writes to its log, by module. */
export interface LogLevels {
  /** As `config.logging.level` takes it; several if replicas have different ones. */
  readonly filters: readonly string[];
  /** Of modules without a level of their own; null: replicas have different ones. */
  readonly level: LogThreshold | null;
  /** The modules that write lines, in alphabetical order, then others that the filter names. */
  readonly modules: readonly ModuleLevel[];
}

/** The level of a module; `::` separates it from the module that it belongs to. */
interface ModuleLevel {
  readonly name: string;
  /** null: replicas have different ones. */
  readonly level: LogThreshold | null;
  /** The filter names it; otherwise it has the level of the module that it belongs to, or that of all. */
  readonly own: boolean;
}
