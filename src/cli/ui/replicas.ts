/** The web view of several replicas: every one is asked, and their answers become one. */
import { type AdminAnswers, isAnswer } from "../../admin/plane/answers.ts";
import type { ConfigStatus } from "../../admin/plane/config-status.ts";
import { type Merged, type Replica, replicaOf } from "../../admin/plane/replicas.ts";
import { type PlainReply, textReply } from "../../admin/server/reply.ts";
import { fieldsOf, jsonOf } from "../../base/fields.ts";
import type { ExplainRefusal } from "../../rehearsal/explanation.ts";
import { podOfKey } from "../../report/recorded.ts";
import { MERGES, type MergedEndpoint } from "../merge/merges.ts";
import type { OfReplica } from "../merge/replica.ts";
import type { ProxyAdmin } from "../proxy/admin.ts";
import type { Proxies } from "../proxy/proxies.ts";
import { replicaItems } from "../proxy/trace-replicas.ts";
import type { TraceItem, TraceRecord } from "../trace/source.ts";
import { askProxy, type ProxyResponse, replyOf, traceAt } from "./one-proxy.ts";
import type { ViewQuestion, ViewSource } from "./server.ts";
import { problemOf, unavailable } from "./unavailable.ts";

/** Milliseconds for which a replica is not asked again which configuration it has. */
const STATUS_MS = 3000;

/** What one replica says to a question. */
interface Said {
  readonly name: string;
  /** undefined: the replica was not asked or did not answer. */
  readonly response?: ProxyResponse | undefined;
  /** Why there is no response. */
  readonly problem?: string;
  /** Asked only where the state of each replica is shown. */
  readonly status?: ConfigStatus | undefined;
}

/** The view of the replicas that `proxies` has at the time of each question. */
export function allReplicas(proxies: Proxies): ViewSource {
  const statusOf = rememberedStatus();
  return {
    async answer(question) {
      try {
        const { pod, isForOne, ...asked } = placed(question);
        const turn = isForOne ? inTurn() : atOnce;
        const isWhole = pod === undefined && !isForOne;
        const outcomes = await proxies.each(async (proxy): Promise<Omit<Said, "name"> | undefined> => {
          if (pod !== undefined && proxy.pod?.name !== pod) return undefined;
          const [response, status] = await Promise.all([
            turn(() => askProxy(proxy, asked)),
            isWhole ? statusOf(proxy) : undefined,
          ]);
          return { response, status };
        });
        const said = outcomes.flatMap(({ name, pod: of, result }): Said[] => {
          const known = { name: of?.name ?? name };
          if (result.status === "rejected") return [{ ...known, problem: problemOf(result.reason) }];
          return result.value === undefined ? [] : [{ ...known, ...result.value }];
        });
        return merged(question.endpoint, said, question.query, isWhole);
      } catch (error) {
        return unavailable(error);
      }
    },
    async trace(query, signal) {
      const serving = async (): Promise<readonly ProxyAdmin[]> =>
        (await proxies.serving?.()) ?? [await proxies.first()];
      const open = (proxy: ProxyAdmin, stop: AbortSignal): ReturnType<typeof traceAt> => traceAt(proxy, query, stop);
      const items = replicaItems({ name: proxies.name, serving, open, signal });
      // The first item comes before any replica is asked, the next one when one of them waits.
      await items.next();
      const waiting = await items.next();
      return eventsOf(items, waiting.done === true ? undefined : waiting.value);
    },
  };
}

async function* eventsOf(items: AsyncIterable<TraceItem>, first: TraceItem | undefined): AsyncGenerator<TraceRecord> {
  if (first?.kind === "event") yield first;
  for await (const item of items) if (item.kind === "event") yield item;
}

