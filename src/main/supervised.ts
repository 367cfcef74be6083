/**
 * The other side of oneshot.ts: a gateway that was started by a process which waits for it and which it must not outlive.
 * The two share a channel; the system closes it when either of them ends, however it ends.
 */

/** The argument that tells a gateway so. People have no use for it. */
export const SUPERVISED = "--supervised";

/** Calls back once when the process at the other end of the channel has ended, or had before. */
export function onOrphaned(callback: () => void): void {
  process.once("disconnect", callback);
  if (!process.connected) callback();
}

/** Says that the gateway serves: the one message there is. */
export function tellReady(): void {
  // Who is not there any more is noticed by `onOrphaned`.
  process.send?.("ready", undefined, undefined, () => {});
}
