/**
 * npm run acme
 * Certificates from Pebble, with its faults switched on: rejected nonces, slow validations, authorizations that are used again.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { freePorts } from "../helpers/free-ports.ts";
import { TestGateway } from "../helpers/gateway.ts";
import { installPebble, Pebble } from "./lib/pebble.ts";
import { runSuite } from "./lib/suite.ts";

await runSuite("acme", async () => {
  installPebble();
  const [http = 0, tls = 0] = await freePorts(2);
  await using pebble = await Pebble.start({ httpPort: http, tlsPort: tls, rejectNonces: 30 });
  const origin = createServer((_request, response) => response.end("hello"));
  origin.listen(0, "127.0.0.1").unref();
  await once(origin, "listening");
  const backends = [{ host: `127.0.0.1:${(origin.address() as AddressInfo).port}` }];
  const acme = (challenge: string) => ({ acme: { directory: pebble.directory, root: pebble.root, challenge } });
  await using gateway = await TestGateway.start({
    gateways: {
      plain: { port: http },
      secure: {
        port: tls,
        listeners: [
          { hostname: "a.example.com", tls: acme("http-01") },
          { hostname: "b.example.com", tls: acme("tls-alpn-01") },
        ],
      },
    },
    routes: [{ gateways: ["plain", "secure"], backends }],
  });
  await gateway
    .until(
      () => gateway.lines.filter(({ message }) => message === "certificate issued").length === 2,
      "two certificates",
    )
    .catch((e) => console.log(e.message, pebble.log.slice(-3000)));
  console.log(gateway.lines.filter((l) => l.scope === "acme" || String(l.message).includes("certif")));
  return [];
});
