//! What people ask of the past: what touched a path, which batch an id means, and how the files of several roots are named.

use std::path::Path;

use serde_json::{Value, json};

use crate::command_line::{aptix, text};

fn ask(place: &Path, arguments: &[&str], document: &str, code: i32) -> Value {
    let output = aptix(place, arguments, document);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| text(&output.stdout).into())
}

fn apply(place: &Path, document: &str) -> String {
    ask(place, &["apply", "--json"], document, 0)["batchId"].as_str().unwrap().to_owned()
}

fn create(path: &str) -> String {
    json!({ "path": path, "content": format!("{path}\n") }).to_string()
}

fn rename(from: &str, to: &str) -> String {
    format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n")
}

/// The ids of the batches that a log lists.
fn listed(place: &Path, arguments: &[&str]) -> Vec<String> {
    let log = ask(place, &[&["log", "--json"], arguments].concat(), "", 0);
    log["batches"].as_array().unwrap().iter().map(|batch| batch["batchId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_log_of_a_path_follows_a_file_to_the_names_it_had_before() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let made = apply(place, &create("a/first.txt"));
    let twin = apply(place, &create("a/first.txt.bak"));
    let moved = apply(place, &rename("a/first.txt", "b/second.txt"));
    // Another file comes to the old name.
    let other = apply(place, &create("a/first.txt"));
    let again = apply(place, &rename("b/second.txt", "b/third.txt"));
    let undone = ask(place, &["undo", "--json", &again], "", 0)["batchId"].as_str().unwrap().to_owned();
    let unrelated = apply(place, &create("c"));
    let all = [&unrelated, &undone, &again, &other, &moved, &twin, &made];
    let cases: [(&[&str], &[&String]); 9] = [
        (&["b/second.txt"], &[&undone, &again, &moved, &made]),
        (&["./b/third.txt"], &[&undone, &again, &moved, &made]),
        (&["b/"], &[&undone, &again, &moved, &made]),
        (&["a/first.txt"], &[&other, &moved, &made]),
        (&["a"], &[&other, &moved, &twin, &made]),
        (&["-n", "2", "a"], &[&other, &moved]),
        (&["."], &all),
        (&["nothing"], &[]),
        (&["a/first"], &[]),
    ];
    for (arguments, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|id| (*id).clone()).collect();
        assert_eq!(listed(place, arguments), expected, "{arguments:?}");
    }
    // Of a batch that is listed, also what took it back is known that did not touch the path.
    let both = json!({ "files": [
        { "path": "x", "operation": "create", "content": "x\n" }, { "path": "y", "operation": "create", "content": "y\n" }
    ] });
    let both = apply(place, &both.to_string());
    std::fs::remove_file(place.join("ws/x")).unwrap();
    let undo = ask(place, &["undo", "--json"], "", 0)["batchId"].clone();
    let log = ask(place, &["log", "--json", "x"], "", 0);
    assert_eq!((&log["batches"][0]["batchId"], &log["batches"][0]["undoneBy"]), (&json!(both), &undo), "{log}");
    assert_eq!(log["batches"].as_array().unwrap().len(), 1);
    let refused = aptix(place, &["log", "../x"], "");
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("INVALID_PATH") && text(&refused.stderr).contains("hint:"));
}

#[test]
fn the_files_of_several_roots_are_named_with_their_roots() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    std::fs::create_dir_all(place.join("two")).unwrap();
    let roots: &[&str] = &["--root", "One=.", "--root", "../two"];
    let both = json!({ "files": [
        { "path": "one/Same.txt", "operation": "create", "content": "1\n" },
        { "path": "two/Same.txt", "operation": "create", "content": "2\n" },
    ] });
    let both = ask(place, &[&["apply", "--json"], roots].concat(), &both.to_string(), 0)["batchId"].clone();
    let replaced = json!({ "files": [{ "path": "two/Same.txt", "operation": "replace", "content": "3\n" }] });
    let alone = ask(place, &[&["apply", "--json"], roots].concat(), &replaced.to_string(), 0)["batchId"].clone();
    let log = ask(place, &[&["log", "--json"], roots].concat(), "", 0);
    let file = |name: &str| json!({ "path": format!("{name}/Same.txt"), "docPath": format!("{name}/same.txt"), "status": "created", "renamedTo": null });
    assert_eq!(log["batches"][1]["files"], json!([file("one"), file("two")]));
    let shown = text(&aptix(place, &[&["log"], roots].concat(), "").stdout);
    assert!(
        shown.contains("modified two/Same.txt  by") && shown.contains("created one/Same.txt and 1 more  by"),
        "{shown}"
    );
    for (path, expected) in [("two/Same.txt", vec![&alone, &both]), ("one", vec![&both]), ("one/Same.txt", vec![&both])]
    {
        let log = ask(place, &[&["log", "--json", path], roots].concat(), "", 0);
        let found: Vec<_> = log["batches"].as_array().unwrap().iter().map(|batch| &batch["batchId"]).collect();
        assert_eq!(found, expected, "{path}");
    }
    let refused = aptix(place, &[&["log", "three/x"], roots].concat(), "");
    let message = text(&refused.stderr);
    assert!(message.contains("\"three\"") && message.contains("\"one\", \"two\""), "{message}");
    // Seen from one of the roots, a file of the other is never taken for one of its own.
    let log = ask(place, &["log", "--json", "--root", "../two"], "", 0);
    let other = place.join("ws/Same.txt").canonicalize().unwrap();
    let found = &log["batches"][1]["files"];
    assert_eq!((&found[0]["path"], &found[0]["docPath"]), (&json!(other), &Value::Null), "{log}");
    assert_eq!((&found[1]["path"], &found[1]["docPath"]), (&json!("Same.txt"), &json!("two/same.txt")), "{log}");
}

