/** Tokens for `jwtAuth`: a good one, and one for each thing that can be wrong. */
import { exportJWK, generateKeyPair, SignJWT } from "jose";

export const ISSUER = "https://issuer.test";
export const AUDIENCE = "shop";

const alg = "ES256";
const own = await generateKeyPair(alg);
const foreign = await generateKeyPair(alg);
const now = Math.floor(Date.now() / 1000);
const DAY = 86_400;

/** The key set of the issuer. */
export const KEYS = JSON.stringify({ keys: [{ ...(await exportJWK(own.publicKey)), kid: "own" }] });

const alice = { iss: ISSUER, aud: AUDIENCE, exp: now + 7 * DAY, sub: "alice", groups: ["ops"] };

export const TOKENS = {
  good: await sign(alice),
  /** As good, and of somebody else. */
  other: await sign({ ...alice, sub: "bob", groups: [] }),
  expired: await sign({ ...alice, exp: now - DAY }),
  forged: await sign(alice, foreign.privateKey),
  forOthers: await sign({ ...alice, aud: "others" }),
  garbled: "no.token",
};

function sign(claims: Readonly<Record<string, unknown>>, key = own.privateKey): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg, kid: "own" }).sign(key);
}
