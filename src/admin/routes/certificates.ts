import { answerReply } from "../server/reply.ts";
import type { AdminRoute } from "./route.ts";

export const certificateRoutes: readonly AdminRoute[] = [
  {
    path: "/certificates",
    methods: ["GET"],
    summary: "certificates of listeners: names, issuer, expiry, next step, last error",
    handle: ({ plane }) => answerReply("/certificates", plane.certificates()),
  },
];
