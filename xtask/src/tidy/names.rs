//! Who may name what: the system stays in one room, and generated types stop at the door.

use super::finding::{Finding, code, names_word};
use crate::repo::Text;

/// Where the crates that reach the file system directly may be named.
const SYSTEM_ROOMS: [&str; 5] = [
    "crates/aptix-client/src/workspace/",
    "crates/aptix-server/src/descriptors.rs",
    "crates/aptix-server/src/listen.rs",
    "crates/aptix-server/src/service_manager.rs",
    "crates/aptix-server/src/store/disk.rs",
];

/// Where the client's files are written.
const DISK: &str = "crates/aptix-client/src/workspace/fs/disk.rs";

/// System calls that write.
const WRITES: [&str; 12] = [
    "chmodat",
    "fchmod",
    "fchown",
    "fsetxattr",
    "ftruncate",
    "linkat",
    "mkdirat",
    "pwrite",
    "renameat",
    "renameat_with",
    "symlinkat",
    "unlinkat",
];

/// How a file is opened to be written.
const OPENS: [&str; 4] = ["OFlags::CREATE", "OFlags::RDWR", "OFlags::WRONLY", "File::options("];

/// Where protobuf types may be named.
const WIRE_ROOMS: [&str; 3] =
    ["crates/aptix-model/src/wire/", "crates/aptix-server/src/service/", "crates/aptix-client/src/connection/"];

/// Finds names that have strayed. Tests may name anything.
pub(super) fn check(text: &Text) -> Vec<Finding> {
    let source = text.path.starts_with("crates/") && text.path.contains("/src/") && text.path.ends_with(".rs");
    if !source {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in text.content.lines().enumerate() {
        let line = code(line);
        if let Some(message) = strayed(&text.path, line) {
            findings.push(Finding { path: text.path.clone(), line: index + 1, message });
        }
    }
    findings
}

fn strayed(path: &str, line: &str) -> Option<String> {
    let system = ["rustix", "cap_std"].into_iter().find(|word| names_word(line, word));
    if let (Some(word), false) = (system, SYSTEM_ROOMS.iter().any(|room| path.starts_with(room))) {
        let rooms = SYSTEM_ROOMS.join(", ");
        return Some(format!("{word} is named in {rooms} alone; ask that module for what you need"));
    }
    let call = WRITES.into_iter().find(|word| names_word(line, word));
    let write = call.or_else(|| OPENS.into_iter().find(|open| line.contains(open)));
    if let (Some(word), true) = (write, path.starts_with("crates/aptix-client/") && path != DISK) {
        return Some(format!("{word} writes, which {DISK} alone does; go through its `Disk`"));
    }
    let protobuf = line.contains("wire::v1")
        || ["prost", "prost_types"].into_iter().any(|word| names_word(line, word))
        || line.match_indices("v1::").any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    if protobuf && !WIRE_ROOMS.iter().any(|room| path.starts_with(room)) {
        return Some(format!(
            "protobuf types are named in {} alone; convert at that door and use the types of aptix-model here",
            WIRE_ROOMS.join(", ")
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn found(path: &str, content: &str) -> usize {
        check(&Text { path: path.to_owned(), content: content.to_owned() }).len()
    }

    #[test]
    fn the_system_is_named_in_its_room_alone() {
        assert_eq!(found("crates/aptix-client/src/workspace/fs/disk.rs", "use rustix::fs;"), 0);
        assert_eq!(found("crates/aptix-server/src/descriptors.rs", "use rustix::process;"), 0);
        assert_eq!(found("crates/aptix-client/src/executor.rs", "use rustix::fs;\nlet rustixes = 1; // rustix"), 1);
        assert_eq!(found("crates/aptix-client/tests/it/main.rs", "use rustix::fs;"), 0);
    }

    #[test]
    fn files_are_written_in_one_place_alone() {
        let code = "rustix::fs::unlinkat(dir, name, flags)\nOFlags::WRONLY | OFlags::CLOEXEC\nis_unlinkable";
        assert_eq!(found(DISK, code), 0);
        assert_eq!(found("crates/aptix-client/src/workspace/keep/notes.rs", code), 2);
    }

    #[test]
    fn generated_types_stop_at_the_door() {
        let code =
            "use aptix_model::wire::v1;\nfn f(x: v1::Edit) {}\nlet y: prost_types::Timestamp;\nv1.len() + rev1::x()";
        assert_eq!(found("crates/aptix-server/src/service/batch.rs", code), 0);
        assert_eq!(found("crates/aptix-server/src/dispatcher/mod.rs", code), 3);
    }
}
