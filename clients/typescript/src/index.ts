export * from "./client.js";
export type { CallOptions, EbbtideOptions, Retries } from "./connection.js";
export {
  Conflict,
  ConnectionFailed,
  Corrupted,
  Deadline,
  EbbtideError,
  Exhausted,
  type FieldViolation,
  Forbidden,
  Internal,
  InvalidRequest,
  NotFound,
  Precondition,
  Unauthenticated,
  Unavailable,
  UnexpectedAnswer,
} from "./errors.js";
export type { components, operations, paths } from "./schema.js";
