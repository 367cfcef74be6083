import { networkInterfaces } from "node:os";

/** An IPv4 address of this machine that is not a loopback address: a controller's configuration may not name any other address of this machine. */
export function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const found = all.find(({ family, internal }) => family === "IPv4" && !internal);
  if (found === undefined) throw new Error("this machine has no IPv4 address besides 127.0.0.1; give it one");
  return found.address;
}
