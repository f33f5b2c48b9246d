//! Files that are guarded: every kind of edit is decided alike, for each caller.

use std::path::Path;

use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{Mode, apply};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_model::documents;
use aptix_model::reason::{Detail, Reason};

use crate::faults::{self, Fault};
use crate::tree;

/// A file that is guarded, and the reason for which an edit of it is refused: at a shell, and to a server or a model.
struct Guarded {
    path: &'static str,
    content: &'static str,
    shell: (Reason, Detail),
    others: (Reason, Detail),
}

const ASKED: (Reason, Detail) = (Reason::ApprovalRequired, Detail::Secret);
const CLOSED: (Reason, Detail) = (Reason::PolicyDenied, Detail::Secret);
const SENSITIVE: (Reason, Detail) = (Reason::ApprovalRequired, Detail::Sensitive);
const PROTECTED: (Reason, Detail) = (Reason::PolicyDenied, Detail::Protected);

const FILES: [Guarded; 8] = [
    Guarded { path: ".env", content: "old\n", shell: ASKED, others: CLOSED },
    Guarded { path: "sub/ID_RSA", content: "old\n", shell: ASKED, others: CLOSED },
    Guarded { path: "prod.tfvars", content: "old\n", shell: ASKED, others: ASKED },
    Guarded { path: ".ssh/config", content: "old\n", shell: ASKED, others: ASKED },
    Guarded { path: "deploy", content: "-----BEGIN PRIVATE KEY-----\nold\n", shell: ASKED, others: ASKED },
    Guarded { path: "sub/.devcontainer.json", content: "old\n", shell: SENSITIVE, others: SENSITIVE },
    Guarded { path: ".cargo/config.toml", content: "old\n", shell: SENSITIVE, others: SENSITIVE },
    Guarded { path: "_darcs/prefs/defaults", content: "old\n", shell: PROTECTED, others: PROTECTED },
];

/// A document for each kind of edit, and whether the file is there before.
fn edits(file: &Guarded) -> Vec<(&'static str, String, bool)> {
    let path = file.path;
    let lines: Vec<_> = file.content.lines().collect();
    let removed: String = lines.iter().map(|line| format!("-{line}\n")).collect();
    let count = lines.len();
    let json = |value: serde_json::Value| value.to_string();
    vec![
        ("create", json(serde_json::json!({ "path": path, "content": "x\n" })), false),
        ("overwrite", json(serde_json::json!({ "path": path, "content": "x\n", "overwrite": true })), true),
        (
            "edit",
            json(serde_json::json!({ "command": "str_replace", "path": path, "old_str": "old", "new_str": "x" })),
            true,
        ),
        (
            "delete",
            format!(
                "diff --git a/{path} b/{path}\ndeleted file mode 100644\n--- a/{path}\n+++ /dev/null\n@@ -1,{count} +0,0 @@\n{removed}"
            ),
            true,
        ),
        ("rename from", format!("diff --git a/{path} b/free\nrename from {path}\nrename to free\n"), true),
        ("rename to", format!("diff --git a/other b/{path}\nrename from other\nrename to {path}\n"), false),
        ("copy from", format!("diff --git a/{path} b/free\ncopy from {path}\ncopy to free\n"), true),
        ("copy to", format!("diff --git a/other b/{path}\ncopy from other\ncopy to {path}\n"), false),
    ]
}

/// Why a document is refused where no user can be asked.
fn refused(place: &Path, caller: Caller, document: &str) -> (Reason, Option<Detail>) {
    let (workspace, _) = faults::open(place, Fault::None).unwrap();
    let batch = documents::parse(document.as_bytes(), None).unwrap().batch;
    let mut policy = Policy::unstated(caller);
    // What is asked about every deletion is not what this is about.
    policy.deletions = aptix_client::policy::choices::Deletions::Allow;
    let options = faults::options(&policy, Mode::Commit);
    let outcome = apply(&workspace, &batch, options, &mut |proposal| Decision::Refuse(proposal.unanswered()));
    let refusal = outcome.expect_err("no user agreed");
    refusal.failures.first().map(|failure| (failure.reason, failure.detail)).expect("a user had to agree")
}

#[test]
fn every_kind_of_edit_of_a_guarded_file_is_decided_alike() {
    for file in &FILES {
        for (kind, document, is_there) in edits(file) {
            // A key is known by its first line, so there has to be one.
            if file.path == "deploy" && !is_there {
                continue;
            }
            for caller in [Caller::Shell, Caller::Server, Caller::Model] {
                let place = tempfile::tempdir().unwrap();
                let ws = place.path().join("ws");
                std::fs::create_dir_all(ws.join(file.path).parent().unwrap()).unwrap();
                std::fs::write(ws.join("other"), "other\n").unwrap();
                if is_there {
                    std::fs::write(ws.join(file.path), file.content).unwrap();
                }
                let before = tree::read(&ws);
                let what = format!("{kind} of {} by {caller:?}", file.path);
                let found = refused(place.path(), caller, &document);
                tree::assert_same(&tree::read(&ws), &before, &what);
                let (reason, detail) = if caller == Caller::Shell { file.shell } else { file.others };
                // A secret that may be asked about is withheld from others as well: its content is sent nowhere.
                let is_withheld = caller != Caller::Shell && file.others == ASKED && is_there && kind != "overwrite";
                if is_withheld {
                    assert_eq!(found.1, Some(Detail::Withheld), "{what}: {found:?}");
                } else {
                    assert_eq!(found, (reason, Some(detail)), "{what}");
                }
            }
        }
    }
}
