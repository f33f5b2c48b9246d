//! Every dialect on its way from an author through the server to the agent's files, and back into the cloud files.

use serde_json::{Value, json};

use crate::processes::{Machine, Server, served};

/// What the server has: each of these files by its path, or nothing of that name.
#[track_caller]
fn assert_cloud(machine: &Machine, server: &Server, files: &[(&str, Option<&str>)]) {
    for (path, expected) in files {
        let (read, code) = machine.ask(server, "read", &[&format!("project/{path}")]);
        match expected {
            Some(content) => assert_eq!((code, &read["content"]), (Some(0), &json!(content)), "{path}: {read}"),
            None => assert_eq!((code, &read["errors"][0]["code"]), (Some(1), &json!("NOT_FOUND")), "{path}: {read}"),
        }
    }
}

/// What became of each file of a batch: its path, its status, its new path.
fn outcomes(done: &Value) -> Vec<[&str; 3]> {
    let files = done["files"].as_array().unwrap();
    files.iter().map(|file| ["path", "status", "renamedTo"].map(|key| file[key].as_str().unwrap_or_default())).collect()
}

#[track_caller]
fn submit(machine: &Machine, server: &Server, document: &str) -> Value {
    let (done, code) = machine.submit(server, document);
    assert_eq!((code, &done["state"]), (Some(0), &json!("APPLIED")), "{done}");
    done
}

/// FILE-SPEC-1.1.6, FILE-SPEC-1.1.7, FILE-SPEC-1.1.8: whole files come, change and go, and so do the cloud files.
#[test]
fn whole_files_and_renamed_files_become_the_cloud_files() {
    let machine = Machine::new().with_policy("deletions = \"allow\"\n");
    let server = machine.server();
    let _agent = machine.agent(&server);
    machine.put("old.txt", "old\r\n");
    let bundle = json!({"root": ".", "files": [
        {"path": "new.txt", "operation": "create", "content": "one\r\ntwo"},
        {"path": "old.txt", "operation": "replace", "content": "replaced\n"},
        {"path": "moves.txt", "content": "first\nsecond\nthird\n"},
    ]});
    let done = submit(&machine, &server, &bundle.to_string());
    let expected = [["new.txt", "created", ""], ["old.txt", "modified", ""], ["moves.txt", "created", ""]];
    assert_eq!(outcomes(&done), expected);
    assert_cloud(&machine, &server, &[("new.txt", Some("one\r\ntwo")), ("old.txt", Some("replaced\r\n"))]);

    let bundle = json!({"files": [{"path": "old.txt", "operation": "delete"}]});
    let done = submit(&machine, &server, &bundle.to_string());
    assert_eq!(outcomes(&done), [["old.txt", "deleted", ""]]);
    assert_cloud(&machine, &server, &[("old.txt", None), ("new.txt", Some("one\r\ntwo"))]);

    let patch = "*** Begin Patch\n*** Update File: moves.txt\n*** Move to: there/moved.txt\n@@\n first\n-second\n\
                 +2nd\n third\n*** Delete File: new.txt\n*** Add File: added.txt\n+added\n*** End Patch\n";
    let done = submit(&machine, &server, patch);
    let expected =
        [["moves.txt", "renamed", "there/moved.txt"], ["new.txt", "deleted", ""], ["added.txt", "created", ""]];
    assert_eq!(outcomes(&done), expected);
    let moved = "first\n2nd\nthird\n";
    assert_cloud(
        &machine,
        &server,
        &[("moves.txt", None), ("there/moved.txt", Some(moved)), ("new.txt", None), ("added.txt", Some("added\n"))],
    );
    let files = [("added.txt", "added\n"), ("there/moved.txt", moved)];
    assert_eq!(machine.files(), files.map(|(path, text)| (path.to_owned(), text.to_owned())));
    let change = done["files"][0]["changes"][0]["changeId"].as_str().unwrap();
    let (shown, code) = machine.ask(&server, "show", &[change]);
    assert_eq!((code, &shown["files"][0]["renamedTo"]), (Some(0), &json!("there/moved.txt")), "{shown}");
}

