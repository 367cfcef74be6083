import assert from "node:assert/strict";
import { test } from "node:test";
import { TicketSecrets } from "./ticket-keys.ts";

test("a rotation while another thread copies the secrets gives it neither zeros nor secrets of two periods", (t) => {
  const main = new TicketSecrets();
  const other = new TicketSecrets(main.memory);
  const before = other.read();
  const copy = Uint8Array.from.bind(Uint8Array);
  let rotated = false;
  t.mock.method(Uint8Array, "from", (bytes: Uint8Array) => {
    const copied = copy(bytes);
    if (!rotated) main.rotate();
    rotated = true;
    return copied;
  });
  const { rotations, secrets } = other.read();
  assert.equal(rotations, 1);
  assert.deepEqual(secrets[1], before.secrets[0]);
  assert.notDeepEqual(secrets[0], before.secrets[0]);
  for (const secret of secrets) assert.ok(secret.some((byte) => byte !== 0));
});
