/**
 * The variable by which `tracegate oneshot` makes the admin, stats and readiness servers of its gateway use free ports of 127.0.0.1 unless
 * the file or a variable gives their addresses: another gateway may be using their usual ports. A separate file, because oneshot.ts imports
 * it without the gateway.
 */
export const FREE_PORTS = "TRACEGATE_FREE_PORTS";