/// A diff that makes, deletes, renames and changes files, then a search patch; the cloud
/// files are those of the workspace, and the mode is the new one.
#[test]
fn diffs_and_search_patches_become_the_cloud_files() {
    let machine = Machine::new().with_policy("deletions = \"allow\"\n");
    let server = machine.server();
    let _agent = machine.agent(&server);
    let bundle = json!({"files": [
        {"path": "gone.txt", "operation": "create", "content": "gone\n"},
        {"path": "src/old name.txt", "operation": "create", "content": "1\n2\n3\n4\n5\n6\n"},
        {"path": "run.sh", "operation": "create", "content": "#!/bin/sh\n"},
        {"path": "same.txt", "operation": "create", "content": "same\n"},
    ]});
    submit(&machine, &server, &bundle.to_string());
    let diff = "diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n--- a/gone.txt\n+++ /dev/null\n\
                @@ -1 +0,0 @@\n-gone\n\
                diff --git a/made.txt b/made.txt\nnew file mode 100644\n--- /dev/null\n+++ b/made.txt\n\
                @@ -0,0 +1 @@\n+made\n\\ No newline at end of file\n\
                diff --git a/src/old name.txt b/new name.txt\nsimilarity index 80%\nrename from src/old name.txt\n\
                rename to new name.txt\n--- a/src/old name.txt\t\n+++ b/new name.txt\t\n\
                @@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n\
                diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n";
    let done = submit(&machine, &server, diff);
    let expected = [
        ["gone.txt", "deleted", ""],
        ["made.txt", "created", ""],
        ["src/old name.txt", "renamed", "new name.txt"],
        ["run.sh", "modified", ""],
    ];
    assert_eq!(outcomes(&done), expected);
    let renamed = "1\n2\n3\n4\nfive\n6\n";
    let cloud = [
        ("gone.txt", None),
        ("made.txt", Some("made")),
        ("src/old name.txt", None),
        ("new name.txt", Some(renamed)),
        ("run.sh", Some("#!/bin/sh\n")),
        ("same.txt", Some("same\n")),
    ];
    assert_cloud(&machine, &server, &cloud);
    assert!(machine.is_executable("run.sh"));

    let patch = json!({"path": "new name.txt", "patches": [
        {"operation": "replace", "oldText": "2\n3\n", "newText": "", "toClipboard": "lines"},
        {"operation": "append_eof", "fromClipboard": "lines"},
    ]});
    let done = submit(&machine, &server, &patch.to_string());
    assert_eq!(outcomes(&done), [["new name.txt", "modified", ""]]);
    let changed = "1\n4\nfive\n6\n2\n3\n";
    assert_cloud(&machine, &server, &[("new name.txt", Some(changed))]);
    let changes = done["files"][0]["changes"].as_array().unwrap();
    let places: Vec<_> = changes.iter().map(|change| [&change["startLine"], &change["endLine"]]).collect();
    assert_eq!(places, [[&json!(2), &json!(1)], [&json!(5), &json!(6)]], "{done}");
    let local: Vec<_> = machine.files().into_iter().map(|(path, text)| (path, Some(text))).collect();
    let kept = [("made.txt", "made"), ("new name.txt", changed), ("run.sh", "#!/bin/sh\n"), ("same.txt", "same\n")];
    assert_eq!(local, kept.map(|(path, text)| (path.to_owned(), Some(text.to_owned()))));
}

/// Files that swap their names, hand them over, or get another case; the cloud files follow.
#[test]
fn names_that_files_take_over_become_those_of_the_cloud_files() {
    let (machine, server, _agent) = served("auto");
    let bundle = json!({"files": [
        {"path": "left", "operation": "create", "content": "left\n"},
        {"path": "right", "operation": "create", "content": "right\n"},
        {"path": "first", "operation": "create", "content": "first\n"},
        {"path": "second", "operation": "create", "content": "second\n"},
        {"path": "docs/README.MD", "operation": "create", "content": "read\n"},
    ]});
    submit(&machine, &server, &bundle.to_string());
    let moved = |[from, to]: [&str; 2]| format!("diff --git a/{from} b/{to}\nrename from {from}\nrename to {to}\n");
    let names = [
        ["left", "right"],
        ["right", "left"],
        ["first", "second"],
        ["second", "third"],
        ["docs/README.MD", "docs/Readme.md"],
    ];
    let done = submit(&machine, &server, &names.map(moved).concat());
    assert_eq!(outcomes(&done), names.map(|[from, to]| [from, "renamed", to]));
    let texts = [
        ("docs/Readme.md", "read\n"),
        ("left", "right\n"),
        ("right", "left\n"),
        ("second", "first\n"),
        ("third", "second\n"),
    ];
    assert_eq!(machine.files(), texts.map(|(path, text)| (path.to_owned(), text.to_owned())));
    // The lower-case key of the first one stays the same; two files with it would be ambiguous.
    let cloud =
        texts.map(|(path, text)| if path.starts_with("docs") { ("docs/readme.md", text) } else { (path, text) });
    assert_cloud(&machine, &server, &cloud.map(|(path, text)| (path, Some(text))));
    assert_cloud(&machine, &server, &[("first", None)]);
}

