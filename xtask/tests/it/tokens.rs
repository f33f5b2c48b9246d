//! Tokens as people and programs use them: made beside a running server, kept, sent, revoked, and shown nowhere.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::clock::Clock;
use crate::documents::create;
use crate::person::on_terminal;
use crate::processes::{Machine, Server, binary, eventually, with_input, write};

/// A command of the server's program on the machine's data.
fn administer(machine: &Machine, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary("aptix-server"));
    command.args(arguments).arg("--data-dir").arg(machine.path("data")).stdin(Stdio::null());
    command
}

/// Makes a token for all workspaces, or for one.
#[track_caller]
fn make(machine: &Machine, workspace: &str, role: &str, name: &str) -> String {
    let arguments = ["token", "create", "--workspace", workspace, "--role", role, "--name", name];
    let output = administer(machine, &arguments).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let secret = String::from_utf8(output.stdout).unwrap();
    assert!(secret.starts_with("aptix_") && secret.ends_with('\n'), "{secret}");
    secret.trim_end().to_owned()
}

fn said(output: &Output) -> String {
    format!("{:?} {}", output.status.code(), String::from_utf8_lossy(&output.stderr))
}

/// Lists the batches with a token of the variable, if one is given, or of another source.
fn batches(machine: &Machine, server: &Server, token: Option<&str>, more: &[&str]) -> Output {
    let url = server.url();
    let mut command = machine.aptix(&["batches", "--server", &url, "--workspace", "demo"]);
    command.args(more).envs(token.map(|token| ("APTIX_TOKEN", token)));
    command.output().unwrap()
}

fn has_text(directory: &Path, text: &[u8]) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => has_text(&path, text),
            Ok(metadata) if metadata.is_file() => {
                fs::read(&path).unwrap().windows(text.len()).any(|window| window == text)
            }
            _ => false,
        }
    })
}

