//! What of the user's files leaves the machine: nothing of a file that a server could not read.

mod hostile;
mod oracle;
mod quoted;

use aptix_engine::digest::sha256;
use aptix_model::batch::Batch;
use aptix_model::documents::{self, Dialect};
use aptix_model::id::Revision;
use aptix_model::record::{BatchRecord, FileIds, Sent, Source, UnixMillis};
use aptix_model::state::BatchState;
use aptix_model::wire::v1;
use serde_json::json;

use super::{Approve, Scene, batch, create, eventually, id, write};

/// What a server sends for a document.
fn of_document(number: u32, dialect: Dialect, text: &str) -> v1::Batch {
    let document = documents::parse(text.as_bytes(), Some(dialect)).unwrap_or_else(|error| panic!("{error:?}: {text}"));
    of_batch(number, document.batch)
}

fn of_batch(number: u32, batch: Batch) -> v1::Batch {
    let mut next = u128::from(number) << 32;
    let mint = || {
        next += 1;
        uuid::Uuid::from_u128(0x018f_6d2e_7c1a_7b3e_9d55_0000_0000_0000 + next)
    };
    let record = BatchRecord {
        id: id(number).parse().unwrap(),
        workspace: "w".parse().unwrap(),
        revision: Revision(u64::from(number)),
        state: BatchState::Approved,
        ids: FileIds::mint(&batch, mint),
        batch,
        origin: aptix_model::batch::Origin { session_id: Some("s".to_owned()), ..Default::default() },
        request_id: "r".parse().unwrap(),
        created: UnixMillis(0),
        updated: UnixMillis(0),
        report: None,
        source: Source::Submitted,
        reverted_by: None,
        is_restricted: false,
        removed_content: None,
        sent: Sent::default(),
    };
    record.into()
}

/// A line patch of the first line, for a version of this text.
fn line_patch(path: &str, text: &str, first: &str, new: &str) -> String {
    let change = json!({ "operation": "replace", "startLine": 1, "endLine": 1,
        "expectedOriginalLines": [first], "newLines": [new] });
    json!({ "files": [{ "docPath": format!("ws/{}", path.to_lowercase()),
        "originalSha256": sha256(text.as_bytes()).to_string(), "changes": [change] }] })
    .to_string()
}

impl Scene {
    /// The report about a batch, once it is there; a report may come more than once.
    async fn report_of(&self, number: u32) -> v1::Report {
        let find = || {
            let script = self.server.script.lock().unwrap();
            script.reports.iter().find(|report| report.batch_id == id(number)).and_then(|report| report.report.clone())
        };
        eventually(&format!("a report about {number}"), || find().is_some()).await;
        find().unwrap()
    }

    /// Every byte and every content that the server received.
    fn heard(&self) -> Vec<u8> {
        let script = self.server.script.lock().unwrap();
        script.heard.iter().chain(script.blobs.values()).flat_map(|bytes| [bytes.as_slice(), b"\n"].concat()).collect()
    }

    fn place(&self, path: &str) -> std::path::PathBuf {
        self.place.path().join("ws").join(path)
    }

    /// Puts a file, and the directories that it is in.
    fn lay(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.place(path).parent().unwrap()).unwrap();
        self.put(path, text);
    }

    #[track_caller]
    fn assert_unheard(&self, text: &str) {
        let heard = self.heard();
        let has = |part: &[u8]| heard.windows(part.len()).any(|bytes| bytes == part);
        for line in text.lines() {
            assert!(!has(line.as_bytes()), "{line}");
        }
        let digest = sha256(text.as_bytes());
        assert!(!has(digest.to_string().as_bytes()) && !has(digest.as_bytes()), "the digest of {text:?}");
    }
}

fn failure(report: &v1::Report) -> (&str, &str) {
    report.failures.first().map_or(("", ""), |failure| (failure.reason.as_str(), failure.detail.as_str()))
}

/// Files that a server reads nothing of, and why.
const WITHHELD: [(&str, &str); 10] = [
    ("ignored.txt", "ignores it"),
    ("sub/nested.log", "ignores it"),
    ("build/deep/out.txt", "ignores it"),
    ("excluded.txt", "ignores it"),
    ("other.txt", "ignores it"),
    ("terraform.tfvars", "secrets"),
    ("notes.txt", "secrets"),
    ("twin.txt", "more than one name"),
    // Copies that Aptix has kept of what was written over a file, here of one that is ignored.
    ("ignored.txt.kept-0123456789abcdef0123456789abcdef-2", "secrets"),
    (".0123456789abcdef0123456789abcdef.aptix-displaced", "secrets"),
];

