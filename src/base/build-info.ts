import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { extname } from "node:path";
import { readAppFile } from "./app-files.ts";
import { appRoot } from "./app-root.ts";

/** Where a build came from; empty strings if unknown, as in a source archive. */
interface Origin {
  /** Hash of the commit, with `-dirty` behind it if files were changed since. */
  readonly commit: string;
  /** ISO 8601 UTC. */
  readonly buildDate: string;
}

export interface BuildInfo extends Origin {
  readonly version: string;
}

/** `npm run build` writes the origin here. A checkout does not read it, because its sources may be newer than the build. */
export const ORIGIN_FILE = "dist/origin.json";

const NO_ORIGIN: Origin = { commit: "", buildDate: "" };
let known: BuildInfo | undefined;

/** The version in package.json. */
export function packageVersion(): string {
  return (JSON.parse(String(readAppFile("package.json"))) as { version: string }).version;
}

/** Version and origin of this program. In a checkout this runs git, so call it only where they are shown. */
export function buildInfo(): BuildInfo {
  known ??= { version: packageVersion(), ...(isCheckout() ? originOf(appRoot) : bakedOrigin()) };
  return known;
}

function isCheckout(): boolean {
  return extname(import.meta.url) === ".ts";
}

function bakedOrigin(): Origin {
  const file = readAppFile(ORIGIN_FILE);
  return file === undefined ? NO_ORIGIN : (JSON.parse(String(file)) as Origin);
}

/**
 * The commit of the checkout in `folder`, and its date as the date of the build: two builds of one commit are equal. Nothing without git,
 * or if the folder is only part of another repository.
 */
export function originOf(folder: string): Origin {
  if (!existsSync(`${folder}.git`)) return NO_ORIGIN;
  const git = (...args: readonly string[]): string =>
    execFileSync("git", ["-C", folder, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  try {
    const [commit = "", seconds = ""] = git("log", "-1", "--format=%H %ct").split(" ");
    const changed = git("status", "--porcelain", "--untracked-files=no") !== "";
    return { commit: changed ? `${commit}-dirty` : commit, buildDate: dateOf(seconds) };
  } catch {
    return NO_ORIGIN;
  }
}

/**
 * The origin that a build writes down. SOURCE_DATE_EPOCH (reproducible-builds.org) overrides the date, and SOURCE_COMMIT gives the commit where
 * there is no repository, as in a container.
 */
export function originOfBuild(folder: string, env: Readonly<Record<string, string | undefined>>): Origin {
  const { commit, buildDate } = originOf(folder);
  const epoch = env.SOURCE_DATE_EPOCH ?? "";
  return { commit: env.SOURCE_COMMIT || commit, buildDate: epoch === "" ? buildDate : dateOf(epoch) };
}

/** @throws Error if it is not a number of seconds */
function dateOf(seconds: string): string {
  if (!/^\d{1,12}$/.test(seconds)) throw new Error(`SOURCE_DATE_EPOCH is not a number of seconds: "${seconds}"`);
  return new Date(Number(seconds) * 1000).toISOString().replace(".000Z", "Z");
}
