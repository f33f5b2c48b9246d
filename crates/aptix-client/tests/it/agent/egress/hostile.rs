//! A server that tries every kind of edit on files that it may not read; everything that it receives is held against what
//! those files hold.

use std::collections::BTreeSet;
use std::path::PathBuf;

use aptix_engine::digest::sha256;
use aptix_model::batch::{Batch, FileEdit, GitKind, Target};
use aptix_model::documents::{self, Dialect};
use aptix_model::tools::catalogue::find;
use aptix_model::tools::roots::Roots;
use aptix_model::tools::tool::Call;
use regex::bytes::Regex;
use serde_json::json;

use super::{Approve, Scene, of_batch};

/// Batches that are sent; a long run has `APTIX_HOSTILE_BATCHES` of them.
const BATCHES: u32 = 150;

/// Why a server may not read a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Ignored,
    Secret,
    Denied,
    Outside,
    HardLinked,
}

const KINDS: [Kind; 5] = [Kind::Ignored, Kind::Secret, Kind::Denied, Kind::Outside, Kind::HardLinked];

/// A file of which nothing may be heard.
struct Marked {
    kind: Kind,
    /// Where it is, relative to the directory that the root is in.
    at: String,
    /// What the server calls it.
    path: String,
    text: String,
    markers: Vec<String>,
}

/// Ten files of each kind, of texts that occur nowhere else, each of another size; between unique lines there are some that
/// anybody can guess.
fn marked() -> Vec<Marked> {
    let named = |kind, number: usize| match (kind, number) {
        (Kind::Ignored, 0..4) => format!("ignored-{number}.txt"),
        (Kind::Ignored, 4..6) => format!("build/deep/{number}.txt"),
        (Kind::Ignored, 6..8) => format!("sub/{number}.log"),
        (Kind::Ignored, _) => format!("excluded-{number}.txt"),
        (Kind::Secret, 0) => ".env".to_owned(),
        (Kind::Secret, 1) => "sub/.npmrc".to_owned(),
        (Kind::Secret, 2) => ".aws/credentials".to_owned(),
        (Kind::Secret, 3..6) => format!("prod-{number}.tfvars"),
        (Kind::Secret, 6) => "server.key".to_owned(),
        (Kind::Secret, _) => format!("notes-{number}.txt"),
        (Kind::Denied, _) => format!("vault/{number}.txt"),
        (Kind::Outside, 0..4) => format!("out/{number}.txt"),
        (Kind::Outside, 4..7) => format!("link-{number}.txt"),
        (Kind::Outside, _) => format!("../outside/{number}.txt"),
        (Kind::HardLinked, _) => format!("twins/{number}.txt"),
    };
    let mut files = Vec::new();
    for (rank, kind) in KINDS.into_iter().enumerate() {
        for number in 0..10 {
            let path = named(kind, number);
            let markers: Vec<_> = (0..4)
                .map(|line| sha256(format!("{kind:?} {number} {line}").as_bytes()).to_string()[..24].to_owned())
                .collect();
            let head = if path.starts_with("notes") { "-----BEGIN PRIVATE KEY-----\n" } else { "" };
            let [one, two, three, four] = [0, 1, 2, 3].map(|line| markers[line].as_str());
            let mut text = format!("{head}{one}\nfn main() {{\n    {two}\n}}\n{three}\ncommon\n{four}\n");
            text.push_str(&"#".repeat(20_011 + 97 * (rank * 10 + number) - text.len()));
            let at = if kind == Kind::Outside { format!("outside/{number}.txt") } else { format!("ws/{path}") };
            files.push(Marked { kind, at, path, text, markers });
        }
    }
    files
}

impl Marked {
    fn place(&self, scene: &Scene) -> PathBuf {
        scene.place.path().join(&self.at)
    }

