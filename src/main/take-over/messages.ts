import { type Fields, isObject } from "../../base/fields.ts";

/** From the command `--take-over` to the running gateway: the process to start. One line of JSON. */
export interface TakeOverRequest {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Its answer, once the new process serves or has failed. One line of JSON. */
export type TakeOverAnswer =
  | { readonly type: "serving"; readonly pid: number }
  | { readonly type: "failed"; readonly problem: string };

/** From the new process to the running one, over the channel between parent and child. */
export type SuccessorMessage = { readonly type: "serving" } | { readonly type: "failed"; readonly problem: string };

/** What the environment of a new process has about its sockets. */
export const INHERITED = "TRACEGATE_INHERITED_SOCKETS";

/** Undefined for anything else. */
export function readRequest(line: string): TakeOverRequest | undefined {
  const value = parsed(line);
  if (value === undefined) return undefined;
  const { command, folder, env } = value;
  const isText = (each: unknown): each is string => typeof each === "string";
  if (!Array.isArray(command) || command.length === 0 || !command.every(isText)) return undefined;
  if (!isText(folder) || !isObject(env)) return undefined;
  const variables = Object.entries(env).flatMap(([name, text]) => (isText(text) ? [[name, text]] : []));
  return { command, folder, env: Object.fromEntries(variables) };
}

/** Undefined for anything else. */
export function readAnswer(line: string): TakeOverAnswer | undefined {
  const { type, pid, problem } = parsed(line) ?? {};
  if (type === "serving" && typeof pid === "number") return { type, pid };
  return type === "failed" && typeof problem === "string" ? { type, problem } : undefined;
}

/** Undefined for anything else. */
export function readSuccessorMessage(value: unknown): SuccessorMessage | undefined {
  const { type, problem }: Fields = isObject(value) ? value : {};
  if (type === "serving") return { type };
  return type === "failed" && typeof problem === "string" ? { type, problem } : undefined;
}

function parsed(line: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
