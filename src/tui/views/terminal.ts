import { writeSync } from "node:fs";

const ENTER = "\u001b[?1049h\u001b[H";
const LEAVE = "\u001b[?25h\u001b[?1049l";

/**
 * Switches the terminal at a file descriptor to its alternate screen. The returned function switches back, once. It also runs
 * when the process exits or throws: synchronously, because no asynchronous work runs then, and before Node prints the error,
 * which would otherwise disappear with the alternate screen.
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
      // The terminal was closed, so there is no screen to restore.
    }
  };
  process.on("exit", leave);
  process.on("uncaughtExceptionMonitor", leave);
  writeSync(fd, ENTER);
  return leave;
}

/** Base64 characters: the limit of common terminals, which ignore longer OSC 52 sequences. */
const MAX_CLIPBOARD = 74_994;

/**
 * The control sequence OSC 52, by which the terminal sets the clipboard, so it also works over SSH and in tmux. `undefined` when
 * the text is longer than terminals accept.
 */
export function clipboardSequence(text: string): string | undefined {
  const encoded = Buffer.from(text).toString("base64");
  return encoded.length > MAX_CLIPBOARD ? undefined : `\u001b]52;c;${encoded}\u0007`;
}
