// Shows the description of the REST interface: operations by tag, a search, and requests that only read.
// Everything of the description is put in as text.
"use strict";

const DESCRIPTION = "/api/v1/openapi.json";
const MOST_SHOWN = 200000; // characters of an answer

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function nameIn(reference) {
  return reference.slice(reference.lastIndexOf("/") + 1);
}

function resolve(root, part) {
  return part.$ref ? part.$ref.slice(2).split("/").reduce((inner, key) => inner[key], root) : part;
}

// A schema in the words of TypeScript; named ones by their names below the first level.
function typeOf(root, schema, depth) {
  if (schema.$ref) {
    return depth > 0 ? nameIn(schema.$ref) : typeOf(root, resolve(root, schema), depth);
  }
  if (schema.enum) {
    return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  }
  const choices = schema.anyOf || schema.oneOf;
  if (choices) {
    return choices.map((each) => typeOf(root, each, depth + 1)).join(" | ");
  }
  if (schema.type === "array") {
    const items = typeOf(root, schema.items, depth + 1);
    return items.includes(" ") ? `(${items})[]` : `${items}[]`;
  }
  if (schema.properties) {
    const required = new Set(schema.required || []);
    const indent = "  ".repeat(depth + 1);
    const fields = Object.entries(schema.properties).map(
      ([name, field]) => `${indent}${name}${required.has(name) ? "" : "?"}: ${typeOf(root, field, depth + 1)}`,
    );
    return fields.length ? `{\n${fields.join("\n")}\n${"  ".repeat(depth)}}` : "{}";
  }
  if (schema.additionalProperties) {
    return `{ [name]: ${typeOf(root, schema.additionalProperties, depth + 1)} }`;
  }
  const types = [].concat(schema.type || "any").join(" | ");
  return schema.format ? `${types} (${schema.format})` : types;
}

function contentOf(root, heading, content) {
  return Object.entries(content || {}).flatMap(([type, media]) => [
    make("h3", { textContent: `${heading} · ${type}` }),
    make("pre", { textContent: typeOf(root, media.schema, 0) }),
  ]);
}

function parameterRow(root, parameter, reads) {
  const label = `${parameter.name}${parameter.required ? "" : "?"}`;
  const type = make("span", { className: "about", textContent: typeOf(root, parameter.schema, 1) });
  if (!reads) {
    return { parameter, row: make("tr", {}, make("td", { textContent: label }), make("td", {}, type)) };
  }
  const field = make("input", { ariaLabel: parameter.name, autocomplete: "off" });
  field.placeholder = type.textContent;
  return { parameter, field, row: make("tr", {}, make("td", { textContent: label }), make("td", {}, field)) };
}

function addressOf(path, rows) {
  let address = path;
  const query = new URLSearchParams();
  for (const { parameter, field } of rows) {
    if (parameter.in === "path") {
      address = address.replace(`{${parameter.name}}`, encodeURIComponent(field.value));
    } else if (field.value && parameter.schema.type === "array") {
      field.value.split(",").forEach((each) => query.append(parameter.name, each.trim()));
    } else if (field.value) {
      query.append(parameter.name, field.value);
    }
  }
  return query.size ? `${address}?${query}` : address;
}

async function send(path, rows, answer) {
  const address = addressOf(path, rows);
  answer.hidden = false;
  answer.textContent = `GET ${address} …`;
  try {
    const response = await fetch(address, { redirect: "manual" });
    const text = await response.text();
    let shown = text;
    if ((response.headers.get("content-type") || "").startsWith("application/json")) {
      try {
        shown = JSON.stringify(JSON.parse(text), null, 2);
      } catch {
        shown = text; // lines of a stream
      }
    }
    const rest = shown.length > MOST_SHOWN ? `\n… ${shown.length - MOST_SHOWN} more characters` : "";
    answer.textContent = `GET ${address}\n${response.status} ${response.statusText}\n\n${shown.slice(0, MOST_SHOWN)}${rest}`;
  } catch (error) {
    answer.textContent = `GET ${address}\nNo answer: ${error.message}`;
  }
}

function isStream(operation) {
  return "application/x-ndjson" in ((operation.responses["200"] || {}).content || {});
}

