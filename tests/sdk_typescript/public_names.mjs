// SPDX-License-Identifier: Apache-2.0
// Prints the names that entries of sdk/typescript export, with the first sentences of their comments and the options of
// methods, as JSON. usage: node public_names.mjs ENTRY... (in the directory of the package)
import { createRequire } from "node:module";
import { basename, resolve } from "node:path";

const ts = createRequire(resolve("package.json"))("typescript");
const config = ts.getParsedCommandLineOfConfigFile("tsconfig.build.json", {}, { ...ts.sys, onUnRecoverableConfigFileDiagnostic: console.error });
const program = ts.createProgram(process.argv.slice(2), { ...config.options, noEmit: true });
const checker = program.getTypeChecker();

/** Text up to the first full stop that ends a sentence. */
function firstSentence(parts) {
  const text = ts.displayPartsToString(parts).split(/\n\s*\n/)[0].replace(/\s+/g, " ").trim();
  const end = text.search(/\.(?= |$)/);
  return end < 0 ? text : text.slice(0, end + 1);
}

function isInternal(symbol) {
  return symbol.getJsDocTags(checker).some((tag) => tag.name === "internal" || tag.name === "deprecated");
}

/** Names of parameters, and of the members of an options object. */
function optionsOf(signature) {
  const names = [];
  for (const parameter of signature.getParameters()) {
    const type = checker.getTypeOfSymbolAtLocation(parameter, parameter.valueDeclaration);
    const options = /^(options|limits|size)$/.test(parameter.name);
    if (!options) names.push(parameter.name);
    else for (const part of type.isUnion() ? type.types : [type]) names.push(...part.getProperties().map((p) => p.name));
  }
  return [...new Set(names)];
}

function memberOf(symbol, location) {
  const declaration = symbol.valueDeclaration ?? symbol.declarations[0];
  const type = checker.getTypeOfSymbolAtLocation(symbol, location ?? declaration);
  const isMethod = ts.isMethodDeclaration(declaration) || ts.isMethodSignature(declaration) || ts.isGetAccessor(declaration);
  const signatures = isMethod ? type.getCallSignatures() : []; // of what a getter returns, if that is a function
  const docs = signatures.length
    ? signatures.map((signature) => firstSentence(signature.getDocumentationComment(checker)))
    : [firstSentence(symbol.getDocumentationComment(checker))];
  return {
    name: symbol.name.startsWith("__@") ? symbol.name.slice(3).replace(/@.*/, "") : symbol.name,
    kind: signatures.length ? "method" : "property",
    file: basename(declaration.getSourceFile().fileName),
    docs,
    options: [...new Set(signatures.flatMap(optionsOf))],
  };
}

function isPublic(symbol) {
  const declaration = symbol.valueDeclaration ?? symbol.declarations?.[0];
  if (declaration && basename(declaration.getSourceFile().fileName) === "words.ts") return false; // of other services
  if (!declaration || symbol.name.startsWith("#") || symbol.name.startsWith("__#") || symbol.name === "prototype") return false;
  return !(ts.getCombinedModifierFlags(declaration) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) && !isInternal(symbol);
}

function isOurs(symbol) {
  return symbol.declarations?.every((d) => d.getSourceFile().fileName.startsWith(resolve("src")));
}

const found = [];
for (const entry of process.argv.slice(2)) {
  const source = program.getSourceFile(entry) ?? program.getSourceFile(resolve(entry));
  for (const exported of checker.getExportsOfModule(checker.getSymbolAtLocation(source))) {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    if (isInternal(symbol)) continue;
    const declaration = symbol.declarations[0];
    const members = [];
    if (ts.isClassDeclaration(declaration)) {
      const sides = [checker.getDeclaredTypeOfSymbol(symbol), checker.getTypeOfSymbol(symbol)];
      for (const side of sides) for (const p of side.getProperties()) if (isPublic(p) && isOurs(p)) members.push(memberOf(p));
    } else if (ts.isInterfaceDeclaration(declaration)) {
      for (const p of checker.getDeclaredTypeOfSymbol(symbol).getProperties()) if (isPublic(p) && isOurs(p)) members.push(memberOf(p));
    }
    found.push({
      entry: basename(entry, ".ts"),
      name: exported.name,
      kind: ts.SyntaxKind[declaration.kind],
      file: basename(declaration.getSourceFile().fileName),
      docs: [firstSentence(symbol.getDocumentationComment(checker))],
      bases: (declaration.heritageClauses ?? []).flatMap((h) => h.types.map((t) => t.expression.getText())),
      example: symbol.getJsDocTags(checker).some((tag) => tag.name === "example"),
      members,
    });
  }
}
console.log(JSON.stringify(found));
