import { BlockList, isIPv6 } from "node:net";

const THIS_MACHINE = new BlockList();
THIS_MACHINE.addSubnet("127.0.0.0", 8);
THIS_MACHINE.addAddress("::1", "ipv6");
// Unspecified: systems connect to themselves.
THIS_MACHINE.addSubnet("0.0.0.0", 8);
THIS_MACHINE.addAddress("::", "ipv6");

/** Whether connections to an IP address stay on this machine, whatever its interfaces. */
export function isThisMachine(address: string): boolean {
  return THIS_MACHINE.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}
