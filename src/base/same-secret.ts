import { timingSafeEqual } from "node:crypto";

/** Whether two secrets are equal. The time that this takes does not reveal one piece by piece, only its length. */
export function sameSecret(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
