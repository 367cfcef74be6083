import type { Group } from "../define-command.ts";
import { bashScript } from "./bash.ts";
import { fishScript } from "./fish.ts";
import { completionPoints } from "./words.ts";
import { zshScript } from "./zsh.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

const WRITERS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** The completion script of a shell for a program, written from its commands. */
export function completionScript(shell: Shell, root: Group): string {
  return WRITERS[shell](root.name, completionPoints(root));
}
