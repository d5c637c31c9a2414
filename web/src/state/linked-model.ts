/** Open the model that the address of the page names. The browser loads it, and the service never does. */

import { signal } from "@preact/signals";

import { formatBytes, t } from "../i18n";
import { readLimited, readModelAddress, type ModelAddress } from "../model-address";
import { banner, PageError, toFailure } from "./failures";
import { addFiles } from "./reading";
import { plan } from "./service";

/** The model that is being loaded. */
export const linked = signal<{ name: string; host: string } | null>(null);

export async function openLinkedModel(): Promise<void> {
  const address = readModelAddress(location.search);
  if (address === null) return;
  try {
    if (address === "invalid") throw new PageError(t("linkInvalid"), "link_invalid");
    linked.value = { name: address.name, host: address.url.host };
    const file = await load(address);
    linked.value = null;
    await addFiles([{ path: address.name, file }]);
  } catch (error) {
    banner.value = toFailure(error);
  } finally {
    linked.value = null;
  }
}

async function load({ url, name }: ModelAddress): Promise<File> {
  const { host } = url;
  // A script learns only from this event that the policy of the page, which the operator sets, forbids a host.
  const forbidden: string[] = [];
  const forbid = ({ effectiveDirective }: SecurityPolicyViolationEvent): void => {
    if (effectiveDirective === "connect-src") forbidden.push(effectiveDirective);
  };
  document.addEventListener("securitypolicyviolation", forbid);
  try {
    const response = await fetch(url, { credentials: "omit", referrerPolicy: "no-referrer" });
    if (!response.ok) throw new PageError(t("linkMissing", { name, host, status: response.status }), "link_missing");
    const limit = plan.value?.limits.max_file_bytes ?? Infinity;
    const blob = await readLimited(response, limit);
    if (blob) return new File([blob], name);
    const message = t("linkTooLarge", { name, limit: formatBytes(limit), plan: plan.value?.label ?? "" });
    throw new PageError(message, "file_too_large");
  } catch (error) {
    if (error instanceof PageError) throw error;
    // The event follows the failure of the request.
    await new Promise((resolve) => setTimeout(resolve));
    throw new PageError(t(forbidden.length > 0 ? "linkForbidden" : "linkBlocked", { host }), "link_blocked");
  } finally {
    document.removeEventListener("securitypolicyviolation", forbid);
  }
}
