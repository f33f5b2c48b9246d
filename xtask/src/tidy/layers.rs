//! The rooms of each crate in layers, lowest first. A file imports from its own room and from rooms of lower layers.

/// Each crate with its layers: one layer a line, ` | ` between rooms that do not import from each other.
///
/// A room is `name: entries`, or one entry that is also its name. An entry is a file or folder below `src/`, without
/// `.rs`; `a/mod` is `a/mod.rs`, or `a.rs` beside a folder `a/`, alone. The longest entry that fits a file decides.
pub(super) const LAYERS: [(&str, &str); 6] = [
    (
        "aptix-model",
        "
        domain: actor batch batch_event create_file_code cursor digest failure hunk_counts id id_block limits lines live path \
        path_readings path_style plan presence preview protection question quote \
        reason record report session state token trace_parent words
        documents | events | wire
        tools
        lib",
    ),
    (
        "aptix-engine",
        "
        values: findings git_id hunk shown target
        readings | text
        digest
        file plan: diff file_plan generated places preview
        checking | planning
        content | nearest
        already
        dialect/anchor_edit | dialect/context_patch | dialect/git_patch | dialect/line_patch | dialect/quote | \
         dialect/replacements | dialect/search_patch | dialect/whole_file
        dialect: dialect/mod
        valid
        plan | validate
        correct | express
        lib",
    ),
    (
        "aptix-telemetry",
        "
        kind
        export
        span
        lib",
    ),
    (
        "aptix-server",
        "
        base: mint secret steady_clock metrics quota tls listen log_limit caller descriptors room ticket turns waited cpu_pool web_origins
        store
        fleet
        retention | shared_quotas
        dispatcher
        identity | blob_sweep
        options
        service
        program: config accept serve administer backup check_config migrate opening reload service_manager
        lib: lib main",
    ),
    (
        "aptix-client",
        "
        workspace/fs
        workspace/roots
        workspace/read
        workspace/commit
        workspace/keep
        workspace
        policy
        unsaved
        apply
        live | undo
        present
        tools
        connection
        person
        review
        agent
        mcp
        cli
        lib: lib main",
    ),
    (
        "xtask",
        "
        repository: repo register
        steps
        python
        breaking | bucket | node | toolchains
        codegen | demo | dist | harness | tidy
        test
        ci
        main",
    ),
];

/// The height of a file's layer, from 0, and the name of its room.
pub(super) fn room_of<'a>(layers: &'a str, file: &str) -> Option<(usize, &'a str)> {
    let lines = layers.lines().filter(|line| !line.trim().is_empty());
    let rooms = lines.enumerate().flat_map(|(height, line)| line.split(" | ").map(move |room| (height, room.trim())));
    let fits = rooms.flat_map(|(height, room)| {
        let (name, entries) = room.split_once(": ").unwrap_or((room, room));
        let entries = entries.split_whitespace().filter(|entry| is_below(file, entry));
        entries.map(move |entry| (entry.len(), height, name))
    });
    fits.max().map(|(_, height, name)| (height, name))
}

fn is_below(file: &str, entry: &str) -> bool {
    file.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
