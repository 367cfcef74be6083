import { writeSync } from "node:fs";

const ENTER = "\u001b[?1049h\u001b[H";
const LEAVE = "\u001b[?25h\u001b[?1049l";

/**
 * Switches the terminal at a file descriptor to its alternate screen, and returns what switches back. Switching back
 * happens once, and by itself when the process ends or throws before it was called: synchronously, because nothing
 * asynchronous runs then, and before an error is printed, so that the error is on the screen that stays.
 */
export function enterAlternateScreen(fd: number): () => void {
  let entered = true;
  const leave = () => {
    if (!entered) return;
    entered = false;
    process.off("exit", leave);
    process.off("uncaughtExceptionMonitor", leave);
    try {
      writeSync(fd, LEAVE);
    } catch {
      // The terminal itself has gone; there is no screen to restore.
    }
  };
  process.on("exit", leave);
  process.on("uncaughtExceptionMonitor", leave);
  writeSync(fd, ENTER);
  return leave;
}

/** Terminals drop longer OSC 52 sequences; this is the limit of the most widespread ones, in base64 characters. */
const LONGEST = 74_994;

/**
 * The control sequence OSC 52, which asks the terminal itself to fill the clipboard, so that it also works over SSH and in
 * tmux. `undefined` when the text is longer than terminals accept.
 */
export function clipboardSequence(text: string): string | undefined {
  const encoded = Buffer.from(text).toString("base64");
  return encoded.length > LONGEST ? undefined : `\u001b]52;c;${encoded}\u0007`;
}
