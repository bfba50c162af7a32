// Errors, by what the caller should do. The families are those of the daemon and of the Python client.

/** An invalid field: its path and what is allowed. */
export interface FieldViolation {
  field: string;
  description: string;
}

export interface ErrorDetails {
  reason?: string;
  violations?: FieldViolation[];
  metadata?: Record<string, string>;
  retryAfterMs?: number | undefined;
  httpStatus?: number;
  requestId?: string;
  maybeSent?: boolean;
  cause?: unknown;
}

/** An error with a reason that a caller can act on. docs/errors.md lists all reasons. */
export class EbbtideError extends Error {
  readonly reason: string;
  /** Every invalid field. */
  readonly violations: readonly FieldViolation[];
  readonly metadata: Readonly<Record<string, string>>;
  /** Milliseconds after which another attempt makes sense, if the daemon sent them. */
  readonly retryAfterMs: number | undefined;
  /** The HTTP status; undefined without a response. */
  readonly httpStatus: number | undefined;
  /** Id of the request in the daemon's log. */
  readonly requestId: string;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.reason = details.reason ?? "";
    this.violations = details.violations ?? [];
    this.metadata = details.metadata ?? {};
    this.retryAfterMs = details.retryAfterMs;
    this.httpStatus = details.httpStatus;
    this.requestId = details.requestId ?? "";
  }
}

/** The request is invalid: change it. */
export class InvalidRequest extends EbbtideError {}
/** The request has no valid API key. */
export class Unauthenticated extends EbbtideError {}
/** The API key does not allow this. */
export class Forbidden extends EbbtideError {}
/** The resource does not exist. */
export class NotFound extends EbbtideError {}
/** The request conflicts with the current state: read it first. */
export class Conflict extends EbbtideError {}
/** The state of the agent or its data does not allow it. */
export class Precondition extends EbbtideError {}
/** A limit is reached: wait, or free some space. */
export class Exhausted extends EbbtideError {}
/** The operation took longer than the daemon allows. */
export class Deadline extends EbbtideError {}
/** The daemon is temporarily unavailable: try again. */
export class Unavailable extends EbbtideError {}
/** The data on disk is damaged. */
export class Corrupted extends EbbtideError {}
/** A bug in the daemon. */
export class Internal extends EbbtideError {}
/** The response is not that of an Ebbtide daemon. */
export class UnexpectedAnswer extends EbbtideError {}

/** There was no response: no daemon, a lost connection, or a timeout. */
export class ConnectionFailed extends EbbtideError {
  /** Whether the daemon may have received and executed the request. */
  readonly maybeSent: boolean;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details);
    this.maybeSent = details.maybeSent ?? true;
  }
}

type Family = new (message: string, details?: ErrorDetails) => EbbtideError;

const FAMILY_OF_STATUS: Record<string, Family> = {
  INVALID_ARGUMENT: InvalidRequest,
  UNAUTHENTICATED: Unauthenticated,
  PERMISSION_DENIED: Forbidden,
  NOT_FOUND: NotFound,
  UNIMPLEMENTED: NotFound,
  ALREADY_EXISTS: Conflict,
  ABORTED: Conflict,
  FAILED_PRECONDITION: Precondition,
  RESOURCE_EXHAUSTED: Exhausted,
  DEADLINE_EXCEEDED: Deadline,
  UNAVAILABLE: Unavailable,
  DATA_LOSS: Corrupted,
  INTERNAL: Internal,
};

const FAMILY_OF_CODE: Record<number, Family> = {
  401: Unauthenticated,
  403: Forbidden,
  404: NotFound,
  405: NotFound,
  409: Conflict,
  429: Exhausted,
  502: Unavailable,
  503: Unavailable,
  504: Deadline,
  507: Exhausted,
};

// Statuses after which the same request may succeed. A proxy may send them with a body of its own.
const TEMPORARY = [429, 502, 503, 504];
const PERMANENT = ["CERTIFICATE_NOT_TRUSTED", "TLS_NOT_SPOKEN"];

