//! What an editor may not do, and what it gets: each a named answer, and nothing of it disturbs another editor.

use serde_json::{Value, json};

use super::Scene;
use super::editor::Editor;
use crate::documents::insert;

/// Reason of a refusal.
fn reason(answer: &Value) -> &str {
    assert!(answer["ok"] == false && answer["message"].is_string() && answer["hint"].is_string(), "{answer}");
    answer["reason"].as_str().unwrap()
}

/// The sixty-fifth buffer of an agent is refused, by whatever editor it comes; a place that is given up can be taken.
#[test]
fn an_agent_holds_sixty_four_buffers() {
    let mut scene = Scene::set();
    let (mut one, mut other) = (scene.editor(), scene.editor());
    for number in 0..64 {
        let editor = if number % 2 == 0 { &mut one } else { &mut other };
        assert_eq!(editor.announce(&format!("{number}.txt"), "x")["unsaved"], true);
    }
    assert_eq!(reason(&other.announce("64.txt", "x")), "RESOURCE_EXHAUSTED");
    assert_eq!(one.announce("0.txt", "y")["unsaved"], true, "in its own place");
    assert_eq!(scene.shown("0.txt"), ("y".to_owned(), true));
    assert_eq!(one.withdraw("0.txt")["ok"], true);
    assert_eq!(other.announce("64.txt", "x")["unsaved"], true);
}

/// Text of 1 MiB is held. More is refused and not shown, and the file is not written meanwhile; the same without text.
#[test]
fn text_that_is_too_large_or_not_shown_holds_batches_back() {
    let mut scene = Scene::set();
    scene.machine.put("a.txt", "disk\n");
    let mut editor = scene.editor();
    // The longest that a text can become: six bytes for each.
    let most = "\u{1}".repeat(1 << 20);
    assert_eq!(editor.announce("a.txt", &most)["unsaved"], true);
    assert_eq!(scene.shown("a.txt"), (most.clone(), true));
    assert_eq!(reason(&editor.announce("a.txt", &(most + "x"))), "TOO_LARGE");
    let refused = |scene: &mut Scene| {
        let status = scene.read("a.txt").unwrap_err();
        assert!(status.message().starts_with("UNSAVED_BUFFER"), "{status}");
        assert_eq!(scene.outcome(&insert(&[("a.txt", "disk\n")], 1, "x")), "UNSAVED_BUFFER");
    };
    refused(&mut scene);
    editor.withdraw("a.txt");
    assert_eq!(scene.shown("a.txt"), ("disk\n".to_owned(), false));
    let path = scene.machine.path("project/a.txt");
    assert_eq!(editor.say(&json!({"op": "announce", "path": path}))["unsaved"], true);
    refused(&mut scene);
    assert_eq!(scene.search("disk"), []);
}

