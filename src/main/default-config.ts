import { accessSync, constants, copyFileSync, existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { appRoot } from "../base/app-root.ts";
import { fileProblem } from "../base/file-problem.ts";
import { CliError } from "../cli/runner/errors.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Mount point of the configuration in a container. */
const CONFIG_VOLUME = "/config";
const TEMPLATE = "examples/default.yaml";

/** There is no usable path for a configuration; the message says what to do. */
export class NoConfigError extends CliError {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super("failure", message, options);
  }
}

/**
 * The configuration file of a start without `-f` and `-c` (docs/configuration.md): `LOCAL_XDS_PATH`; else `config.yaml` in
 * `volume` if that is a folder, else in the user's own configuration folder. Throws NoConfigError where a default would hide that
 * the configuration was forgotten: in Kubernetes, in a container without the volume, with an empty volume that cannot be written.
 */
export function defaultConfigPath(env: Env, volume = CONFIG_VOLUME): string {
  if (isSet(env.LOCAL_XDS_PATH)) return env.LOCAL_XDS_PATH;
  if (isSet(env.KUBERNETES_SERVICE_HOST))
    throw new NoConfigError(
      "configuration is required when running in Kubernetes; pass --config, --file, or set LOCAL_XDS_PATH",
    );
  if (isFolder(volume)) {
    const file = join(volume, "config.yaml");
    if (existsSync(file) || isWritable(volume)) return file;
    throw new NoConfigError(`${file} does not exist and ${volume} cannot be written; mount a configuration there`);
  }
  if (env.TRACEGATE_ENV === "container")
    throw new NoConfigError(`${volume} is not mounted; mount a folder there, or pass -f FILE or -c CONFIG`);
  // The XDG Base Directory Specification: a relative path is ignored.
  if (isSet(env.XDG_CONFIG_HOME) && isAbsolute(env.XDG_CONFIG_HOME))
    return join(env.XDG_CONFIG_HOME, "tracegate", "config.yaml");
  if (isSet(env.HOME)) return join(env.HOME, ".config", "tracegate", "config.yaml");
  throw new NoConfigError("no configuration: neither XDG_CONFIG_HOME nor HOME is set; pass -f FILE or -c CONFIG");
}

/** Writes examples/default.yaml to `path` unless there is a file. Returns whether it did; throws NoConfigError. */
export function createDefaultConfig(path: string): boolean {
  if (existsSync(path)) return false;
  try {
    mkdirSync(dirname(path), { recursive: true });
    // Another process may have created it meanwhile; its copy is the same.
    copyFileSync(`${appRoot}${TEMPLATE}`, path, constants.COPYFILE_EXCL);
    return true;
  } catch (cause) {
    if (existsSync(path)) return false;
    const why = fileProblem(cause);
    throw new NoConfigError(`cannot create ${path}: ${why}; pass -f FILE or -c CONFIG`, { cause });
  }
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
