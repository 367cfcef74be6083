/**
 * TracegateBackend (tracegate.dev/v1alpha1, docs/crds.md#tracegatebackend): a destination that is not a Service of the cluster.
 */
import { z } from "zod";
import { dns } from "../../translation/schema/dns.ts";
import { dynamicTarget } from "../../translation/schema/scalars.ts";

const fixed = z
  .strictObject({
    host: z
      .string()
      .min(1)
      .max(253)
      // An IPv6 address has more than one colon.
      .refine((host) => !host.includes("/") && host.split(":").length !== 2, {
        message: "write a host name or an IP address, without scheme, port and path",
      })
      .optional()
      .describe("Host name or IP address."),
    port: z.int().min(1).max(65535).optional().describe("Port of the host."),
    srv: z
      .string()
      .min(1)
      .max(253)
      .regex(/^[A-Za-z0-9_.-]+$/, { message: "write the name of the records, such as _http._tcp.example.com" })
      .optional()
      .describe("Name of SRV records, such as `_http._tcp.example.com`, in place of host and port."),
    dns,
    unixPath: z
      .string()
      .min(1)
      .max(1024)
      .optional()
      .describe(
        "Path of a Unix socket in the pods of the proxies, below their `config.backend.unixFolder` (`rawConfig`).",
      ),
  })
  .refine(
    ({ host, port, srv, unixPath }) => {
      const others = [srv, unixPath].filter((each) => each !== undefined).length;
      return others === 0 ? host !== undefined && port !== undefined : others === 1 && (host ?? port) === undefined;
    },
    { message: "one of host with port, srv and unixPath is required" },
  )
  .describe("A fixed address.");

const dynamic = z
  .strictObject({
    target: dynamicTarget("request")
      .optional()
      .describe("CEL that gives `host:port`. Default: the host of the request."),
  })
  .describe("A forward proxy: requests name their destination. Restrict it with policies such as `authorization`.");

export const backendSpec = z
  .strictObject({
    static: fixed.optional(),
    dynamicForwardProxy: dynamic.optional(),
    policies: z.record(z.string(), z.unknown()).optional(),
  })
  .refine((spec) => (spec.static === undefined) !== (spec.dynamicForwardProxy === undefined), {
    message: "exactly one of static and dynamicForwardProxy is required",
  });

export type BackendSpec = z.output<typeof backendSpec>;
