/**
 * Writes what a command that ends by itself has to say to standard output; bytes are UTF-8. When the reader has closed it
 * (`| head`), the command ends quietly. The log of a gateway goes through log-sink.ts instead.
 */
export function print(text: string | Uint8Array): void {
  if (!process.stdout.listeners("error").includes(leave)) process.stdout.on("error", leave);
  process.stdout.write(text);
}

function leave(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
}
