//! The rooms of each crate in layers, from the ground up: a room imports only from rooms of layers below its own.

/// A room: its name, and the files and folders below `src/` that belong to it. `a/mod` is the file `a.rs` or `a/mod.rs`
/// alone, `a` also everything below the folder. The longest entry that fits a file names its room.
pub(super) type Room = (&'static str, &'static [&'static str]);

/// The layers of each crate. Rooms of one layer do not import from each other.
pub(super) const LAYERS: [(&str, &[&[Room]]); 4] = [
    (
        "aptix-model",
        &[
            &[(
                "domain",
                &[
                    "batch",
                    "cursor",
                    "digest",
                    "failure",
                    "hunk_counts",
                    "id",
                    "limits",
                    "lines",
                    "path",
                    "path_readings",
                    "preview",
                    "protection",
                    "quote",
                    "reason",
                    "record",
                    "report",
                    "state",
                ],
            )],
            &[("documents", &["documents"]), ("wire", &["wire"])],
            &[("tools", &["tools"])],
            &[("the crate", &["lib"])],
        ],
    ),
    (
        "aptix-engine",
        &[
            &[("leaf types", &["digest", "findings", "hunk", "shown"])],
            &[("text", &["text"])],
            &[("file plan", &["file_plan", "diff"])],
            &[("shared", &["planning", "checking"])],
            &[("already", &["already"])],
            &[("dialect", &["dialect"])],
            &[("content", &["content"])],
            &[("validate", &["validate"])],
            &[("plan", &["plan"])],
            &[("on top", &["correct", "express", "preview", "readings"])],
            &[("the crate", &["lib"])],
        ],
    ),
    (
        "aptix-server",
        &[
            &[("base", &["ids", "mint", "config"])],
            &[("store", &["store"])],
            &[("dispatcher", &["dispatcher"])],
            &[("service", &["service"])],
            &[("program", &["serve", "accept"])],
            &[("the crate", &["lib", "main"])],
        ],
    ),
    (
        "aptix-client",
        &[
            &[("fs", &["workspace/fs"])],
            &[("roots", &["workspace/roots"])],
            &[("read", &["workspace/read"])],
            &[("commit", &["workspace/commit"])],
            &[("keep", &["workspace/keep"])],
            &[("policy", &["policy"])],
            &[("apply", &["apply"])],
            &[("undo", &["undo"])],
            &[("present", &["present"])],
            &[("connection", &["connection"])],
            &[("person", &["person"])],
            &[("agent", &["agent"])],
            &[("mcp", &["mcp"])],
            &[("cli", &["cli"])],
            &[("the crate", &["lib", "main"])],
        ],
    ),
];

/// The height of a file's layer and its room.
pub(super) fn room_of(layers: &[&[Room]], file: &str) -> Option<(usize, &'static str)> {
    let rooms = layers.iter().enumerate().flat_map(|(height, rooms)| rooms.iter().map(move |room| (height, room)));
    let fits = rooms.flat_map(|(height, (name, entries))| {
        let entries = entries.iter().filter(|entry| is_below(file, entry));
        entries.map(move |entry| (entry.len(), height, *name))
    });
    fits.max().map(|(_, height, name)| (height, name))
}

fn is_below(file: &str, entry: &str) -> bool {
    file.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
