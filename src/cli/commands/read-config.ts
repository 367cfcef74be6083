import { readFileSync } from "node:fs";
import { messageOf } from "../../base/errors.ts";
import { CliError } from "../runner/errors.ts";

/** The text of a configuration that a proxy is to judge, and how its positions call it. `-` is standard input. Throws CliError. */
export function readConfig(path: string): { readonly text: string; readonly name: string } {
  try {
    return { text: readFileSync(path === "-" ? 0 : path, "utf8"), name: path === "-" ? "standard input" : path };
  } catch (error) {
    throw new CliError("failure", `cannot read ${path}: ${messageOf(error)}`);
  }
}