const TEXT: &str = "zebra-first\nzebra-second\nzebra-third\n";

/// The files of [`WITHHELD`], all of this text, except a private key's first line.
fn lay_out(scene: &Scene) {
    scene.lay(".gitignore", "ignored.txt\n/build/\n");
    scene.lay("sub/.gitignore", "*.log\n");
    scene.lay(".git/info/exclude", "excluded.txt\n");
    scene.lay(".ignore", "other.txt\n");
    for (path, _) in WITHHELD {
        scene.lay(path, TEXT);
    }
    scene.lay("notes.txt", &format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{TEXT}"));
    std::fs::hard_link(scene.place("twin.txt"), scene.place.path().join("outside.txt")).unwrap();
}

/// An edit that does not fit, in each mode: the lines and digests of a refusal stay here.
#[tokio::test]
async fn a_refusal_reveals_nothing_of_files_that_a_server_does_not_read() {
    for approve in [Approve::Auto, Approve::Ask] {
        let scene = Scene::set(approve);
        lay_out(&scene);
        for (number, (path, why)) in (1..).zip(WITHHELD) {
            let text = line_patch(path, "other\n", "zebra", "x");
            scene.server.send(of_document(number, Dialect::LinePatch, &text));
            let report = scene.report_of(number).await;
            assert_eq!(failure(&report), ("APPROVAL_REQUIRED", "WITHHELD"), "{path}: {report:?}");
            assert!(report.failures[0].message.contains(why), "{path}: {report:?}");
            assert!(report.failures[0].hint.contains("a person at the workstation"), "{report:?}");
        }
        scene.assert_unheard(TEXT);
        // What a server may read is reported as before.
        let text = line_patch("a.txt", "other\n", "2", "x");
        scene.server.send(of_document(99, Dialect::LinePatch, &text));
        let report = scene.report_of(99).await;
        assert_eq!(report.failures[0].current_sha256(), sha256(b"1\n").to_string(), "{report:?}");
    }
}

/// Rules that cannot be compiled are never no rules: a server that adds so many of them opens nothing.
#[tokio::test]
async fn rules_that_are_too_many_to_be_compiled_open_nothing() {
    use aptix_model::batch::{FileEdit, FilePatch, SearchChange, SearchOperation, SearchPatch, Target};
    let scene = Scene::set(Approve::Auto);
    lay_out(&scene);
    // More of them have too many tokens for one search patch.
    for number in 0..4 {
        let rules = (number * 5_000..(number + 1) * 5_000).map(|rule| format!("*a{rule}?b*\n")).collect();
        let append = SearchChange {
            operation: SearchOperation::AppendEof,
            new_text: Some(rules),
            to_clipboard: None,
            from_clipboard: None,
            reindent: None,
        };
        let edit = FileEdit::SearchPatch(SearchPatch { changes: vec![append] });
        let patch = FilePatch { target: Target::Path(".gitignore".to_owned()), key: None, label: None, edit };
        scene.server.send(of_batch(number + 1, Batch { files: vec![patch], ..Batch::default() }));
        let report = scene.report_of(number + 1).await;
        assert_eq!(failure(&report), ("", ""), "{report:?}");
    }
    let text = line_patch("ignored.txt", "other\n", "zebra", "x");
    scene.server.send(of_document(5, Dialect::LinePatch, &text));
    let report = scene.report_of(5).await;
    assert_ne!(failure(&report), ("", ""), "{report:?}");
    scene.assert_unheard(TEXT);
}

/// A copy, another name, or a clipboard would take the content to where it is read.
#[tokio::test]
async fn a_file_that_a_server_does_not_read_is_no_source() {
    let scene = Scene::set(Approve::Auto);
    lay_out(&scene);
    let mut number = 0;
    for (path, _) in WITHHELD {
        let texts = [
            (Dialect::GitPatch, format!("diff --git a/{path} b/taken.txt\nsimilarity index 100%\ncopy from {path}\ncopy to taken.txt\n")),
            (Dialect::GitPatch, format!("diff --git a/{path} b/taken.txt\nsimilarity index 100%\nrename from {path}\nrename to taken.txt\n")),
            (Dialect::GitPatch, format!("diff --git a/open.txt b/{path}\nrename from open.txt\nrename to {path}\ndiff --git a/{path} b/open.txt\nrename from {path}\nrename to open.txt\n")),
            (Dialect::CodexPatch, format!("*** Begin Patch\n*** Update File: {path}\n*** Move to: taken.txt\n@@\n-zebra-second\n+x\n*** End Patch\n")),
            (
                Dialect::SearchPatch,
                json!({ "path": path, "patches": [{ "operation": "replace", "oldText": "zebra-second", "toClipboard": "c" }] })
                    .to_string(),
            ),
        ];
        for (dialect, text) in texts {
            number += 1;
            scene.server.send(of_document(number, dialect, &text));
            let report = scene.report_of(number).await;
            assert_eq!(failure(&report), ("POLICY_DENIED", "WITHHELD"), "{text}: {report:?}");
        }
        assert!(scene.place(path).exists() && !scene.place("taken.txt").exists());
    }
    assert!(scene.server.script.lock().unwrap().blobs.is_empty());
}

/// The whole content is the author's: it is compared with nothing, and neither what was there nor whether it was the same
/// is reported.
#[tokio::test]
async fn a_whole_content_is_written_over_a_withheld_file_and_reported_as_sent() {
    for approve in [Approve::Auto, Approve::Ask] {
        let scene = Scene::set(approve);
        lay_out(&scene);
        if approve == Approve::Ask {
            scene.put_policy("ask = ['**']\ndeletions = 'allow'\n");
        }
        let reported = async |number: u32, text: &str| {
            scene.server.send(batch(number, "ignored.txt", write(text, true)));
            let mut report = scene.report_of(number).await;
            for file in &mut report.files {
                assert_eq!(file.sha256(), sha256(text.as_bytes()).to_string());
                (file.sha256, file.size_bytes) = (None, None);
            }
            format!("{report:?}")
        };
        // The very content, and another one.
        assert_eq!(reported(1, TEXT).await, reported(2, "other\n").await, "{approve:?}");
        let report = scene.report_of(2).await;
        if approve == Approve::Auto {
            let file = &report.files[0];
            assert_eq!((file.status(), file.withheld.as_str()), (v1::FileStatus::Modified, "ignored"));
            assert_eq!((file.sha256_before.clone(), report.diff.as_str()), (None, ""));
            scene.server.send(batch(3, "excluded.txt", create(TEXT)));
            scene.server.send(batch(4, "excluded.txt", create("other")));
            let [one, other] = [scene.report_of(3).await, scene.report_of(4).await];
            assert_eq!((failure(&one), one.clone()), (("FILE_EXISTS", ""), other));
        } else {
            assert_eq!(failure(&report).0, "APPROVAL_REQUIRED");
            assert_eq!(scene.file("ignored.txt"), TEXT);
        }
    }
}

/// If breaking a hard link needs approval, it does with any content: no question reveals what the file holds.
#[tokio::test]
async fn a_hard_link_is_asked_about_whatever_the_file_holds() {
    let scene = Scene::set(Approve::Auto);
    lay_out(&scene);
    scene.put_policy("deny = ['vault/']");
    scene.server.send(batch(1, "twin.txt", write("other\n", true)));
    let other = scene.report_of(1).await;
    assert_eq!(failure(&other), ("APPROVAL_REQUIRED", "HARD_LINKED"), "{other:?}");
    scene.server.send(batch(2, "twin.txt", write(TEXT, true)));
    assert_eq!(scene.report_of(2).await, other);
}

/// That a withheld file is larger than any that is edited is not reported either.
#[tokio::test]
async fn a_withheld_file_that_is_too_large_gets_the_same_answer() {
    let scene = Scene::set(Approve::Auto);
    lay_out(&scene);
    let text = line_patch("ignored.txt", "other\n", "zebra", "x");
    scene.server.send(of_document(1, Dialect::LinePatch, &text));
    let report = scene.report_of(1).await;
    scene.put_policy("limits = { file_bytes = 10 }");
    scene.server.send(of_document(2, Dialect::LinePatch, &text));
    assert_eq!((scene.report_of(2).await, failure(&report)), (report.clone(), ("APPROVAL_REQUIRED", "WITHHELD")));
}

/// A file that is made where the server does not read is the author's own.
#[tokio::test]
async fn a_new_file_is_reported_with_what_the_author_sent() {
    let scene = Scene::set(Approve::Auto);
    lay_out(&scene);
    scene.server.send(batch(1, "build/new.txt", create("mine\n")));
    let report = scene.report_of(1).await;
    let file = &report.files[0];
    assert_eq!((file.status(), file.withheld.as_str()), (v1::FileStatus::Created, "ignored"));
    assert_eq!(file.sha256(), sha256(b"mine\n").to_string());
    assert_eq!((report.diff.as_str(), file.warnings[0].code.as_str()), ("", "WITHHELD"));
}

/// Rules that are taken back would open what they close.
#[tokio::test]
async fn loosening_ignore_rules_is_asked_about() {
    let scene = Scene::set(Approve::Auto);
    lay_out(&scene);
    let cases = [
        (".gitignore", "ignored.txt\n", false),
        (".gitignore", "ignored.txt\n/build/\n!ignored.txt\n", false),
        (".gitignore", "ignored.txt\n/build/\nmore\n", true),
        ("sub/.ignore", "x\n", true),
        ("build/.gitignore", "!*\n", false),
        ("new/.gitignore", "*.o\n", true),
        (".ignore", "", false),
    ];
    for (number, (path, text, is_free)) in (1..).zip(cases) {
        scene.server.send(batch(number, path, write(text, true)));
        let report = scene.report_of(number).await;
        let expected = if is_free { ("", "") } else { ("APPROVAL_REQUIRED", "SENSITIVE") };
        assert_eq!(failure(&report), expected, "{path} {text:?}: {report:?}");
    }
    scene.put_policy("deletions = 'allow'\n");
    let delete = json!({ "files": [{ "path": "sub/.gitignore", "operation": "delete" }] }).to_string();
    scene.server.send(of_document(50, Dialect::FileBundle, &delete));
    assert_eq!(failure(&scene.report_of(50).await).0, "APPROVAL_REQUIRED");
    let moved = "diff --git a/sub/.gitignore b/sub/x\nrename from sub/.gitignore\nrename to sub/x\n";
    scene.server.send(of_document(51, Dialect::GitPatch, moved));
    assert_eq!(failure(&scene.report_of(51).await).0, "APPROVAL_REQUIRED");
}

/// What the person's policy says about reading.
#[tokio::test]
async fn policy_says_what_a_server_reads() {
    let scene = Scene::set(Approve::Auto);
    lay_out(&scene);
    scene.lay("src/x.txt", TEXT);
    let (withheld, shown) = (("APPROVAL_REQUIRED", "WITHHELD"), ("SHA_MISMATCH", ""));
    let cases = [
        ("", "src/x.txt", shown),
        ("reads = 'none'", "src/x.txt", withheld),
        ("reads = ['src/**']", "src/x.txt", shown),
        ("reads = ['docs/**']", "src/x.txt", withheld),
        ("excerpts = 'after_approval'", "src/x.txt", withheld),
        ("hard_links = 'allow'", "twin.txt", shown),
        ("secrets = { allow = ['*.tfvars', '/notes.txt'] }", "terraform.tfvars", shown),
        ("secrets = { allow = ['*.tfvars', '/notes.txt'] }", "notes.txt", shown),
        ("secrets = { allow = ['**'] }", "ignored.txt", withheld),
        ("allow = ['**']", "ignored.txt", withheld),
        ("deny = ['src/']", "src/x.txt", ("POLICY_DENIED", "DENIED")),
    ];
    for (number, (policy, path, expected)) in (1..).zip(cases) {
        scene.put_policy(policy);
        let text = line_patch(path, "other\n", "zebra", "x");
        scene.server.send(of_document(number, Dialect::LinePatch, &text));
        let report = scene.report_of(number).await;
        assert_eq!(failure(&report), expected, "{policy}: {path}: {report:?}");
    }
    // A repository's policy is only stricter, and has no word about secrets.
    scene.put_policy("reads = ['src/**']");
    let put_in_root = |text: &str| {
        use std::os::unix::fs::PermissionsExt;
        scene.lay(".aptix/policy.toml", text);
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(scene.place(".aptix/policy.toml"), mode).unwrap();
    };
    for (number, (policy, path, expected)) in (50..).zip([
        ("reads = 'all'", "a.txt", withheld),
        ("reads = 'none'", "src/x.txt", withheld),
        ("hard_links = 'allow'", "twin.txt", withheld),
        ("secrets = { allow = ['**'] }", "src/x.txt", ("POLICY_DENIED", "POLICY_FILE")),
    ]) {
        put_in_root(policy);
        let text = line_patch(path, "other\n", "zebra", "x");
        scene.server.send(of_document(number, Dialect::LinePatch, &text));
        let report = scene.report_of(number).await;
        assert_eq!(failure(&report), expected, "{policy}: {path}: {report:?}");
    }
}

/// An agent in a directory of a repository follows the rules above it, and in a worktree those of the repository.
#[tokio::test]
async fn rules_above_the_root_and_of_worktrees_count() {
    let scene = Scene::set(Approve::Auto);
    let above = scene.place.path();
    std::fs::create_dir_all(above.join(".git/worktrees/w")).unwrap();
    std::fs::write(above.join(".gitignore"), "/ws/up.txt\n*.log\n").unwrap();
    scene.put("up.txt", TEXT);
    scene.put("x.log", TEXT);
    let refused = async |number: u32, path: &str| {
        let text = line_patch(path, "other\n", "zebra", "x");
        scene.server.send(of_document(number, Dialect::LinePatch, &text));
        let report = scene.report_of(number).await;
        failure(&report) == ("APPROVAL_REQUIRED", "WITHHELD")
    };
    assert!(refused(1, "up.txt").await && refused(2, "x.log").await && !refused(3, "a.txt").await);
    // The root becomes a worktree, whose repository excludes a file.
    std::fs::write(above.join(".git/worktrees/w/commondir"), "../..\n").unwrap();
    std::fs::create_dir_all(above.join(".git/info")).unwrap();
    std::fs::write(above.join(".git/info/exclude"), "hidden.txt\n").unwrap();
    scene.put(".git", "gitdir: ../.git/worktrees/w\n");
    scene.put("hidden.txt", TEXT);
    assert!(refused(4, "hidden.txt").await && !refused(5, "up.txt").await);
    // Rules that cannot be read open nothing.
    scene.put(".gitignore", &"x\n".repeat(200_000));
    assert!(refused(6, "a.txt").await);
}

/// Rules mean what they mean to git, and those that a repository's own configuration names count.
#[tokio::test]
async fn rules_are_read_as_git_reads_them() {
    let scene = Scene::set(Approve::Auto);
    let outside = scene.place.path().join("outside.rules");
    let rules = "{braces}.txt\nopen{.txt\n\\{escaped\\}.txt\n/{{name}}/\nclass[[:digit:]].txt\nin[{x]side.txt\n";
    scene.lay(".gitignore", rules);
    scene.lay(
        ".git/config",
        &format!("[core]\n\tbare = false\n\tExcludesFile = \"{}\" ; own\n[include] path=more\n", outside.display()),
    );
    scene.lay(".git/more", "[ CORE ]\nexcludesfile = more.rules # here\n");
    std::fs::write(outside, "/own.txt\n").unwrap();
    scene.lay("more.rules", "included.*\n");
    let withheld = [
        "{braces}.txt",
        "open{.txt",
        "{escaped}.txt",
        "{{name}}/x.txt",
        "class7.txt",
        "in{side.txt",
        "own.txt",
        "included.txt",
    ];
    let open = ["braces.txt", "name/x.txt", "classd.txt", "inyside.txt", "sub/own.txt"];
    for (number, (path, is_withheld)) in
        (1..).zip(withheld.map(|path| (path, true)).into_iter().chain(open.map(|path| (path, false))))
    {
        scene.lay(path, TEXT);
        scene.server.send(of_document(number, Dialect::LinePatch, &line_patch(path, "other\n", "zebra", "x")));
        let report = scene.report_of(number).await;
        let expected = if is_withheld { ("APPROVAL_REQUIRED", "WITHHELD") } else { ("SHA_MISMATCH", "") };
        assert_eq!(failure(&report), expected, "{path}: {report:?}");
    }
    // A file of rules that a configuration names is one, whatever it is called.
    for (number, rules, is_free) in [(60, "included.*\nmore\n", true), (61, "more\n", false)] {
        scene.server.send(batch(number, "more.rules", write(rules, true)));
        let report = scene.report_of(number).await;
        let expected = if is_free { ("", "") } else { ("APPROVAL_REQUIRED", "SENSITIVE") };
        assert_eq!(failure(&report), expected, "{rules}: {report:?}");
    }
    // A configuration that cannot be read opens nothing.
    scene.lay(".git/config", &"# long\n".repeat(100_000));
    scene.server.send(of_document(50, Dialect::LinePatch, &line_patch("a.txt", "other\n", "zebra", "x")));
    assert_eq!(failure(&scene.report_of(50).await), ("APPROVAL_REQUIRED", "WITHHELD"));
}

/// However a link leads there, it is the file that counts; and the link.
#[tokio::test]
async fn a_link_opens_nothing() {
    use std::os::unix::fs::symlink;
    let scene = Scene::set(Approve::Auto);
    lay_out(&scene);
    symlink("ignored.txt", scene.place("open.txt")).unwrap();
    symlink("build", scene.place("open")).unwrap();
    symlink("a.txt", scene.place("linked.tfvars")).unwrap();
    for (number, path) in (1..).zip(["open.txt", "open/deep/out.txt", "linked.tfvars"]) {
        let text = line_patch(path, "other\n", "zebra", "x");
        scene.server.send(of_document(number, Dialect::LinePatch, &text));
        let report = scene.report_of(number).await;
        assert_eq!(failure(&report), ("APPROVAL_REQUIRED", "WITHHELD"), "{path}: {report:?}");
    }
    scene.assert_unheard(TEXT);
}