    /// Puts the file in its place if it is not, or not as it should be.
    fn lay(&self, scene: &Scene) {
        let place = self.place(scene);
        if std::fs::read(&place).is_ok_and(|bytes| bytes == self.text.as_bytes()) {
            return;
        }
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, &self.text).unwrap();
        if self.kind == Kind::HardLinked {
            let twin = scene.place.path().join(format!("twin-of-{}", self.path.replace('/', "-")));
            let _ = std::fs::remove_file(&twin);
            std::fs::hard_link(&place, twin).unwrap();
        }
    }

    /// Texts whose presence proves that content of the file leaked.
    fn signs(&self) -> Vec<String> {
        let digest = sha256(self.text.as_bytes());
        let raw: String = digest.as_bytes().iter().map(|byte| format!("\\x{byte:02x}")).collect();
        let mut signs = self.markers.clone();
        signs.extend([digest.to_string(), raw, format!(r"\b{}\b", self.text.len())]);
        signs
    }
}

/// The files of which the server heard something, also as a size in a field of its own, which is no text.
fn heard_of<'f>(scene: &Scene, files: &'f [Marked]) -> Vec<&'f Marked> {
    let heard = scene.heard();
    let sizes: BTreeSet<u64> = {
        let script = scene.server.script.lock().unwrap();
        let files = script.reports.iter().flat_map(|report| report.report.iter().flat_map(|report| &report.files));
        files.filter_map(|file| file.size_bytes).collect()
    };
    let is_heard = |file: &&Marked| {
        let signs = Regex::new(&format!("(?-u){}", file.signs().join("|"))).unwrap();
        signs.is_match(&heard) || sizes.contains(&(file.text.len() as u64))
    };
    files.iter().filter(is_heard).collect()
}

/// What is sent about a file: an edit in every dialect and of every kind, none of which has anything of the file that could
/// not be guessed.
fn edits(number: u32) -> Vec<Batch> {
    let mine = format!("mine {number}");
    let json = json_edits(number, &mine).into_iter().map(|(dialect, edit)| (dialect, edit.to_string()));
    let git = GIT_EDITS.iter().map(|text| (Dialect::GitPatch, text.replace("MINE", &mine)));
    let parsed = json.chain(text_edits(&mine)).chain(git).map(|(dialect, text)| {
        let document = documents::parse(text.as_bytes(), Some(dialect));
        document.unwrap_or_else(|error| panic!("{dialect:?} {error:?}: {text}")).batch
    });
    let prepared = [
        ("prepare_file_append", json!({ "path": "t.txt", "content": mine })),
        ("prepare_file_range_edit", json!({ "path": "t.txt", "range": "2~3", "content": mine })),
        ("prepare_file_insert_after", json!({ "path": "t.txt", "anchor": "common", "content": mine })),
    ];
    let prepared = prepared.iter().filter_map(|(tool, arguments)| {
        match find(tool).unwrap().parse(&arguments.to_string(), &Roots::default()) {
            Ok(Call::Prepare { patch, .. }) => Some(Batch { files: vec![patch], ..Batch::default() }),
            _ => None,
        }
    });
    parsed.chain(prepared).collect()
}

fn json_edits(number: u32, mine: &str) -> Vec<(Dialect, serde_json::Value)> {
    let wrong = sha256(number.to_string().as_bytes());
    let lines = |change: serde_json::Value| json!({ "files": [{ "docPath": "ws/t.txt", "originalSha256": wrong.to_string(), "changes": [change] }] });
    let search = |change: serde_json::Value| json!({ "path": "t.txt", "patches": [change] });
    let replace = |find: &str, limit: &str| json!({ "patches": [{ "path": "t.txt", "replacements": [{ "find": find, "replace": mine, "limit": limit }] }] });
    let bundle = |operation: &str| json!({ "files": [{ "path": "t.txt", "content": mine, "operation": operation }] });
    vec![
        (Dialect::LinePatch, lines(json!({ "operation": "insert", "afterLine": 1, "newLines": [mine] }))),
        (
            Dialect::LinePatch,
            lines(json!({ "operation": "replace", "startLine": 2, "endLine": 2,
            "expectedOriginalLines": ["fn main() {"], "newLines": [mine] })),
        ),
        (
            Dialect::LinePatch,
            lines(json!({ "operation": "delete", "startLine": 90, "endLine": 91,
            "expectedOriginalLines": ["}", "common"] })),
        ),
        (Dialect::SearchPatch, search(json!({ "operation": "replace", "oldText": "fn main() {", "newText": mine }))),
        (Dialect::SearchPatch, search(json!({ "operation": "replace", "oldText": "fn maim() {\n", "newText": mine }))),
        (Dialect::SearchPatch, search(json!({ "operation": "replace", "oldText": "common", "toClipboard": "c" }))),
        (Dialect::SearchPatch, search(json!({ "operation": "append_eof", "newText": mine }))),
        (Dialect::SearchPatch, search(json!({ "operation": "prepend_bof", "newText": mine }))),
        (Dialect::SearchPatch, search(json!({ "operation": "overwrite", "newText": mine }))),
        (Dialect::StructuredPatch, replace("common", "once")),
        (Dialect::StructuredPatch, replace("a", "all")),
        (Dialect::FileBundle, bundle("create")),
        (Dialect::FileBundle, bundle("replace")),
        (Dialect::FileBundle, json!({ "files": [{ "path": "t.txt", "operation": "delete" }] })),
        (Dialect::CreateFile, json!({ "path": "t.txt", "content": mine })),
        (Dialect::CreateFile, json!({ "path": "t.txt", "content": mine, "overwrite": true })),
        (
            Dialect::StrReplace,
            json!({ "command": "str_replace", "path": "t.txt", "old_str": "common", "new_str": mine }),
        ),
        (Dialect::StrReplace, json!({ "command": "insert", "path": "t.txt", "insert_line": 1, "insert_text": mine })),
    ]
}

