import type { Row } from "../lib/types.ts";
import { admin } from "./admin.ts";
import { armed } from "./armed.ts";
import { body } from "./body.ts";
import { cpu } from "./cpu.ts";
import { grpc } from "./grpc.ts";
import { h2 } from "./h2.ts";
import { h2body } from "./h2body.ts";
import { handshakes } from "./handshakes.ts";
import { https } from "./https.ts";
import { h2idle, idle } from "./idle.ts";
import { impact } from "./impact.ts";
import { log } from "./log.ts";
import { memory } from "./memory.ts";
import { policies } from "./policies.ts";
import { recorder } from "./recorder.ts";
import { reload } from "./reload.ts";
import { routes } from "./routes.ts";
import { secured } from "./secured.ts";
import { sessions } from "./sessions.ts";
import { shadow } from "./shadow.ts";
import { start } from "./start.ts";
import { tcp } from "./tcp.ts";
import { webView } from "./web-view.ts";
import { workers } from "./workers.ts";

/** In the order of the table. */
export const ROWS: readonly Row[] = [
  cpu,
  routes,
  armed,
  log,
  recorder,
  body,
  tcp,
  https,
  h2,
  h2body,
  grpc,
  handshakes,
  idle,
  h2idle,
  reload,
  workers,
  admin,
  start,
  memory,
  secured,
  policies,
  sessions,
  shadow,
  impact,
  webView,
];
