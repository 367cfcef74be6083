import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { Fetch } from "../upstream/callouts/fetch.ts";
import { type Account, AccountInCreation, forgetAccount, openAccount } from "./account.ts";
import { AcmeError, AcmeServer } from "./acme-server.ts";
import { removeLeftOver } from "./challenges.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { accountFile, certificateFile, lockFile } from "./layout.ts";
import { LockFiles } from "./lock-files.ts";
import { order } from "./order.ts";
import { certificateId, type RenewalInfo, renewAt, renewalInfo } from "./renewal.ts";
import type { AcmeSettings, ManagedCertificate } from "./settings.ts";
import { type CertificateState, type Failure, readState, readStored, writeCertificate, writeState } from "./state.ts";

/** Orders at the same time; CAs ask clients not to have many. */
const MAX_ORDERS = 4;
/** Certificates that are read at the same time: after a start all are, and each takes two open files. */
const MAX_READS = 16;
/** What others may have changed in the storage is looked at this often, also because clocks jump. */
const LOOK_MS = 60 * 60_000;
/** Another process is ordering the certificate. */
const HELD_PAUSE_MS = 5_000;
/** After a first failure; doubled with each further one. */
const FIRST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 24 * 60 * 60_000;
/** A server that says when to come back is believed up to this long. */
const MAX_RETRY_AFTER_MS = 7 * 24 * 60 * 60_000;

/** What a certificate is waiting for. */
export interface CertificateStep {
  readonly step: "order" | "retry" | "renew" | "wait";
  /** Milliseconds since 1970; undefined: it is being done. */
  readonly at: number | undefined;
  readonly failure: Failure | undefined;
  /** Since the start of this process. */
  readonly issued: number;
  readonly failed: number;
}

/** How fast things happen; tests are in a hurry. */
interface Pace {
  readonly firstPause: number;
  readonly heldPause: number;
}

const PACE: Pace = { firstPause: FIRST_PAUSE_MS, heldPause: HELD_PAUSE_MS };

interface Managed {
  readonly certificate: ManagedCertificate;
  /** Tells whether settings have changed. */
  readonly identity: string;
  readonly stop: AbortController;
  timer: NodeJS.Timeout | undefined;
  busy: Promise<void> | undefined;
  now: CertificateStep;
}

/**
 * Orders and renews certificates. Level-triggered: each look compares the storage with the managed certificates and takes one step.
 * What is in the storage reaches listeners as the files of other certificates do, by a reload of the configuration, so this class
 * only writes files. Does not keep the process alive.
 */
export class Certificates {
  readonly #fetch: Fetch;
  readonly #log: Logger;
  readonly #pace: Pace;
  readonly #locks = new LockFiles();
  readonly #managed = new Map<string, Managed>();
  /** By their directory and CAs. */
  readonly #servers = new Map<string, AcmeServer>();
  /** By their files: orders that begin at the same time share an account that is being created. */
  readonly #accounts = new Map<string, Promise<Account>>();
  readonly #swept = new Set<string>();
  readonly #closing = new AbortController();
  readonly #orders = new ConcurrencyLimit(MAX_ORDERS);
  readonly #reads = new ConcurrencyLimit(MAX_READS);

  constructor(fetch: Fetch, log: Logger, pace: Pace = PACE) {
    this.#fetch = fetch;
    this.#log = log;
    this.#pace = pace;
  }

  /** Replaces the set of managed certificates. An order in progress continues if its certificate is still in the set with the same settings. */
  follow(wanted: readonly ManagedCertificate[]): void {
    const byFile = new Map(wanted.map((each) => [certificateFile(each.settings, each.name), each]));
    for (const [file, managed] of this.#managed) {
      const next = byFile.get(file);
      if (next !== undefined && identityOf(next) === managed.identity) byFile.delete(file);
      else this.#drop(file, managed);
    }
    for (const [file, certificate] of byFile) this.#add(file, certificate);
    for (const storage of new Set(wanted.map(({ settings }) => settings.storage))) this.#sweep(storage);
  }

  /** What comes next for a certificate; undefined if it is not one of those that are wanted. */
  stepOf({ name, settings }: ManagedCertificate): CertificateStep | undefined {
    return this.#managed.get(certificateFile(settings, name))?.now;
  }

