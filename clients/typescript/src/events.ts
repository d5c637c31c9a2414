/** Server-sent events. */

/** Yield the data of each event of a stream. */
export async function* readEvents(response: Response): AsyncGenerator<string> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, BufferSource>);
  let rest = "";
  // browsers cannot iterate over streams yet
  const parts = reader.getReader();
  try {
    for (;;) {
      const { done, value } = await parts.read();
      if (done) return;
      const lines = (rest + value).split(/\r?\n/);
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("data: ")) yield line.slice("data: ".length);
    }
  } finally {
    await parts.cancel();
  }
}