/** Return whether the same request may succeed later. */
export function mayPass(error: EbbtideError): boolean {
  if (error instanceof ConnectionFailed) return !PERMANENT.includes(error.reason);
  return TEMPORARY.includes(error.httpStatus ?? 0);
}

/** Return the error that a response reports. A family that is unknown here follows from the HTTP status. */
export function refusal(answer: unknown, status: number, headers: Headers): EbbtideError {
  const error = isObject(answer) && isObject(answer["error"]) ? answer["error"] : undefined;
  const byCode = FAMILY_OF_CODE[status] ?? (status >= 400 && status < 500 ? InvalidRequest : Internal);
  const details = {
    retryAfterMs: milliseconds(headers.get("retry-after")),
    httpStatus: status,
    requestId: headers.get("x-request-id") ?? "",
  };
  if (error !== undefined && typeof error["reason"] === "string") {
    const violations = Array.isArray(error["field_violations"]) ? error["field_violations"].filter(isObject) : [];
    const metadata = isObject(error["metadata"]) ? error["metadata"] : {};
    const family = FAMILY_OF_STATUS[String(error["status"])] ?? byCode;
    return new family(String(error["message"] ?? ""), {
      ...details,
      reason: error["reason"],
      violations: violations.map((v) => ({ field: String(v["field"] ?? ""), description: String(v["description"] ?? "") })),
      metadata: Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, String(value)])),
    });
  }
  if (TEMPORARY.includes(status)) {
    const message = `HTTP ${status} without an error body of Ebbtide; probably from a proxy`;
    return new byCode(message, { ...details, reason: "FROM_A_PROXY" });
  }
  return new UnexpectedAnswer(`the response (HTTP ${status}) is not that of an Ebbtide daemon`, {
    ...details,
    reason: "UNEXPECTED_ANSWER",
  });
}

// What Node, Deno and Bun report as the code of a failed connection. Browsers report none.
const NOTHING_SENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused)$/;
const NOT_TRUSTED = /CERT|SIGNATURE/;
const NOT_TLS = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER_FAILURE/;

/** Return the error for a request to `place` that failed without a response. */
export function connectionError(cause: unknown, place: string): EbbtideError {
  const code = codeOf(cause);
  const failed = (message: string, reason: string, maybeSent: boolean) =>
    new ConnectionFailed(message, { reason, maybeSent, cause });
  if (NOT_TLS.test(code)) return failed(`the server at ${place} does not use TLS; use http`, "TLS_NOT_SPOKEN", false);
  if (NOT_TRUSTED.test(code)) {
    return failed(`the certificate of ${place} is not trusted`, "CERTIFICATE_NOT_TRUSTED", false);
  }
  if (NOTHING_SENT.test(code)) return failed(`no daemon answers at ${place}`, "NOT_CONNECTED", false);
  return failed(`the connection to ${place} was lost`, "CONNECTION_LOST", true);
}

function codeOf(error: unknown): string {
  for (let one = error, depth = 0; isObject(one) && depth < 5; one = one["cause"] ?? first(one["errors"]), depth++) {
    if (typeof one["code"] === "string") return one["code"];
  }
  return "";
}

function first(list: unknown): unknown {
  return Array.isArray(list) ? list[0] : undefined;
}

// The daemon sends seconds, never a date.
function milliseconds(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) * 1000 : undefined;
}

/** Return whether a value is an object with fields. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Return an argument that has its type. Throw InvalidRequest for others, which callers without types may pass. */
export function fitting<T>(field: string, value: T, isFit: boolean, allowed: string): T {
  if (isFit) return value;
  const kind = value === null ? "null" : Array.isArray(value) ? "a list" : `a value of type ${typeof value}`;
  const description = value === undefined ? `required: ${allowed}` : `${kind} is not allowed; allowed: ${allowed}`;
  const reason = value === undefined ? "MISSING_FIELD" : "WRONG_TYPE";
  throw new InvalidRequest(`${field}: ${description}`, { reason, violations: [{ field, description }] });
}

/** Return the fields of a request, which must be an object. */
export function fields<R>(request: R): R {
  return fitting("request", request, isObject(request), "an object with fields");
}
