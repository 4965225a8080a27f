// The messages of a child's stdout. Not by node:readline, which ends lines at U+2028 as well: a text may hold that.
export async function* messages(stream) {
  let rest = '';
  for await (const chunk of stream.setEncoding('utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}
