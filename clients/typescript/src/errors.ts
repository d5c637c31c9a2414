/** Errors that a service reports. */

const TEMPORARY = new Set(["server_busy", "shutting_down", "too_many_jobs", "rate_limit_exceeded"]);

/** Error of a service; its codes are listed in the documentation. */
export class MeshhubError extends Error {
  override readonly name = "MeshhubError";

  constructor(
    message: string,
    /** Stable code for programs, such as "unreadable_file". */
    readonly error_code: string,
    /** Status of the response; 0 for the error of a job. */
    readonly status: number,
    /** Id of the request, for the operator. */
    readonly request_id: string | null = null,
    /** Seconds until the same request may succeed. */
    readonly retryAfterS: number | null = null,
    /** The error of each file of a batch. */
    readonly details: { file: string; error: string; error_code: string }[] = [],
    /** Numbers and names in the message, such as the line that is damaged. */
    readonly values: Record<string, string | number> = {},
  ) {
    super(message);
  }

  /** Whether the same request may succeed a moment later. */
  get isTemporary(): boolean {
    return TEMPORARY.has(this.error_code);
  }
}

/** Return the error of a response; of a proxy, if it is not from a service. */
export async function readError(response: Response): Promise<MeshhubError> {
  const seconds = Number(response.headers.get("Retry-After") ?? "x");
  const retryAfterS = Number.isFinite(seconds) ? seconds : null;
  try {
    const body = await response.json();
    if (typeof body.error === "string" && typeof body.error_code === "string")
      return new MeshhubError(
        body.error, body.error_code, response.status, body.request_id ?? null, retryAfterS, body.details ?? [],
        body.values ?? {},
      );
  } catch {
    // no JSON
  }
  const code = response.status === 503 || response.status === 502 ? "server_busy" : "internal_error";
  const message = `${new URL(response.url).host} answered with status ${response.status}, not as meshhub`;
  return new MeshhubError(`${message}; check the address`, code, response.status, null, retryAfterS);
}
