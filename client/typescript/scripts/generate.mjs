// Generates src/schema.gen.ts (types of every operation, by openapi-typescript) and src/operations.gen.ts (the method, path
// and parameters of every operation, which the client needs at run time) from the OpenAPI document.
import {readFile, writeFile} from 'node:fs/promises';
import {pathToFileURL} from 'node:url';
import {resolve} from 'node:path';
import openapiTS, {astToString} from 'openapi-typescript';
import {parse} from 'yaml';

const [, , input, output] = process.argv;
const types = await openapiTS(pathToFileURL(resolve(input)), {alphabetize: false, emptyObjectsUnknown: true, defaultNonNullable: false});
await writeFile(`${output}/schema.gen.ts`, astToString(types));

const document = parse(await readFile(input, 'utf8'));
const resolveRef = (node) => {
  let found = node;
  while (found?.$ref) found = found.$ref.slice(2).split('/').reduce((at, key) => at[key], document);
  return found;
};
const rows = [];
for (const [path, item] of Object.entries(document.paths)) {
  for (const method of ['get', 'put', 'post', 'patch', 'delete']) {
    const operation = item[method];
    if (!operation) continue;
    const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolveRef);
    const names = (place) => parameters.filter((p) => p.in === place).map((p) => p.name);
    const row = {method: method.toUpperCase(), path, query: names('query'), header: names('header')};
    const accepted = Object.entries(operation.responses).filter(([status]) => status.startsWith('2')).map(([, r]) => resolveRef(r));
    const json = accepted.some((r) => r.content?.['application/json']);
    const other = accepted.some((r) => r.content && !r.content['application/json']);
    row.answer = json ? 'json' : other ? 'stream' : 'none';
    rows.push(`  ${operation.operationId}: ${JSON.stringify(row)},`);
  }
}
await writeFile(`${output}/operations.gen.ts`, [
  '// Generated from the OpenAPI document. Do not edit.',
  'export interface Row {',
  '  method: string; path: string; query: string[]; header: string[]; answer: "json" | "stream" | "none";',
  '}',
  'export const rows = {', ...rows, '} as const satisfies Record<string, { readonly [K in keyof Row]: Row[K] extends string[] ? readonly string[] : Row[K] }>;', '',
].join('\n'));
