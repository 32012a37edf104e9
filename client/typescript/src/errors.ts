/** A field of a request that is wrong. */
export interface FieldProblem {
  field: string;
  code: string;
  detail: string;
}

/** The server rejected a request. */
export class PosthornError extends Error {
  override readonly name = 'PosthornError';
  constructor(
    /** HTTP status code. */
    readonly status: number,
    /** Stable code, such as `not_found`. Empty when something between you and the server responded. */
    readonly code: string,
    /** What is wrong and how to fix it. */
    readonly detail: string,
    /** The fields that are wrong. */
    readonly fields: FieldProblem[],
    /** Quote it when you ask for help. */
    readonly requestId: string,
    /** Seconds after which the same request can succeed; 0 when the server did not say. */
    readonly retryAfter: number,
  ) {
    super(`${code || `HTTP ${status}`}: ${detail}${requestId ? ` (${requestId})` : ''}`);
  }
}

/** The server did not respond: the connection failed, or the request timed out. `cause` has the reason. */
export class PosthornConnectionError extends Error {
  override readonly name = 'PosthornConnectionError';
}

/** Some events of `emitAll` were rejected. All others were stored. */
export class PosthornBatchError<Result> extends Error {
  override readonly name = 'PosthornBatchError';
  constructor(
    /** One result per event, in the order of the events. */
    readonly results: Result[],
    /** The indexes of the rejected events. */
    readonly rejected: number[],
    first: string,
  ) {
    super(`${rejected.length} of ${results.length} events were rejected; the first has the index ${rejected[0]}: ${first}`);
  }
}

const longestExcerpt = 300;

/** Reads a response that is not a success. The body can be anything: a proxy may have written it. */
export async function errorOf(response: Response): Promise<PosthornError> {
  const text = await response.text().catch(() => '');
  const requestId = response.headers.get('X-Request-Id') ?? '';
  const after = secondsOf(response.headers.get('Retry-After'));
  try {
    const problem = JSON.parse(text);
    if (typeof problem?.code === 'string' && problem.code !== '') {
      return new PosthornError(response.status, problem.code, problem.detail ?? '', problem.errors ?? [], problem.request_id ?? requestId, after);
    }
  } catch {
    // Not a problem document of the API.
  }
  return new PosthornError(response.status, '', text.replace(/\s+/g, ' ').slice(0, longestExcerpt), [], requestId, after);
}

function secondsOf(value: string | null): number {
  return value !== null && /^\d{1,9}$/.test(value) ? Number(value) : 0;
}