/// What is no request is named, and the editor can go on.
#[test]
fn what_is_no_request_is_named() {
    let scene = Scene::set();
    let mut editor = scene.editor();
    let outside = scene.machine.path("outside.txt");
    for (line, expected) in [
        ("", "INVALID_REQUEST"),
        ("rubbish", "INVALID_REQUEST"),
        ("[1]", "INVALID_REQUEST"),
        (r#"{"op":"open","path":"/a"}"#, "INVALID_REQUEST"),
        (r#"{"op":"announce","path":"/a","txt":""}"#, "INVALID_REQUEST"),
        (r#"{"op":"announce","path":7,"text":""}"#, "INVALID_REQUEST"),
        (r#"{"op":"announce","text":""}"#, "INVALID_REQUEST"),
        (r#"{"op":"announce","path":"/a","docPath":"project/a","text":""}"#, "INVALID_REQUEST"),
        (r#"{"op":"announce","path":"/a","text":"\ud800"}"#, "INVALID_REQUEST"),
        (r#"{"op":"announce","path":"a.txt","text":""}"#, "INVALID_PATH"),
        (r#"{"op":"announce","docPath":"project/A.txt","text":""}"#, "INVALID_PATH"),
        (r#"{"op":"announce","docPath":"other/a.txt","text":""}"#, "INVALID_PATH"),
        (&json!({"op": "announce", "path": outside, "text": ""}).to_string(), "INVALID_PATH"),
        (&json!({"op": "announce", "path": scene.machine.path("project"), "text": ""}).to_string(), "INVALID_PATH"),
    ] {
        editor.send(format!("{line}\n").as_bytes()).unwrap();
        assert_eq!(reason(&editor.hear().unwrap()), expected, "{line}");
    }
    editor.send(b"{\"op\":\"announce\",\"docPath\":\"project/a.txt\",\"text\":\"\xff\"}\n").unwrap();
    assert_eq!(reason(&editor.hear().unwrap()), "NOT_TEXT");
    let known = editor.say(&json!({"op": "announce", "docPath": "project/a.txt", "text": "x"}));
    assert_eq!(known["unsaved"], true, "{known}");
}

/// An editor begins with a hello of the version that is spoken.
#[test]
fn an_editor_begins_with_a_hello() {
    let scene = Scene::set();
    for first in [r#"{"op":"hello","version":2}"#, r#"{"op":"list"}"#, "GET / HTTP/1.1"] {
        let mut editor = Editor::silent(&scene.machine);
        editor.send(format!("{first}\n").as_bytes()).unwrap();
        assert_eq!(reason(&editor.hear().unwrap()), "INVALID_REQUEST", "{first}");
        assert_eq!(editor.hear(), None, "{first}");
    }
}

/// A line that does not end is cut off, half a line has a few seconds, and neither holds up an editor that is idle: that one
/// keeps its buffers.
#[test]
fn endless_and_half_lines_end_their_connection_alone() {
    let mut scene = Scene::set();
    let mut idle = scene.editor();
    idle.announce("a.txt", "typed\n");
    let (mut endless, mut half, mut silent) = (scene.editor(), scene.editor(), Editor::silent(&scene.machine));
    half.send(b"{\"op\":\"li").unwrap();
    let piece = vec![b'x'; 1 << 20];
    // The agent takes 8 MiB of it, and then no more.
    let _ = (0..9).try_for_each(|_| endless.send(&piece));
    let answer = endless.hear();
    assert!(answer.as_ref().is_none_or(|answer| reason(answer) == "TOO_LARGE"), "{answer:?}");
    assert_eq!((half.hear(), silent.hear()), (None, None), "closed without an answer");
    assert_eq!(scene.shown("a.txt"), ("typed\n".to_owned(), true));
    assert_eq!(idle.withdraw("a.txt")["ok"], true);
}

/// One editor more than there are places for is told so; the others stay.
#[test]
fn thirty_two_editors_are_connected_at_most() {
    let scene = Scene::set();
    let mut editors: Vec<_> = (0..32).map(|_| scene.editor()).collect();
    let mut more = Editor::silent(&scene.machine);
    assert_eq!(more.hear().as_ref().map(reason), Some("RESOURCE_EXHAUSTED"));
    assert_eq!(more.hear(), None);
    assert_eq!(editors[0].announce("a.txt", "x")["unsaved"], true);
}

/// Whoever asks for the buffers and takes them slowly costs the agent one line of them at a time.
#[test]
fn editors_that_list_large_buffers_slowly_cost_little_memory() {
    let scene = Scene::set();
    let mut editor = scene.editor();
    let most = "\u{1}".repeat(1 << 20);
    (0..8).for_each(|number| assert_eq!(editor.announce(&format!("{number}.txt"), &most)["unsaved"], true));
    let mut slow: Vec<_> = (0..12).map(|_| scene.editor()).collect();
    for editor in &mut slow {
        editor.send(b"{\"op\":\"list\"}\n").unwrap();
        // The agent has begun to answer.
        assert_eq!(editor.hear().unwrap()["count"], 8);
    }
    let last = slow.last_mut().unwrap();
    assert!((0..8).all(|_| last.hear().unwrap()["text"] == most.as_str()), "who takes them gets them all");
    assert!(scene.agent.peak_memory() < 320 << 20, "{} bytes", scene.agent.peak_memory());
}