function inside(root, path, method, operation) {
  // A stream may never end, and a download is for the disk.
  const reads = method === "get" && path.startsWith("/api/") && !isStream(operation);
  const rows = operation.parameters.map((each) => parameterRow(root, each, reads));
  const parts = [make("p", {}, make("code", { textContent: operation.operationId }))];
  if (operation.description) {
    parts.push(make("p", { textContent: operation.description }));
  }
  if (rows.length) {
    parts.push(make("h3", { textContent: "Parameters" }), make("table", {}, ...rows.map(({ row }) => row)));
  }
  if (reads) {
    const answer = make("pre", { hidden: true });
    const button = make("button", { type: "button", textContent: "Send GET" });
    button.addEventListener("click", () => send(path, rows, answer));
    parts.push(make("p", {}, button), answer);
  }
  parts.push(...contentOf(root, "Body", (operation.requestBody || {}).content));
  const statuses = Object.entries(operation.responses);
  for (const [status, response] of statuses.filter(([, each]) => !each.$ref)) {
    parts.push(...contentOf(root, status, response.content));
  }
  const refusals = statuses.filter(([status, each]) => each.$ref && status !== "default").map(([status]) => status);
  parts.push(make("p", { className: "about", textContent: `Refusals: ${refusals.join(", ")}` }));
  return make("div", { className: "inside" }, ...parts);
}

function operationOf(root, path, method, operation) {
  const element = make(
    "details",
    { id: operation.operationId, className: operation.deprecated ? "deprecated" : "" },
    make(
      "summary",
      {},
      make("span", { className: `method ${method}`, textContent: method.toUpperCase() }),
      make("span", { className: "path", textContent: path }),
      make("span", { textContent: operation.summary || "" }),
    ),
  );
  const texts = [method, path, operation.operationId, operation.summary, ...operation.tags];
  element.searched = texts.join(" ").toLowerCase();
  element.addEventListener("toggle", () => {
    if (element.open && !element.querySelector(".inside")) {
      element.append(inside(root, path, method, operation));
    }
  });
  return element;
}

function show(root) {
  const byTag = new Map(root.tags.map((tag) => [tag.name, { tag, operations: [] }]));
  for (const [path, methods] of Object.entries(root.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      byTag.get(operation.tags[0]).operations.push(operationOf(root, path, method, operation));
    }
  }
  const sections = [...byTag.values()].map(({ tag, operations }) => {
    const count = make("span", { textContent: operations.length });
    const anchor = `tag-${tag.name.replaceAll(" ", "-")}`;
    const link = make("a", { href: `#${anchor}` }, tag.name, count);
    const about = make("p", { className: "about", textContent: tag.description || "" });
    const section = make("section", {}, make("h2", { id: anchor, textContent: tag.name }), about, ...operations);
    return { section, link, count, operations };
  });
  const nothing = make("p", { className: "note", textContent: "No operation has all of these words.", hidden: true });
  document.querySelector("nav").replaceChildren(...sections.map(({ link }) => link));
  document.querySelector("main").replaceChildren(nothing, ...sections.map(({ section }) => section));
  const search = document.querySelector("#search");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/);
    let found = 0;
    for (const { section, link, count, operations } of sections) {
      operations.forEach((each) => (each.hidden = !words.every((word) => each.searched.includes(word))));
      const left = operations.filter((each) => !each.hidden).length;
      section.hidden = link.hidden = left === 0;
      count.textContent = left;
      found += left;
    }
    nothing.hidden = found > 0;
  });
  window.addEventListener("hashchange", openNamed);
  openNamed();
}

function nameInAddress() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return ""; // it is not encoded as addresses are, so it names nothing
  }
}

function openNamed() {
  const named = document.getElementById(nameInAddress());
  if (named) {
    named.open = true;
    named.scrollIntoView();
  }
}

async function start() {
  try {
    const response = await fetch(DESCRIPTION);
    if (!response.ok) {
      throw new Error(`${response.status} ${response.statusText}`);
    }
    show(await response.json());
  } catch (error) {
    const text = `The description could not be loaded: ${error.message}. Reload the page to try again.`;
    document.querySelector("main").replaceChildren(make("p", { className: "note", textContent: text }));
  }
}

start();
