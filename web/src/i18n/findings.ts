/**
 * Messages of findings in the languages in which the service does not write them, by code. A code without one keeps the
 * message of the service. `{amount}` and `{limit}` have their units.
 */
export const findingMessages: Record<string, Record<string, string>> = {
  de: {
    open_edges: "Die Oberfläche hat Lücken. Slicer schließen sie nach Belieben oder lassen das Teil weg.",
    nonmanifold_edges: "An Kanten treffen sich mehr als zwei Flächen. Slicer lassen dort möglicherweise Wände weg.",
    flipped_faces: "Flächen zeigen nach innen. Slicer füllen dann möglicherweise die falsche Seite.",
    stray_fragments: "Neben dem Modell liegen winzige Stücke. Sie werden zu Krümeln oder gar nicht gedruckt.",
    open_surface: "Teile sind Flächen ohne Volumen. Slicer lassen sie weg; sie brauchen eine Dicke.",
    self_intersections:
      "{amount} Flächen schneiden andere desselben Körpers. Slicer füllen dort möglicherweise die falsche Seite.",
    overlapping_bodies:
      "{amount} Körper überschneiden sich. Die meisten Slicer vereinigen sie; das gemeinsame Volumen zählt doppelt.",
    nested_bodies:
      "Körper liegen im Inneren eines anderen wie eine doppelte Wand. Slicer lassen dort möglicherweise einen Hohlraum.",
    duplicate_faces: "{amount} Flächen liegen genau auf anderen. Slicer lassen die Stelle möglicherweise leer.",
    duplicate_parts: "{amount} Teile liegen genau dort, wo schon eines liegt, und würden doppelt gedruckt.",
    thin_walls:
      "Wände sind dünner als {limit}, die dünnste {amount}. Solche Wände können brechen; Slicer lassen weg, was dünner als die Hälfte ist.",
    narrow_gaps:
      "Spalte sind schmaler als {limit}, der schmalste {amount}. Beide Seiten können verschmelzen, und Gelenke sich nicht bewegen.",
    overhangs: "{amount} hängen flach über und brauchen Stützen. Eine andere Lage braucht vielleicht weniger.",
    islands: "Schichten beginnen in der Luft. Ohne Stützen lösen sie sich.",
    long_bridges: "Brücken sind länger als {limit}, die längste {amount}. Die Bahnen hängen durch.",
    cantilevers: "Schichten ragen weiter als {limit} in die Luft, die weiteste {amount}. Die Bahnen hängen durch.",
    tips_over: "Der Schwerpunkt liegt nicht über der Standfläche. Das Modell kann kippen.",
    small_contact: "Nur {amount} berühren das Druckbett. Das Modell kann sich lösen.",
    trapped_volume: "In geschlossenen Hohlräumen bleiben {amount} Material.",
    suction_cups: "Hohlräume mit bis zu {amount} saugen an der Folie des Druckers.",
    does_not_fit: "Das Modell mit {amount} ist zu groß. Es lässt sich verkleinern oder teilen.",
    doubtful_unit:
      "Die längste Seite misst {amount}; üblich sind 2 mm bis 2 m. Vielleicht wurde die Datei in der falschen Einheit gelesen.",
    too_many_colors: "Das Modell hat mehr als die {limit} Farben, die der Drucker zugleich druckt.",
    no_volume:
      "Das Modell umschließt kein Volumen, weil es flach, offen oder nach innen gewendet ist. Gewicht und Preis lassen sich nicht schätzen.",
    too_detailed: "Kanten sind etwa {amount} lang, viel feiner als die Düse. Weniger Flächen machen die Datei kleiner.",
  },
};
