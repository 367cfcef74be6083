import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { seconds } from "../../base/dates.ts";
import type { GatewayError } from "../../base/errors.ts";
import { SealedCookies } from "./cookies.ts";
import { Transactions } from "./transaction.ts";

const SEALED = new SealedCookies(randomBytes(32), "policy", false);
const TRANSACTIONS = new Transactions(SEALED, "1");

/** A browser's cookies after these Set-Cookie values. */
function keep(sent: ReadonlyMap<string, string>, setCookies: readonly string[]): Map<string, string> {
  const kept = new Map(sent);
  for (const each of setCookies) {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
    if (each.includes("Max-Age=0")) kept.delete(name);
    else kept.set(name, value);
  }
  return kept;
}

function rejection(sent: ReadonlyMap<string, string>, state: string): string {
  try {
    TRANSACTIONS.find(sent, state);
  } catch (error) {
    assert.equal((error as GatewayError).status, 400);
    return (error as GatewayError).message;
  }
  return "none";
}

test("a login is found by its state only", () => {
  const { transaction, cookies } = TRANSACTIONS.begin(new Map(), "/shop?page=2");
  const sent = keep(new Map(), cookies);
  const found = TRANSACTIONS.find(sent, transaction.state);
  assert.deepEqual(found.transaction, transaction);
  assert.equal(transaction.returnTo, "/shop?page=2");
  assert.equal(keep(sent, [found.removal]).size, 0);
  assert.equal(
    rejection(new Map(), transaction.state),
    "oidc failure: no login is in progress: the browser sent no cookie of one",
  );
  const other = `${transaction.state.slice(0, 20)}${"x".repeat(23)}`;
  assert.equal(rejection(sent, other), "oidc failure: the state of the callback is not that of the login");
  for (const state of ["", "x", `${transaction.state}x`, "../".repeat(20), "ö".repeat(43)])
    assert.equal(rejection(sent, state), "oidc failure: invalid callback");
});

test("a login that took too long is rejected", () => {
  const { transaction, cookies } = TRANSACTIONS.begin(new Map(), "/");
  const [name = ""] = keep(new Map(), cookies).keys();
  const late = keep(new Map(), [SEALED.issue(name, transaction, seconds() - 1, seconds() - 301)]);
  assert.equal(rejection(late, transaction.state), "oidc failure: the cookie of the login has expired or is not valid");
});

test("after a login, the browser does not return to URLs that are too long or invalid", () => {
  const placeAfter = (target: string) => TRANSACTIONS.begin(new Map(), target).transaction.returnTo;
  assert.equal(placeAfter(`/${"x".repeat(2047)}`).length, 2048);
  assert.equal(placeAfter(`/${"x".repeat(2048)}`), "/");
  assert.equal(placeAfter("*"), "/");
});

test("a browser keeps the cookies of its eight latest logins at most", () => {
  let sent = new Map<string, string>();
  const states: string[] = [];
  for (let i = 0; i < 20; i++) {
    const { transaction, cookies } = TRANSACTIONS.begin(sent, "/");
    sent = keep(sent, cookies);
    states.push(transaction.state);
  }
  assert.equal(sent.size, 8);
  assert.equal(TRANSACTIONS.find(sent, states.at(-1) ?? "").transaction.state, states.at(-1));
});

test("invalid logins are dropped first", () => {
  let sent = new Map([["tracegate_oidc_t_1_broken", "x"]]);
  sent = keep(sent, TRANSACTIONS.begin(sent, "/").cookies);
  assert.ok(!sent.has("tracegate_oidc_t_1_broken"));
  assert.equal(sent.size, 1);
});
