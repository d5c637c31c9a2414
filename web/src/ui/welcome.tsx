/** The empty page: what it does, and models to try it with. */

import assembly from "../examples/assembly.3mf?url";
import assemblyPicture from "../examples/assembly.webp";
import penguin from "../examples/penguin.glb?url";
import penguinPicture from "../examples/penguin.webp";
import rabbit from "../examples/rabbit.ply?url";
import rabbitPicture from "../examples/rabbit.webp";
import picture from "../examples/welcome.webp";
import { isApp } from "../app-token";
import { t, type Key } from "../i18n";
import { describeRetention } from "../retention";
import { banner, toNotice } from "../state/failures";
import { addFiles } from "../state/reading";
import { hasJobs, plan, supported } from "../state/service";
import { FilePicker } from "./files";
import { Icon, type IconName } from "./icons";

const EXAMPLES: [label: Key, name: string, address: string, picture: string][] = [
  ["example_scan", "rabbit.ply", rabbit, rabbitPicture],
  ["example_figure", "penguin.glb", penguin, penguinPicture],
  ["example_assembly", "assembly.3mf", assembly, assemblyPicture],
];
const TILES: [icon: IconName, name: "repair" | "convert" | "colors" | "check" | "step"][] = [
  ["wrench", "repair"],
  ["swap", "convert"],
  ["palette", "colors"],
  ["check", "check"],
  ["cube", "step"],
];

export function Welcome() {
  const formats = supported.value?.input_formats ?? [];
  return (
    <main class="welcome">
      <div class="drop-zone">
        <img class="welcome-picture" src={picture} width="420" height="274" alt={t("welcomePicture")} />
        <div class="welcome-start">
          <h1>{t("tagline")}</h1>
          <p>{t("intro")}</p>
          <div class="row center">
            <FilePicker class="button primary large" icon="upload" label={t("chooseFiles")} />
            <FilePicker class="button large" label={t("chooseFolder")} isFolder />
          </div>
          <p class="hint">{t("dropAnywhere")}</p>
          {!isApp && (
            <p class="hint retention">
              <Icon name="lock" /> {describeRetention(location.hostname, plan.value, hasJobs.value)}
            </p>
          )}
        </div>
      </div>
      <section class="examples" aria-labelledby="examples-title">
        <h2 id="examples-title">{t("examples")}</h2>
        <ul>
          {EXAMPLES.map(([label, name, address, image]) => (
            <li key={name}>
              <button class="example" onClick={() => void loadExample(name, address)}>
                <img src={image} width="96" height="72" alt="" />
                <span>{t(label)}</span>
              </button>
            </li>
          ))}
        </ul>
      </section>
      <ul class="tiles" aria-label={t("whatItDoes")}>
        {TILES.map(([icon, name]) => (
          <li key={name}>
            <Icon name={icon} />
            <strong>{t(`tile_${name}`)}</strong>
            <small>{t(`tile_${name}_help`)}</small>
          </li>
        ))}
      </ul>
      {formats.length > 0 && (
        <ul class="formats" aria-label={t("reads", { formats: "" })}>
          {formats.map((id) => (
            <li key={id}>{id.toUpperCase()}</li>
          ))}
          <li>ZIP</li>
        </ul>
      )}
    </main>
  );
}

async function loadExample(name: string, address: string): Promise<void> {
  try {
    const response = await fetch(address);
    await addFiles([{ path: name, file: new File([await response.blob()], name) }]);
  } catch {
    banner.value = toNotice(t("offline"));
  }
}
