/** How the listening sockets of all threads share their addresses. */
export interface Sharing {
  /** Each thread has a socket of its own on every port, and the system spreads connections over them (SO_REUSEPORT, socket(7)). */
  readonly reusePort: boolean;
  /** This thread listens on Unix sockets, which only one thread can. */
  readonly unixSockets: boolean;
  /**
   * By address: file descriptors of sockets that the process has from its start, for this thread to accept from once the configuration is
   * in effect. An empty list: only other threads have such sockets.
   */
  readonly inherited: Readonly<Record<string, readonly number[]>>;
}

/** Of a thread that is the only one. */
export const ALONE: Sharing = { reusePort: false, unixSockets: true, inherited: {} };
