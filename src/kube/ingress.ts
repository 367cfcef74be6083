/** What Ingresses of networking.k8s.io/v1 say, as far as tracegate reads it. */

export interface IngressSpec {
  readonly ingressClassName?: string;
  readonly defaultBackend?: IngressBackend;
  readonly tls?: readonly { readonly hosts?: readonly string[]; readonly secretName?: string }[];
  readonly rules?: readonly {
    readonly host?: string;
    readonly http?: { readonly paths?: readonly IngressPath[] };
  }[];
}

export interface IngressPath {
  readonly path?: string;
  readonly pathType: "Exact" | "Prefix" | "ImplementationSpecific";
  readonly backend: IngressBackend;
}

/** Either a Service or another object of the namespace. */
export interface IngressBackend {
  readonly service?: { readonly name: string; readonly port?: { readonly name?: string; readonly number?: number } };
  readonly resource?: { readonly apiGroup?: string; readonly kind: string; readonly name: string };
}

export interface IngressClassSpec {
  readonly controller?: string;
  readonly parameters?: {
    readonly apiGroup?: string;
    readonly kind: string;
    readonly name: string;
    readonly namespace?: string;
  };
}
