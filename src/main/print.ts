/** Writes to standard output; bytes are UTF-8. */
export function print(text: string | Uint8Array): void {
  process.stdout.write(text);
}

// The reader may have closed it (`| head`): that ends the program quietly.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});
