/**
 * The gateway's side of `tracegate oneshot`: it reports when it is ready, and must not outlive the process that started it. The two
 * share an IPC channel, which the system closes when either process ends, even by SIGKILL. A separate file, because oneshot.ts
 * imports it without the gateway and the gateway imports it without node:child_process.
 */

/** The command-line option for such a gateway; hidden from help. */
export const SUPERVISED = "--supervised";

/** Calls back once when the other process has ended, even if before this call. */
export function onOrphaned(callback: () => void): void {
  process.once("disconnect", callback);
  if (!process.connected) callback();
}

/** Sends the only message of the channel: the gateway is ready. */
export function reportReady(): void {
  // If the other process has ended, `onOrphaned` handles it.
  process.send?.("ready", undefined, undefined, () => {});
}
