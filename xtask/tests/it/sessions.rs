//! Modes of sessions with a real server and a real agent: a change in mid-flight, over restarts, and with a clock set back.

use aptix_model::wire::v1;
use aptix_model::wire::v1::session_service_client::SessionServiceClient;
use tonic::transport::Channel;

use crate::clock::Clock;
use crate::person::{Terminal, WHOLE};
use crate::processes::{Machine, Server, connected, eventually, write};

const WORDS: &str = "Patch tool is disabled in Restricted mode. Use request_mode_upgrade to request write access.";
const RESTRICTED: v1::SessionMode = v1::SessionMode::Restricted;
const UNRESTRICTED: v1::SessionMode = v1::SessionMode::Unrestricted;

/// Who owns the session `s`.
struct Owner {
    runtime: tokio::runtime::Runtime,
    sessions: SessionServiceClient<Channel>,
}

impl Owner {
    fn of(server: &Server) -> Self {
        let (runtime, channel) = connected(server);
        Self { runtime, sessions: SessionServiceClient::new(channel) }
    }

    /// Asks for a mode, and waits so many seconds.
    fn set(&mut self, request: &str, mode: v1::SessionMode, seconds: i64) -> v1::SetSessionModeResponse {
        let request = v1::SetSessionModeRequest {
            workspace_id: "demo".to_owned(),
            session_id: "s".to_owned(),
            owner: "ann".to_owned(),
            mode: mode.into(),
            request_id: request.to_owned(),
            wait: Some(prost_types::Duration { seconds, nanos: 0 }),
        };
        self.runtime.block_on(self.sessions.set_session_mode(request)).unwrap().into_inner()
    }

    fn mode(&mut self) -> v1::SessionMode {
        let request = v1::GetSessionRequest { workspace_id: "demo".to_owned(), session_id: "s".to_owned() };
        self.runtime.block_on(self.sessions.get_session(request)).unwrap().into_inner().session.unwrap().mode()
    }
}

/// Submits a file in the session; answers whether it was stored. What is refused is refused in the fixed words.
fn is_stored(machine: &Machine, server: &Server, path: &str) -> bool {
    write(&machine.path("edit.json"), &serde_json::json!({"path": path, "content": "x\n"}).to_string());
    let done = machine.call(server, "submit", &["--session", "s", "edit.json"]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() || said.contains(WORDS), "{said}");
    done.status.success()
}

/// REQ-PATCH-009.4, REQ-PATCH-009.5: while a batch waits for its agent nothing else of its session is accepted; it is applied once
/// there is an agent, and then the mode changes, although the server was killed in between.
#[test]
fn a_mode_changes_once_what_waits_for_its_agent_was_applied() {
    let machine = Machine::new();
    let server = machine.server();
    assert!(is_stored(&machine, &server, "a.txt"));
    assert_eq!(Owner::of(&server).set("m1", RESTRICTED, 0).state(), v1::ModeChangeState::Pending);
    assert!(!is_stored(&machine, &server, "b.txt"));
    let address = server.address.clone();
    drop(server);
    let server = machine.server_at(&address);
    let mut owner = Owner::of(&server);
    assert_eq!((owner.mode(), owner.set("m1", RESTRICTED, 0).state()), (UNRESTRICTED, v1::ModeChangeState::Pending));
    assert!(!is_stored(&machine, &server, "b.txt"));
    let _agent = machine.agent(&server);
    let done = owner.set("m1", RESTRICTED, 20);
    assert_eq!((done.state(), done.session.unwrap().mode()), (v1::ModeChangeState::Done, RESTRICTED));
    assert_eq!(machine.files(), [("a.txt".to_owned(), "x\n".to_owned())]);
    assert!(!is_stored(&machine, &server, "b.txt"));
    assert_eq!(owner.set("m2", UNRESTRICTED, 0).state(), v1::ModeChangeState::Done);
    assert!(is_stored(&machine, &server, "b.txt"));
    eventually("the other file is written", || machine.files().len() == 2);
}

/// REQ-PATCH-009.5: a batch that an agent is applying, here as slow as the person it asks, is finished before the mode changes.
#[test]
fn a_mode_changes_once_a_slow_agent_has_finished() {
    let machine = Machine::new();
    let server = machine.server();
    let mut terminal = Terminal::open(&machine, &server);
    assert!(is_stored(&machine, &server, "a.txt"));
    terminal.until(WHOLE);
    let mut owner = Owner::of(&server);
    assert_eq!(owner.set("m1", RESTRICTED, 0).state(), v1::ModeChangeState::Pending);
    assert!(!is_stored(&machine, &server, "b.txt"));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| owner.set("m1", RESTRICTED, 20));
        terminal.answer("y");
        assert_eq!(waiting.join().unwrap().state(), v1::ModeChangeState::Done);
    });
    assert_eq!(machine.files(), [("a.txt".to_owned(), "x\n".to_owned())]);
    assert!(!is_stored(&machine, &server, "b.txt"));
}

/// The later request wins, and a mode stays, whatever the server's clock said.
#[test]
fn a_mode_is_that_of_the_later_request_whatever_the_clock_said() {
    let machine = Machine::new();
    let clock = Clock::of(&machine);
    let server = machine.server_that(|command| clock.show(command));
    let mut owner = Owner::of(&server);
    for (number, (offset, mode)) in
        [("+0", RESTRICTED), ("-3600", UNRESTRICTED), ("-315360000", RESTRICTED), ("+315360000", UNRESTRICTED)]
            .into_iter()
            .enumerate()
    {
        clock.set(offset);
        let done = owner.set(&format!("m{number}"), mode, 0);
        assert_eq!((done.state(), owner.mode()), (v1::ModeChangeState::Done, mode), "{offset}");
    }
    clock.set("-7200");
    assert!(is_stored(&machine, &server, "a.txt"));
    assert_eq!(owner.set("m9", RESTRICTED, 1).state(), v1::ModeChangeState::Pending, "it waited in monotonic time");
    assert!(!is_stored(&machine, &server, "b.txt"));
}
