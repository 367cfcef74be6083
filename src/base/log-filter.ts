/** From the fewest lines to the most. */
export const LOG_LEVELS = ["off", "error", "warn", "info", "debug", "trace"] as const;

/** A threshold of a filter: this level and all more severe ones pass. */
export type LogThreshold = (typeof LOG_LEVELS)[number];
/** The level of one line. */
export type LogLevel = Exclude<LogThreshold, "off">;

/** Position of a level in `LOG_LEVELS`: a line passes when its rank is not above the threshold's. */
export const LEVEL_RANK: Readonly<Record<LogThreshold, number>> = {
  off: 0,
  error: 1,
  warn: 2,
  info: 3,
  debug: 4,
  trace: 5,
};

const MODULE = /^[\w.-]+(?:(?:::|\/)[\w.-]+)*$/;
const MAX_DIRECTIVES = 200;

/**
 * Which lines are written: a global level and levels per module, as in RUST_LOG. A module covers itself and what is below
 * it (`proxy` covers `proxy::match`); the longest one that covers a target wins. Immutable.
 */
export class LogFilter {
  readonly global: LogThreshold;
  readonly modules: ReadonlyMap<string, LogThreshold>;

  constructor(global: LogThreshold, modules: ReadonlyMap<string, LogThreshold>) {
    this.global = global;
    this.modules = modules;
  }

  /** Whether a line of this level and target is written. A `Logger` caches the result for its module. */
  enabled(level: LogLevel, target: string): boolean {
    return LEVEL_RANK[level] <= this.rank(target);
  }

  /** The rank (see `LEVEL_RANK`) of the most detailed level that a target may write. */
  rank(target: string): number {
    return LEVEL_RANK[this.levelOf(target)];
  }

  /** The most detailed level that a target may write. */
  levelOf(target: string): LogThreshold {
    let best = this.global;
    let length = -1;
    for (const [module, level] of this.modules)
      if (module.length > length && covers(module, target)) {
        best = level;
        length = module.length;
      }
    return best;
  }

  /**
   * A new filter with more directives; a module or the global level that is named again is replaced.
   * @throws Error as `parseLogFilter`
   */
  with(directives: string): LogFilter {
    let global = this.global;
    const modules = new Map(this.modules);
    for (const directive of directives.split(",")) {
      const text = directive.trim();
      if (text === "") continue;
      const equals = text.lastIndexOf("=");
      if (equals < 0) global = parseLevel(text, text);
      else
        modules.set(parseModule(text.slice(0, equals).trim(), text), parseLevel(text.slice(equals + 1).trim(), text));
    }
    if (modules.size > MAX_DIRECTIVES) throw new Error(`more than ${MAX_DIRECTIVES} log filter directives`);
    return new LogFilter(global, modules);
  }

  /** The canonical text: the global level, then modules in the order they were first named. */
  toString(): string {
    let text: string = this.global;
    for (const [module, level] of this.modules) text += `,${module}=${level}`;
    return text;
  }
}

/**
 * Parses comma-separated directives `<level>` and `<module>=<level>`, such as `info,request=off,proxy::match=debug`. The global
 * level is `info` by default.
 * @throws Error that quotes the directive and lists the levels
 */
export function parseLogFilter(text: string): LogFilter {
  return new LogFilter("info", new Map()).with(text);
}

/** Whether a directive for `module` applies to `target`. */
function covers(module: string, target: string): boolean {
  if (!target.startsWith(module)) return false;
  if (target.length === module.length) return true;
  const next = target.charCodeAt(module.length);
  return next === 0x3a || next === 0x2f;
}

function parseLevel(level: string, directive: string): LogThreshold {
  const known = LOG_LEVELS.find((name) => name === level.toLowerCase());
  if (known !== undefined) return known;
  throw new Error(`log filter "${directive}": "${level}" is not a level; expected one of ${LOG_LEVELS.join(", ")}`);
}

function parseModule(module: string, directive: string): string {
  if (MODULE.test(module)) return module;
  throw new Error(`log filter "${directive}": "${module}" is not a module name; expected <module>=<level>`);
}

/** The modules that write log lines. `::` separates levels: `proxy` covers `proxy::match`. */
export const LOG_MODULES = [
  "acme",
  "admin",
  "gateway",
  "policies",
  "proxy",
  "proxy::match",
  "request",
  "telemetry",
  "upstream",
  "upstream::dns",
  "upstream::health",
  "xds",
] as const;

export type LogModule = (typeof LOG_MODULES)[number];

/** The components of the controller that write log lines, as `tgctl controller log` lists them. */
export const CONTROLLER_COMPONENTS = [
  "tracegate/syncer",
  "tracegate/translator",
  "gateway-controller",
  "deployer",
  "default",
] as const;

export type ControllerComponent = (typeof CONTROLLER_COMPONENTS)[number];

/** The modules of a filter that match no known module, for a warning. */
export function unknownModules(filter: LogFilter): string[] {
  return [...filter.modules.keys()].filter((module) => !LOG_MODULES.some((known) => covers(module, known)));
}
