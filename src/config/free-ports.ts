/**
 * The variable by which `tracegate oneshot` tells its gateway that nobody expects the admin, stats and readiness servers at their usual
 * ports, where those of another gateway may listen: where neither the file nor a variable gives their addresses, they use free ports of
 * 127.0.0.1. A separate file, because oneshot.ts imports it without the gateway.
 */
export const FREE_PORTS = "TRACEGATE_FREE_PORTS";
