/** The records of real workers under load that end at any moment, read a thousand times a second. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Records, type RequestRecord } from "../../../src/recorder/records.ts";
import { irOf, TestSupervisor } from "../../helpers/supervisor.ts";
import { until } from "../../helpers/until.ts";

const WORKERS = 2;
const CLIENTS = 6;
const KILLS = 2;
/** So few slots that readers and writers often meet in one. */
const AREA = 64 * 256;
const STATUSES = [200, 201, 202, 203, 403, 404, 500, 501, 502, 503];

/** Each status has a route, and its responses have a length of their own. */
const CONFIG = {
  binds: [
    {
      port: 0,
      listeners: [
        {
          routes: STATUSES.map((status) => ({
            name: `status-${status}`,
            matches: [{ path: { pathPrefix: `/${status}` } }],
            policies: { directResponse: { status, body: "x".repeat(status) } },
          })),
        },
      ],
    },
  ],
};

/**
 * Sends requests in batches on connections that last for a few of them: then another worker may accept the next one. What belongs together
 * follows from the id.
 */
class Client {
  static next = 0;
  stopped = false;
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  async run(): Promise<void> {
    while (!this.stopped) await this.#connection();
  }

  #connection(): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect({ port: this.#port, host: "127.0.0.1" });
      let batches = 0;
      const send = (): void => {
        if (this.stopped || batches++ === 8) socket.destroy();
        else socket.write(Array.from({ length: 16 }, () => requestOf(Client.next++)).join(""));
      };
      let answered = 0;
      socket.on("connect", send);
      socket.on("data", (bytes: Buffer) => {
        answered += bytes.toString("latin1").split("HTTP/1.1 ").length - 1;
        // A head that arrives in two parts is not counted, so some batches overlap.
        if (answered < 15) return;
        answered = 0;
        send();
      });
      socket.on("error", () => {});
      socket.on("close", () => resolve());
    });
  }
}

function statusOf(number: number): number {
  return STATUSES[number % STATUSES.length] ?? 0;
}

function requestOf(number: number): string {
  return `GET /${statusOf(number)}/${number} HTTP/1.1\r\nHost: h${number % 7}.test\r\nX-Request-Id: id-${number}\r\n\r\n`;
}

/** Whether all that the record says belongs to one request. */
function isWhole({ id, path, host, status, sent, route, method, worker }: RequestRecord): boolean {
  const number = Number(id?.slice(3));
  return (
    path === `/${statusOf(number)}/${number}` &&
    host === `h${number % 7}.test` &&
    status === statusOf(number) &&
    sent === status &&
    route === `default/status-${status}` &&
    method === "GET" &&
    worker < WORKERS
  );
}

test("every record that a reader finds is whole, whenever workers end, and replacements continue where they ended", async () => {
  await using workers = new TestSupervisor(WORKERS, {
    recorder: { recent: AREA, kept: AREA, samples: 0, clientAddress: false },
  });
  const { supervisor } = workers;
  await supervisor.apply(1, irOf(CONFIG));
  const records = new Records(supervisor.recorders);
  const clients = Array.from({ length: CLIENTS }, () => new Client(workers.port));
  const running = clients.map((client) => client.run());
  /** The highest number of each worker, and its highest before its latest end. */
  const newest = Array.from({ length: WORKERS }, () => 0);
  const broken: RequestRecord[] = [];
  /** The id of each record by its number, which no other record may have. */
  const ids = new Map<string, string | undefined>();
  let read = 0;
  const look = (): void => {
    for (const record of records.find({ since: 0, limit: 1000 }).records) {
      read++;
      const number = `${record.worker}-${record.number}`;
      if (!isWhole(record) || (ids.get(number) ?? record.id) !== record.id) broken.push(record);
      ids.set(number, record.id);
      newest[record.worker] = Math.max(newest[record.worker] ?? 0, record.number);
    }
  };
  let over = false;
  const reading = (async () => {
    for (; !over; await delay(1)) look();
  })();
  try {
    for (let kill = 0; kill < KILLS; kill++) {
      const worker = kill % WORKERS;
      const before = newest[worker] ?? 0;
      await until(() => (newest[worker] ?? 0) > before + 1000, "records of the worker");
      const died = workers.death();
      await Promise.all([workers.end(`worker-${worker}`), died]);
      look();
      const last = newest[worker] ?? 0;
      const found = records.find({ since: 0, limit: 1000 }).records.filter((record) => record.worker === worker);
      assert.ok(
        found.length >= AREA / 256 && found.some(({ number }) => number === last),
        "records outlive their worker",
      );
      await until(() => (newest[worker] ?? 0) > last, "records of its replacement");
    }
  } finally {
    over = true;
    for (const client of clients) client.stopped = true;
    await Promise.all([reading, ...running]);
  }
  assert.ok(read > 5000);
  assert.deepEqual(broken.slice(0, 5), []);
});