/** Merges the answers, and adds the state of each replica if all were asked (`isWhole`). Without answers, the reply says why. */
function merged<Endpoint extends MergedEndpoint>(
  endpoint: Endpoint,
  said: readonly Said[],
  query: URLSearchParams,
  isWhole: boolean,
): PlainReply {
  const answers: OfReplica<AdminAnswers[Endpoint]>[] = [];
  const replicas = said.map(({ name, response, problem, status }): Replica => {
    const answer = jsonOf(response?.text ?? "");
    const isOne = isAnswer(endpoint, answer);
    if (isOne) answers.push({ pod: name, answer });
    return replicaOf(name, problem ?? (isOne ? undefined : refusalOf(response)), status);
  });
  const responses = said.flatMap(({ response }) => response ?? []);
  const [first] = responses;
  if (answers.length > 0) {
    const merged = MERGES[endpoint].merge(answers, query);
    const answer = isWhole ? ({ ...merged, replicas } satisfies Merged) : merged;
    const status = responses.some((each) => each.status === 200) ? 200 : 404;
    return { status, type: "application/json", body: JSON.stringify(answer) };
  }
  if (first !== undefined && said.every(({ problem }) => problem === undefined)) return replyOf(first);
  const problems = said.map(({ name, response, problem }) => `${name}: ${problem ?? messageOf(response)}`);
  return textReply(503, problems.map((line) => `${line}\n`).join(""));
}

/** Why a response is no answer. Undefined if the replica was not asked, or does not have the request, which another one may have. */
function refusalOf(response: ProxyResponse | undefined): string | undefined {
  if (response === undefined || refusalIn(response)?.code === "record") return undefined;
  return messageOf(response);
}

function messageOf(response: ProxyResponse | undefined): string {
  if (response === undefined) return "has not been asked";
  if (response.status === 200) return "its version gives another answer than this one understands";
  return refusalIn(response)?.message ?? response.text;
}

function refusalIn({ text }: ProxyResponse): Partial<ExplainRefusal["error"]> | undefined {
  const { error } = fieldsOf(jsonOf(text)) as Partial<ExplainRefusal>;
  return error;
}

/** A question as gateways understand it. */
interface PlacedQuestion extends ViewQuestion {
  /** Only the replica in this pod is asked. */
  readonly pod: string | undefined;
  /** Any replica can answer it. */
  readonly isForOne: boolean;
}

/** The question with the id that a gateway knows, and the pod that the view has written before it. */
function placed(question: ViewQuestion): PlacedQuestion {
  const { endpoint, rest, body } = question;
  const { asks, ask } = MERGES[endpoint];
  const query = ask?.(question.query) ?? question.query;
  if (endpoint === "/requests/") {
    const { pod, id } = podOfKey(rest);
    return { ...question, query, pod, isForOne: false, rest: id };
  }
  const facts = asks === "knowing" ? fieldsOf(jsonOf(body)) : {};
  if (typeof facts.id !== "string") return { ...question, query, pod: undefined, isForOne: asks !== undefined };
  const { pod, id } = podOfKey(facts.id);
  return { ...question, query, pod, isForOne: false, body: JSON.stringify({ ...facts, id }) };
}

type Turn = (call: () => Promise<ProxyResponse>) => Promise<ProxyResponse | undefined>;

const atOnce: Turn = (call) => call();

/** One call after another, until one has a response that asking others would not better. */
function inTurn(): Turn {
  let answered: Promise<boolean> = Promise.resolve(false);
  return (call) => {
    const mine = answered.then((done) => (done ? undefined : call()));
    answered = mine.then(
      (response) => response === undefined || response.status < 500,
      () => false,
    );
    return mine;
  };
}

/** Which configuration a replica has, as of the last three seconds. Undefined if it does not answer: the question itself then fails too, and says why. */
function rememberedStatus(): (proxy: ProxyAdmin) => Promise<ConfigStatus | undefined> {
  const known = new WeakMap<ProxyAdmin, { readonly at: number; readonly status: Promise<ConfigStatus | undefined> }>();
  return (proxy) => {
    const { at = 0, status } = known.get(proxy) ?? {};
    if (status !== undefined && performance.now() - at < STATUS_MS) return status;
    const asked = proxy.client.configStatus().catch(() => undefined);
    known.set(proxy, { at: performance.now(), status: asked });
    return asked;
  };
}