fn text_edits(mine: &str) -> Vec<(Dialect, String)> {
    vec![
        (Dialect::SearchReplace, format!("t.txt\n<<<<<<< SEARCH\ncommon\n=======\n{mine}\n>>>>>>> REPLACE\n")),
        (
            Dialect::CodexPatch,
            format!("*** Begin Patch\n*** Update File: t.txt\n@@ fn main() {{\n common\n+{mine}\n*** End Patch\n"),
        ),
        (
            Dialect::CodexPatch,
            format!(
                "*** Begin Patch\n*** Update File: t.txt\n*** Move to: moved.txt\n@@\n-common\n+{mine}\n*** End Patch\n"
            ),
        ),
        (Dialect::CodexPatch, "*** Begin Patch\n*** Delete File: t.txt\n*** End Patch\n".to_owned()),
        (Dialect::Chat, format!("Here:\n\n```diff\n--- a/t.txt\n+++ b/t.txt\n@@ -6 +6 @@\n-common\n+{mine}\n```\n")),
    ]
}

/// Diffs whose new text is `MINE`.
const GIT_EDITS: [&str; 9] = [
    "--- a/t.txt\n+++ b/t.txt\n@@ -1,2 +1,2 @@\n x\n-fn main() {\n+MINE\n",
    "--- a/t.txt\n+++ b/t.txt\n@@ -2,1 +2,1 @@\n-fn main() {\n+MINE\n",
    "diff --git a/t.txt b/t.txt\nindex 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644\n--- a/t.txt\n+++ b/t.txt\n@@ -2 +2 @@\n-fn main() {\n+MINE\n",
    "diff --git a/t.txt b/t.txt\nnew file mode 100644\n--- /dev/null\n+++ b/t.txt\n@@ -0,0 +1 @@\n+MINE\n",
    "diff --git a/t.txt b/t.txt\ndeleted file mode 100644\n--- a/t.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
    "diff --git a/t.txt b/t.txt\nold mode 100644\nnew mode 100755\n",
    "diff --git a/t.txt b/taken.txt\nsimilarity index 100%\ncopy from t.txt\ncopy to taken.txt\n",
    "diff --git a/t.txt b/taken.txt\nsimilarity index 90%\ncopy from t.txt\ncopy to taken.txt\n--- a/t.txt\n+++ b/taken.txt\n@@ -6 +6 @@\n-common\n+MINE\n",
    "diff --git a/t.txt b/moved.txt\nsimilarity index 100%\nrename from t.txt\nrename to moved.txt\n",
];

