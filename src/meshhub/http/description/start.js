"use strict";

/* Addresses are relative, because the service may run below a path. */

/** Let forms begin with the values of the example, and other fields empty instead of with the word "string". */
function prepareForms(spec) {
  for (const methods of Object.values(spec.paths)) {
    for (const operation of Object.values(methods)) {
      const form = operation.requestBody?.content?.["multipart/form-data"];
      for (const [name, field] of Object.entries(form?.schema.properties ?? {})) {
        const isFile = (field.items ?? field).format === "binary";
        if (!isFile) field.example = form.schema.required.includes(name) ? form.example[name] : "";
      }
      if (form) delete form.example;
    }
  }
  return spec;
}

async function start() {
  const response = await fetch("schema/openapi.json");
  if (!response.ok) return; // the link to the document stays
  const spec = prepareForms(await response.json());
  // a relative address of the service refers to the document, not to this page
  for (const server of spec.servers) server.url = new URL(server.url, response.url).href.replace(/\/$/, "");
  SwaggerUIBundle({
    spec,
    dom_id: "#reference",
    deepLinking: true,
    displayRequestDuration: true,
    docExpansion: "list",
    filter: true,
    validatorUrl: "none", // the default sends the document to another host
    persistAuthorization: false, // a shared computer must not keep keys
  });
}

addEventListener("DOMContentLoaded", start);
