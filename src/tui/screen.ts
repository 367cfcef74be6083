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