/// A batch is shown with the names that its roots have now: in diffs, too, a file of another root is never one of this root.
#[test]
fn a_batch_of_several_roots_is_shown_as_its_roots_are_named_now() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    std::fs::create_dir_all(place.join("two")).unwrap();
    std::fs::create_dir_all(place.join("ws")).unwrap();
    std::fs::write(place.join("ws/f"), "kept\n").unwrap();
    let file = |path: &str, content: &str| json!({ "path": path, "operation": "replace", "content": content });
    let created = |path: &str| json!({ "path": path, "operation": "create", "content": "new\n" });
    std::fs::write(place.join("two/f"), "old\n").unwrap();
    let both = json!({ "files": [file("one/f", "kept\n"), file("two/f", "new\n"), created("one/g")] }).to_string();
    let both =
        ask(place, &["apply", "--json", "--root", "one=.", "--root", "two=../two"], &both, 0)["batchId"].to_string();
    let id = both.trim_matches('"');
    let closed = |name: &str| place.join(name).canonicalize().unwrap().display().to_string();
    let (here, there) = (closed("ws"), closed("two"));
    let open = |path: &str, key: &str| json!([path, key]);
    let cases: [(&[&str], [Value; 3]); 4] = [
        (
            &["--root", "one=.", "--root", "two=../two"],
            [open("one/f", "one/f"), open("two/f", "two/f"), open("one/g", "one/g")],
        ),
        (
            &["--root", "two=.", "--root", "one=../two"],
            [open("two/f", "two/f"), open("one/f", "one/f"), open("two/g", "two/g")],
        ),
        (&["--root", "new=."], [open("f", "new/f"), json!([format!("{there}/f"), null]), open("g", "new/g")]),
        (
            &["--root", "../two"],
            [json!([format!("{here}/f"), null]), open("f", "two/f"), json!([format!("{here}/g"), null])],
        ),
    ];
    for (roots, expected) in cases {
        let shown = ask(place, &[&["show", "--json", id], roots].concat(), "", 0);
        let named: Vec<_> =
            shown["files"].as_array().unwrap().iter().map(|file| json!([file["path"], file["docPath"]])).collect();
        assert_eq!(named, expected, "{roots:?}");
        let log = ask(place, &[&["log", "--json", "-p"], roots].concat(), "", 0);
        for diff in [&shown["diff"], &log["batches"][0]["diff"]] {
            for name in [&expected[1][0], &expected[2][0]] {
                let name = name.as_str().unwrap().trim_start_matches('/');
                assert!(diff.as_str().unwrap().contains(&format!("diff --git a/{name} b/{name}\n")), "{name}: {diff}");
            }
        }
    }
}

#[test]
fn the_beginning_of_an_id_undoes_its_batch_unless_several_begin_so() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let [first, second] = ["first", "second"].map(|name| apply(place, &create(name)));
    let common = first.bytes().zip(second.bytes()).take_while(|(one, other)| one == other).count();
    for beginning in ["", &first[..common]] {
        let refused = ask(place, &["undo", "--json", beginning], "", 1);
        let code = if beginning.is_empty() { "NOT_FOUND" } else { "AMBIGUOUS_ID" };
        assert_eq!(refused["errors"][0]["code"], code, "{refused}");
        if !beginning.is_empty() {
            let message = refused["errors"][0]["message"].as_str().unwrap();
            assert!(message.contains(&first) && message.contains(&second), "{message}");
        }
    }
    assert_eq!(ask(place, &["undo", "--json", "ffffffff"], "", 1)["errors"][0]["code"], "NOT_FOUND");
    let undone = ask(place, &["undo", "--json", &first[..=common].to_uppercase()], "", 0);
    assert_eq!(undone["undoes"], json!(first));
    assert!(!place.join("ws/first").exists() && place.join("ws/second").exists());
    // A beginning that its undo has in common with it names both.
    let redone = ask(place, &["undo", "--redo", "--json", &first[..=common]], "", 0);
    assert_eq!(redone["undoes"], undone["batchId"]);
    assert!(place.join("ws/first").exists());
}

#[test]
fn apply_and_undo_print_the_ids_of_their_batches_and_undo_what_it_undid() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let applied = text(&aptix(place, &["apply"], create("f")).stdout);
    let id = listed(place, &[]).remove(0);
    assert!(applied.starts_with(&format!("batch {id} APPLIED\ndiff --git ")), "{applied}");
    assert!(applied.ends_with("\ncreated f\n"), "{applied}");
    let dry = text(&aptix(place, &["undo", "--dry-run"], "").stdout);
    assert!(dry.starts_with(&format!("would undo batch {id}\ndiff --git ")), "{dry}");
    let undone = text(&aptix(place, &["undo"], "").stdout);
    let undo = listed(place, &[]).remove(0);
    let head = format!("batch {undo} APPLIED \"undo {id}\"\nundid batch {id}\ndiff --git ");
    assert!(undone.starts_with(&head) && undone.ends_with("\ndeleted f\n"), "{undone}");
    let shown = text(&aptix(place, &["show", &undo], "").stdout);
    // What it prints more is who did it.
    let lines = shown.lines().filter(|line| !line.ends_with(" UTC  local by person"));
    assert_eq!(lines.collect::<Vec<_>>(), undone.lines().collect::<Vec<_>>());
    assert_eq!(shown.lines().count(), undone.lines().count() + 1);
}
