// Generate TypeScript types from an OpenAPI document: node generate.mjs DOCUMENT OUTPUT
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const BLOB = ts.factory.createTypeReferenceNode("Blob");
const [, , source, target] = process.argv;
const ast = await openapiTS(JSON.parse(readFileSync(source, "utf8")), {
  // Without this, every request field with a default would be required.
  defaultNonNullable: false,
  transform: (schema) => (schema.format === "binary" ? BLOB : undefined),
});
writeFileSync(target, astToString(ast));