/// From the first token on everything needs one, the agent that is connected too. A token is taken from a file, from the variable,
/// or from what `login` kept; a running agent whose token is revoked goes on once its file has another one.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own file")]
fn a_token_is_made_kept_sent_and_revoked() {
    let machine = Machine::new();
    let server = machine.server();
    let open_agent = machine.agent(&server);
    crate::processes::wait_until_served(&server);
    assert!(batches(&machine, &server, None, &[]).status.success());

    let author = make(&machine, "demo", "orchestrator", "author");
    let agent = make(&machine, "demo", "agent", "workstation");
    // The agent came without a token: its connection has ended, and it says why.
    eventually("the agent is refused", || machine.logged("agent.log").contains("UNAUTHENTICATED"));
    drop(open_agent);
    let refused = batches(&machine, &server, None, &[]);
    assert!(said(&refused).starts_with("Some(1)") && said(&refused).contains("UNAUTHENTICATED"), "{}", said(&refused));
    assert!(batches(&machine, &server, Some(&author), &[]).status.success());
    let wrong = batches(&machine, &server, Some(&agent), &[]);
    assert!(said(&wrong).contains("PERMISSION_DENIED"), "{}", said(&wrong));

    let file = machine.path("token");
    write(&file, &format!("{author}\n"));
    let by_file = ["--token-file", file.to_str().unwrap()];
    assert!(batches(&machine, &server, None, &by_file).status.success());
    let url = server.url();
    let failed = with_input(&mut machine.aptix(&["login", "--server", &url]), "aptix_no\n");
    assert!(said(&failed).contains("UNAUTHENTICATED"), "{}", said(&failed));
    assert!(said(&batches(&machine, &server, None, &[])).contains("UNAUTHENTICATED"));
    let kept = with_input(&mut machine.aptix(&["login", "--server", &url]), &format!("{author}\n"));
    assert!(kept.status.success(), "{}", said(&kept));
    assert!(batches(&machine, &server, None, &[]).status.success());
    let directory = machine.path("config/aptix/tokens");
    let tokens: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [kept] = tokens.as_slice() else { panic!("{tokens:?}") };
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(directory.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    fs::set_permissions(kept, fs::Permissions::from_mode(0o644)).unwrap();
    let loose = batches(&machine, &server, None, &[]);
    assert!(said(&loose).starts_with("Some(1)") && said(&loose).contains("0600"), "{}", said(&loose));
    fs::set_permissions(kept, fs::Permissions::from_mode(0o600)).unwrap();

    let of_agent = machine.path("agent-token");
    write(&of_agent, &agent);
    let serving = machine.agent_in(&server, "auto", |command| {
        command.arg("--token-file").arg(&of_agent);
    });
    let (answer, code) = machine.submit(&server, &create("a.txt", "text\n"));
    assert_eq!((answer["state"].as_str(), code), (Some("APPLIED"), Some(0)), "{answer}");
    let revoked = administer(&machine, &["token", "revoke", "workstation"]).output().unwrap();
    assert!(revoked.status.success(), "{}", said(&revoked));
    let refusals = || machine.logged("agent.log").matches("UNAUTHENTICATED").count();
    let before = refusals();
    eventually("the agent is refused", || refusals() > before);
    // It goes on as soon as its file has another token.
    let next = make(&machine, "demo", "agent", "workstation-2");
    write(&of_agent, &next);
    let (answer, code) = machine.submit(&server, &create("b.txt", "text\n"));
    assert_eq!((answer["state"].as_str(), code), (Some("APPLIED"), Some(0)), "{answer}");

    // What proves who calls is nowhere but with who has it.
    for secret in [&author, &agent, &next] {
        let digits = &secret.as_bytes()[6..];
        assert!(!has_text(&machine.path("data"), digits), "in the server's data");
        for log in ["server.log", "agent.log"] {
            assert!(!machine.logged(log).contains(secret.as_str()), "{log}");
        }
    }
    // Linux takes a limit of 0 for "a program may have it".
    assert_eq!([server.core_dump_bytes(), serving.core_dump_bytes()], ["1", "1"]);
}

/// Each role does its work with its token: what an author sent and a reviewer approved while no agent was there is applied by one
/// that comes later, and the record names the tokens.
#[test]
fn each_role_does_its_work_with_its_token() {
    let machine = Machine::new();
    write(&machine.path("server.toml"), "[workspaces.demo]\napproval = \"always\"\n");
    let config = machine.path("server.toml");
    let server = machine.server_that(|command| {
        command.arg("--config").arg(config);
    });
    assert!(administer(&machine, &["workspace", "create", "demo"]).status().unwrap().success());
    let [author, reviewer, agent] = [("orchestrator", "ann"), ("reviewer", "rita"), ("agent", "laptop")]
        .map(|(role, name)| make(&machine, "demo", role, name));
    let call = |token: &str, command: &str, arguments: &[&str]| {
        let url = server.url();
        let mut call = machine.aptix(&[command, "--server", &url, "--workspace", "demo"]);
        call.args(arguments).env("APTIX_TOKEN", token).output().unwrap()
    };
    write(&machine.path("sent.json"), &create("a.txt", "text\n"));
    let sent = call(&author, "submit", &["--json", "sent.json"]);
    let answer: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!(answer["state"], "PENDING_APPROVAL", "{answer} {}", said(&sent));
    let batch = answer["batchId"].as_str().unwrap();
    assert!(said(&call(&author, "approve", &[batch])).contains("PERMISSION_DENIED"));
    let approved = call(&reviewer, "approve", &["--reviewer", "Rita", batch]);
    // Who decided first is not named as somebody else.
    assert_eq!(said(&approved), "Some(0) ");
    let again = call(&reviewer, "approve", &["--reviewer", "Sam", batch]);
    assert!(said(&again).contains("Rita (token rita) approved the batch before"), "{}", said(&again));
    let _agent = machine.agent_in(&server, "auto", |command| {
        command.env("APTIX_TOKEN", &agent);
    });
    let shown = || String::from_utf8(call(&author, "show", &["--json", batch]).stdout).unwrap();
    eventually("the batch ends", || shown().contains("APPLIED") || shown().contains("FAILED"));
    let shown = shown();
    assert!(shown.contains("\"state\":\"APPLIED\"") || shown.contains("\"state\": \"APPLIED\""), "{shown}");
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let actors: Vec<_> = shown["steps"].as_array().unwrap().iter().map(|step| step["actorName"].as_str()).collect();
    let [sent_by, approved_by, Some(reported_by)] = actors[..] else { panic!("{shown}") };
    assert_eq!((sent_by, approved_by), (Some("token ann"), Some("Rita (token rita)")), "{shown}");
    assert!(reported_by.ends_with(" (token laptop)"), "{shown}");
    let listed = String::from_utf8(call(&author, "batches", &["--json"]).stdout).unwrap();
    assert!(listed.contains("token ann"), "{listed}");
    // It compares the server's files with its own at each connect, and reports what was done beside it.
    let url = server.url();
    let local = with_input(&mut machine.aptix(&["apply", "--root", "project"]), &create("b.txt", "here\n"));
    assert!(local.status.success(), "{}", said(&local));
    let read = || {
        let mut command = machine.aptix(&["read", "--server", &url, "--workspace", "demo", "b.txt"]);
        command.env("APTIX_TOKEN", &author).output().unwrap().stdout
    };
    eventually("the local batch is listed", || {
        String::from_utf8(call(&author, "batches", &["--json"]).stdout).unwrap().contains("b.txt")
            || read() == b"here\n"
    });
    assert!(!machine.logged("agent.log").contains("PERMISSION_DENIED"), "{}", machine.logged("agent.log"));
}

/// What was made and what was revoked outlives a killed server; commands work beside it, after it, and several at once.
#[test]
fn tokens_are_administered_with_and_without_a_server() {
    let machine = Machine::new();
    let absent = administer(&machine, &["token", "create", "--workspace", "demo", "--role", "agent"]).output().unwrap();
    assert!(said(&absent).starts_with("Some(1)") && said(&absent).contains("workspace create"), "{}", said(&absent));
    assert!(administer(&machine, &["workspace", "create", "demo"]).status().unwrap().success());
    make(&machine, "demo", "agent", "first");
    let server = machine.server();
    make(&machine, "*", "orchestrator", "second");
    assert!(administer(&machine, &["token", "revoke", "first"]).status().unwrap().success());
    drop(server);
    // The killed server left its socket.
    assert!(machine.path("data/admin.sock").exists());
    let listed = administer(&machine, &["token", "list"]).output().unwrap();
    let lines = String::from_utf8(listed.stdout.clone()).unwrap();
    let rows: Vec<Vec<_>> = lines.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 2, "{lines}");
    assert!(rows[0][..3] == ["first", "agent", "demo"] && rows[0][4].starts_with("revoked "), "{lines}");
    assert!(rows[1][..3] == ["second", "orchestrator", "*"] && rows[1][4] == "does not expire", "{lines}");

    let names = ["a", "b", "c", "d"];
    let many = names.map(|name| {
        let arguments = ["token", "create", "--workspace", "*", "--role", "reader", "--name", name];
        administer(&machine, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for child in many {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    let again = administer(&machine, &["token", "create", "--workspace", "*", "--role", "reader", "--name", "a"]);
    let again = { again }.output().unwrap();
    assert!(said(&again).starts_with("Some(1)") && said(&again).contains("ALREADY_EXISTS"), "{}", said(&again));
}

/// A terminal shows again what is typed once `login` was ended by a signal.
#[test]
fn a_login_that_is_ended_leaves_the_terminal_as_it_was() {
    let machine = Machine::new();
    // The shell gives what it runs beside itself another stdin.
    let script = "exec 3<&0; \"$0\" login --server http://127.0.0.1:1 <&3 & pid=$!
        until stty -a | grep -q -e '-echo '; do :; done
        kill -TERM $pid; wait $pid; echo ended $?; stty -a | grep -q -e '-echo ' || echo shown";
    let mut command = Command::new("sh");
    let envs = machine.aptix(&[]);
    command.args(["-c", script]).arg(binary("aptix")).current_dir(machine.path("project"));
    command.envs(envs.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut asked = on_terminal(&command, 24, 80).spawn().unwrap();
    // Nobody types, and the terminal stays open.
    let _keyboard = asked.stdin.take();
    let output = asked.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("ended 1") && shown.contains("shown"), "{shown}");
}

/// A server that other machines can reach needs a token, or the operator's word.
#[test]
fn an_address_that_others_reach_needs_a_token() {
    let machine = Machine::new();
    let start = || administer(&machine, &["--listen", "0.0.0.0:0"]).output().unwrap();
    let refused = start();
    assert!(said(&refused).starts_with("Some(3)") && said(&refused).contains("token create"), "{}", said(&refused));
    make(&machine, "*", "orchestrator", "author");
    let server = machine.server_at("0.0.0.0:0");
    assert!(said(&batches(&machine, &server, None, &[])).contains("UNAUTHENTICATED"));
}

/// A clock that is set forward by ten years, and back, ends no token whose time is not over; others expire meanwhile.
#[test]
fn a_jump_of_the_clock_ends_no_token() {
    let machine = Machine::new();
    let clock = Clock::of(&machine);
    let server = machine.server_that(|command| clock.show(command));
    let expiring = |name: &str, expires: &str| {
        let arguments =
            ["token", "create", "--workspace", "*", "--role", "reader", "--name", name, "--expires", expires];
        let output = administer(&machine, &arguments).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    let lasting = expiring("lasting", "1d");
    let created = administer(&machine, &["workspace", "create", "demo"]).output().unwrap();
    assert!(created.status.success(), "{}", said(&created));
    let is_served = |token: &str| batches(&machine, &server, Some(token), &[]).status.success();
    assert!(is_served(&lasting));
    let listed = || {
        let output = administer(&machine, &["token", "list"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let line = |name: &str| listed().lines().find(|line| line.contains(name)).unwrap().to_owned();
    let soon = Command::new("date").args(["-u", "-d", "+15 seconds", "+%Y-%m-%dT%H:%M:%SZ"]).output().unwrap();
    let brief = expiring("brief", std::str::from_utf8(&soon.stdout).unwrap().trim_end());
    let while_good = line("lasting");
    clock.set("+315360000");
    // The server looks for tokens whose time is over, and finds this one alone.
    eventually("the other token has expired", || !is_served(&brief) && line("brief").contains("expired"));
    assert!(is_served(&lasting));
    clock.set("+0");
    assert!(is_served(&lasting));
    assert_eq!(line("lasting"), while_good);
}