/// The batch about another file, by its path or by its docPath; with a second edit that is refused, if that is asked for.
fn about(mut batch: Batch, path: &str, number: u32) -> Batch {
    let by_key = number.is_multiple_of(3);
    let named = |path: &str| if by_key { format!("ws/{}", path.to_lowercase()) } else { path.to_owned() };
    for patch in &mut batch.files {
        let is_copy = patch.edit.copied_from().is_some();
        let target = named(if is_copy { "taken.txt" } else { path });
        patch.target = if by_key { Target::DocPath(target) } else { Target::Path(target) };
        match &mut patch.edit {
            FileEdit::GitPatch(git) => match &mut git.kind {
                GitKind::Copy { from } => *from = named(path),
                GitKind::Rename { to } => *to = named("moved.txt"),
                _ => {}
            },
            FileEdit::ContextPatch(context) => context.move_to = context.move_to.as_ref().map(|_| named("moved.txt")),
            _ => {}
        }
    }
    if number.is_multiple_of(7) {
        batch.files.extend(edits(number).swap_remove(4).files);
    }
    batch
}

/// Sends batches about these files, and keeps the files as they are.
async fn attack(scene: &Scene, files: &[Marked], batches: u32) {
    let kinds = edits(0).len();
    for number in 1..=batches {
        let index = number as usize;
        // Every kind of edit meets every kind of file.
        let file = &files[(index * 17 + index / files.len()) % files.len()];
        let batch = edits(number).swap_remove((index * 5 + index / kinds) % kinds);
        scene.server.send(of_batch(number, about(batch, &file.path, number)));
        scene.report_of(number).await;
        file.lay(scene);
        for taken in ["taken.txt", "moved.txt"] {
            let _ = std::fs::remove_file(scene.place(taken));
        }
    }
}

fn lay_out(scene: &Scene, files: &[Marked]) {
    use std::os::unix::fs::symlink;
    std::fs::create_dir_all(scene.place.path().join("outside")).unwrap();
    symlink("../outside", scene.place("out")).unwrap();
    for number in 4..7 {
        symlink(format!("../outside/{number}.txt"), scene.place(&format!("link-{number}.txt"))).unwrap();
    }
    files.iter().for_each(|file| file.lay(scene));
}

/// A server that may read a file can find out all of it: what is held against what was heard would show it. What lies
/// outside of the root is never found, whatever policy says.
#[tokio::test]
async fn a_hostile_server_hears_of_files_that_it_may_read() {
    let scene = Scene::set(Approve::Auto);
    let files = marked();
    lay_out(&scene, &files);
    let open = "hard_links = 'allow'\ndeletions = 'allow'\nsecrets = { allow = ['**'] }\nlimits = { refused_per_minute = 1000000 }\n";
    scene.put_policy(open);
    attack(&scene, &files, BATCHES).await;
    let heard: BTreeSet<Kind> = heard_of(&scene, &files).iter().map(|file| file.kind).collect();
    assert_eq!(heard, [Kind::Ignored, Kind::Secret, Kind::Denied, Kind::HardLinked].into());
}

/// Whatever it sends, a server hears nothing of what it may not read.
#[tokio::test]
async fn a_hostile_server_learns_nothing_of_files_that_it_may_not_read() {
    let batches = std::env::var_os("APTIX_HOSTILE_BATCHES");
    let batches = batches.map_or(BATCHES, |batches| batches.into_string().unwrap().parse().unwrap());
    let files = marked();
    for approve in [Approve::Auto, Approve::Ask] {
        let scene = Scene::set(approve);
        scene.lay(".gitignore", "ignored-*.txt\n/build/\n");
        scene.lay("sub/.gitignore", "*.log\n");
        scene.lay(".git/info/exclude", "excluded-*\n");
        lay_out(&scene, &files);
        scene.put_policy("deny = ['vault']\ndeletions = 'allow'\nlimits = { refused_per_minute = 1000000 }\n");
        attack(&scene, &files, batches).await;
        let heard: Vec<_> = heard_of(&scene, &files).iter().map(|file| file.path.clone()).collect();
        assert_eq!(heard, [""; 0], "{approve:?}");
        let script = scene.server.script.lock().unwrap();
        let bytes = script.heard.iter().chain(script.blobs.values()).map(Vec::len).sum::<usize>();
        let applied =
            script.reports.iter().filter(|report| report.report.as_ref().unwrap().failures.is_empty()).count();
        println!(
            "{approve:?}: {batches} batches, {applied} applied, {} messages, {bytes} bytes, nothing of {} files",
            script.heard.len(),
            files.len()
        );
        assert!(applied > 0 || approve == Approve::Ask, "some are written over whole");
    }
}
