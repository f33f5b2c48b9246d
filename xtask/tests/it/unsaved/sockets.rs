//! The socket itself: open to its owner alone, taken over from a dead agent, and no condition for serving.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::process::Stdio;

use super::Scene;
use super::editor::{Editor, socket_of};
use crate::processes::{Machine, Running, eventually, make, wait_until_served, write};

/// The socket is open to its owner alone, and gone once the agent has ended.
#[test]
fn the_socket_is_private_and_goes_with_the_agent() {
    let machine = Machine::new();
    let server = machine.server();
    let mut agent = machine.agent(&server);
    drop(Editor::connect(&machine));
    let socket = socket_of(&machine.path("state"), &machine.path("project"));
    let metadata = socket.symlink_metadata().unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!((metadata.mode() & 0o777, socket.parent().unwrap().metadata().unwrap().mode() & 0o777), (0o600, 0o700));
    wait_until_served(&server);
    assert_eq!(agent.terminate(), Some(0));
    assert!(!socket.exists());
}

/// The socket that a killed agent leaves is replaced by the next one; that of a living agent stays with it.
#[test]
fn a_stale_socket_is_replaced_and_a_living_one_is_not() {
    let machine = Machine::new();
    let server = machine.server();
    let agent = machine.agent(&server);
    drop(Editor::connect(&machine));
    drop(agent);
    let socket = socket_of(&machine.path("state"), &machine.path("project"));
    assert!(socket.exists(), "a killed process leaves it");
    let _agent = machine.agent(&server);
    let mut editor = Editor::connect(&machine);
    // Another agent of the root does not start, and takes nothing away.
    let mut second = machine.agent(&server);
    assert_eq!(second.0.wait().unwrap().code(), Some(3));
    assert_eq!(editor.announce("a.txt", "x")["unsaved"], true);
    drop(Editor::connect(&machine));
}

/// Where no socket can be made the agent serves on, and its log says why.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own directory")]
fn an_agent_without_a_socket_serves_on() {
    let machine = Machine::new();
    let server = machine.server();
    let socket = socket_of(&machine.path("state"), &machine.path("project"));
    make(socket.parent().unwrap());
    std::fs::set_permissions(socket.parent().unwrap(), std::fs::Permissions::from_mode(0o700)).unwrap();
    write(&socket, "in the way");
    let agent = machine.agent(&server);
    wait_until_served(&server);
    eventually("the log says what to do", || machine.logged("agent.log").contains("is not a socket; move it away"));
    assert_eq!(std::fs::read_to_string(&socket).unwrap(), "in the way");
    drop(agent);
    let deep = machine.path(&format!("state/{}", "d".repeat(100)));
    make(&deep);
    let _agent = machine.agent_in(&server, "auto", |command| {
        command.env("XDG_STATE_HOME", &deep);
    });
    let why = "bytes, and that of a socket has at most 107: set XDG_STATE_HOME to a shorter directory";
    eventually("the log says why", || machine.logged("agent.log").contains(why));
    wait_until_served(&server);
}

/// Agents of two roots in one state directory have a socket each.
#[test]
fn agents_of_two_roots_do_not_meet() {
    let mut scene = Scene::set();
    scene.machine.put("a.txt", "disk\n");
    make(&scene.machine.path("second"));
    let url = scene.server.url();
    let arguments = ["agent", "--server", &url, "--workspace", "second", "--root", "second", "--approve", "auto"];
    let _second = Running(scene.machine.aptix(&arguments).stderr(Stdio::null()).spawn().unwrap());
    let socket = socket_of(&scene.machine.path("state"), &scene.machine.path("second"));
    eventually("the second agent listens", || socket.exists());
    let mut editor = scene.editor();
    editor.announce("a.txt", "typed\n");
    assert_eq!(scene.shown("a.txt"), ("typed\n".to_owned(), true));
}