/// What the tools of other authors write goes the same way.
#[test]
fn imported_dialects_become_the_cloud_files() {
    let (machine, server, _agent) = served("auto");
    machine.put("a.txt", "one\ntwo\nthree\n");
    let blocks = "a.txt\n<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n";
    submit(&machine, &server, blocks);
    assert_cloud(&machine, &server, &[("a.txt", Some("one\n2\nthree\n"))]);
    let command = json!({"command": "str_replace", "path": "a.txt", "old_str": "three", "new_str": "3"});
    submit(&machine, &server, &command.to_string());
    assert_cloud(&machine, &server, &[("a.txt", Some("one\n2\n3\n"))]);
    let structured = json!({"root": ".", "patches": [
        {"path": "a.txt", "replacements": [{"find": "one", "replace": "1"}]},
    ]});
    let answer = format!("Here it is:\n\n```json\n{structured}\n```\n\nThat is all.\n");
    submit(&machine, &server, &answer);
    assert_cloud(&machine, &server, &[("a.txt", Some("1\n2\n3\n"))]);
}

/// FILE-SPEC-5.1: the command line and the agent of a server decide alike about each block of an answer: what is applied, what is
/// named as an example, and what refuses the answer.
#[test]
fn an_answer_has_the_same_outcome_on_each_way_in() {
    let (machine, server, _agent) = served("auto");
    let local = Machine::new();
    let edit = "src/a.py\n```python\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n```\n";
    for (below, is_applied) in [
        ("Then src/a.py holds:\n```python\nx = 2\n```\n\n## Usage\n```\npython src/a.py\n```\n", true),
        ("**LICENSE**\n```\nMIT\n```\n\n```json\n{\"returns\": 3}\n```\n", true),
        ("**src/b.py**\n```python\nimport a\n```\n", false),
        ("Update LICENSE to:\n```md\nGPL\n```\n", false),
    ] {
        let answer = format!("So:\n\n{edit}\n{below}");
        let found = [&machine, &local].map(|machine| {
            machine.put("src/a.py", "x = 1\n");
            machine.put("LICENSE", "MIT\n");
            let (done, code) = if std::ptr::eq(machine, &raw const local) {
                apply(machine, &answer)
            } else {
                machine.submit(&server, &answer)
            };
            assert_eq!(code, Some(i32::from(!is_applied)), "{done}");
            let words = |list: &str| -> Vec<Value> {
                let entries = done[list].as_array().unwrap();
                entries.iter().map(|entry| json!([entry["code"], entry["line"], entry["message"]])).collect()
            };
            (words("warnings"), words("errors"), outcomes_owned(&done), machine.files())
        });
        assert_eq!(found[0], found[1], "{answer}");
        let (warnings, errors, ..) = &found[0];
        assert_eq!((warnings.len(), errors.len()), if is_applied { (2, 0) } else { (0, 1) }, "{found:?}");
    }
}

fn outcomes_owned(done: &Value) -> Vec<Vec<String>> {
    outcomes(done).into_iter().map(|words| words.map(str::to_owned).to_vec()).collect()
}

/// Applies a document without a server.
fn apply(machine: &Machine, document: &str) -> (Value, Option<i32>) {
    let file = machine.path("answer");
    crate::processes::write(&file, document);
    let root = format!("project={}", machine.path("project").display());
    let output = machine.aptix(&["apply", "--json", "--root", &root, &file.display().to_string()]).output().unwrap();
    crate::processes::json(&output)
}