  /** Ends what is in progress. Locks are released, so another process can go on at once. */
  async close(): Promise<void> {
    const ending = Array.from(this.#managed, ([file, managed]) => {
      this.#drop(file, managed);
      return managed.busy;
    });
    // A server that does not respond must not delay a shutdown.
    this.#closing.abort();
    this.#orders.releaseAll();
    await Promise.all(ending);
  }

  #add(file: string, certificate: ManagedCertificate): void {
    const now: CertificateStep = { step: "wait", at: undefined, failure: undefined, issued: 0, failed: 0 };
    const identity = identityOf(certificate);
    const managed: Managed = {
      certificate,
      identity,
      stop: new AbortController(),
      timer: undefined,
      busy: undefined,
      now,
    };
    this.#managed.set(file, managed);
    this.#lookIn(managed, 0);
  }

  #drop(file: string, managed: Managed): void {
    this.#managed.delete(file);
    clearTimeout(managed.timer);
    managed.stop.abort();
  }

  #lookIn(managed: Managed, pause: number): void {
    if (managed.stop.signal.aborted) return;
    managed.timer = setTimeout(
      () => {
        managed.busy = this.#look(managed).finally(() => {
          managed.busy = undefined;
        });
      },
      Math.min(LOOK_MS, Math.max(0, pause)),
    ).unref();
  }

  /** Does what is due, and sets the timer for what comes next. Never rejects. */
  async #look(managed: Managed): Promise<void> {
    let pause = LOOK_MS;
    try {
      const due = await this.#due(managed);
      pause = due === undefined ? await this.#orders.run(() => this.#obtain(managed)) : due - Date.now();
    } catch (error) {
      if (!managed.stop.signal.aborted) pause = this.#failedHere(managed, error);
    }
    this.#lookIn(managed, pause);
  }

  /** When to look again; undefined: an order is due now. */
  async #due(managed: Managed): Promise<number | undefined> {
    const { certificate } = managed;
    const [state, stored] = await this.#reads.run(() => Promise.all([readState(certificate), readStored(certificate)]));
    const { failure } = state;
    const now = Date.now();
    const mayTry = failure === undefined || failure.retryAt <= now;
    if (stored === undefined) {
      this.#step(managed, {
        step: failure === undefined ? "order" : "retry",
        at: mayTry ? undefined : failure.retryAt,
        failure,
      });
      return mayTry ? undefined : failure.retryAt;
    }
    const id = certificateId(stored);
    let info = state.renewal?.id === id ? state.renewal : undefined;
    if (id !== undefined && (info === undefined || info.askAgainAt <= now) && stored.validToDate.getTime() > now) {
      info = await this.#askWhen(managed, id, info);
      if (info !== undefined) await writeState(certificate, { ...state, renewal: info });
    }
    const renew = renewAt(certificate.name, stored, info);
    if (renew > now) {
      this.#step(managed, { step: "renew", at: renew, failure: undefined });
      return Math.min(renew, info?.askAgainAt ?? Number.POSITIVE_INFINITY);
    }
    this.#step(managed, {
      step: failure === undefined ? "renew" : "retry",
      at: mayTry ? undefined : failure.retryAt,
      failure,
    });
    return mayTry ? undefined : failure.retryAt;
  }

  /** Asks the server when it wants the certificate to be renewed. A server that does not answer does not hold up the renewal. */
  async #askWhen(
    { certificate }: Managed,
    id: string,
    before: RenewalInfo | undefined,
  ): Promise<RenewalInfo | undefined> {
    try {
      return await renewalInfo(this.#serverOf(certificate.settings), id, before, Date.now());
    } catch (error) {
      this.#log.debug("the server does not say when to renew", { name: certificate.name, error: messageOf(error) });
      return before;
    }
  }

  /** Orders the certificate, unless another process does. Returns the milliseconds until the next look. */
  async #obtain(managed: Managed): Promise<number> {
    const { certificate, stop } = managed;
    const { name, settings } = certificate;
    if (stop.signal.aborted) return LOOK_MS;
    const lock = await this.#locks.take(lockFile(settings, name));
    if (lock === undefined) {
      this.#step(managed, { step: "wait", at: Date.now() + this.#pace.heldPause, failure: managed.now.failure });
      return this.#pace.heldPause;
    }
    try {
      // Another process may have been faster.
      const due = await this.#due(managed);
      if (due !== undefined) return due - Date.now();
      return await this.#orderNow(managed, () => lock.isHeld());
    } finally {
      await lock.release();
    }
  }

  async #orderNow(managed: Managed, mayWrite: () => Promise<boolean>): Promise<number> {
    const { certificate, stop } = managed;
    const { name, settings } = certificate;
    const server = this.#serverOf(settings);
    const state = await readState(certificate);
    const stored = await readStored(certificate);
    let account: Account | undefined;
    try {
      account = await this.#accountOf(server, settings);
      const { renewalInfo: hasRenewalInfo } = await server.directory();
      const replaces = stored === undefined || hasRenewalInfo === undefined ? undefined : certificateId(stored);
      const context = { server, account, fetch: this.#fetch, log: this.#log, replaces, signal: stop.signal };
      const issued = await order(certificate, context);
      if (!(await mayWrite())) return this.#pace.heldPause;
      await writeCertificate(certificate, issued);
      await writeState(certificate, {});
      this.#step(managed, { issued: managed.now.issued + 1 });
      const expires = (await readStored(certificate))?.validToDate.toISOString() ?? "";
      this.#log.info("certificate issued", { name, directory: settings.directory, expires });
      // What comes next is in the storage.
      return 0;
    } catch (error) {
      if (stop.signal.aborted) return LOOK_MS;
      if (error instanceof AccountInCreation) return this.#pace.heldPause;
      if (error instanceof AcmeError && error.type === "accountDoesNotExist" && account !== undefined) {
        this.#accounts.delete(accountFile(settings));
        await forgetAccount(settings, account);
      }
      await this.#failed(managed, state, error);
      return 0;
    }
  }

  async #failed(managed: Managed, state: CertificateState, error: unknown): Promise<void> {
    const { certificate } = managed;
    const count = (state.failure?.count ?? 0) + 1;
    const retryAfter = error instanceof AcmeError ? Math.min(error.retryAfter ?? 0, MAX_RETRY_AFTER_MS) : 0;
    const pause = Math.max(this.#pauseAfter(count), retryAfter);
    const message = messageOf(error);
    const failure: Failure = { at: new Date().toISOString(), message, count, retryAt: Date.now() + pause };
    await writeState(certificate, { ...state, failure });
    this.#step(managed, { step: "retry", at: failure.retryAt, failure, failed: managed.now.failed + 1 });
    const { name, settings } = certificate;
    this.#log.warn("no certificate was issued", {
      name,
      directory: settings.directory,
      error: message,
      retryAt: new Date(failure.retryAt).toISOString(),
    });
  }

  /** The storage cannot be used, so the failure is not kept in it. */
  #failedHere(managed: Managed, error: unknown): number {
    const { certificate, now } = managed;
    const count = (now.failure?.count ?? 0) + 1;
    const pause = this.#pauseAfter(count);
    const message = messageOf(error);
    const failure: Failure = { at: new Date().toISOString(), message, count, retryAt: Date.now() + pause };
    this.#step(managed, { step: "retry", at: failure.retryAt, failure, failed: now.failed + 1 });
    this.#log.error("a certificate cannot be managed", { name: certificate.name, error: message });
    return pause;
  }

  /** Grows with each failure, and differs by certificate: many that fail together do not come back together. */
  #pauseAfter(failures: number): number {
    const pause = Math.min(LONGEST_PAUSE_MS, this.#pace.firstPause * 2 ** Math.min(failures - 1, 20));
    return Math.round(pause * (0.75 + 0.5 * Math.random()));
  }

  #step(managed: Managed, step: Partial<CertificateStep>): void {
    managed.now = { ...managed.now, ...step };
  }

  #serverOf({ directory, root }: AcmeSettings): AcmeServer {
    const key = `${directory} ${root ?? ""}`;
    let server = this.#servers.get(key);
    if (server === undefined) {
      server = new AcmeServer(directory, root, this.#fetch, this.#closing.signal);
      this.#servers.set(key, server);
    }
    return server;
  }

  async #accountOf(server: AcmeServer, settings: AcmeSettings): Promise<Account> {
    const file = accountFile(settings);
    const opening = this.#accounts.get(file) ?? openAccount(server, settings, this.#locks);
    this.#accounts.set(file, opening);
    try {
      return await opening;
    } catch (error) {
      if (this.#accounts.get(file) === opening) this.#accounts.delete(file);
      throw error;
    }
  }

  #sweep(storage: string): void {
    if (this.#swept.has(storage)) return;
    this.#swept.add(storage);
    // A storage that cannot be written fails the orders too, which say so.
    removeLeftOver(storage).catch(() => {});
  }
}

function identityOf(certificate: ManagedCertificate): string {
  return JSON.stringify(certificate);
}
