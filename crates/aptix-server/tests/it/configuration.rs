//! The configuration of the program: its keys, where their values come from, and what the reference page says of them.

use std::collections::BTreeSet;
use std::io::{Seek as _, Write as _};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_server::config::KEYS;
use tempfile::{NamedTempFile, TempDir};
use tonic::transport::Endpoint;

use crate::process::Program;
use crate::server::{create_text, submit};

/// The reference page.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/server.md");

/// The head of its table of keys.
const HEAD: &str = "| key | value | default | changes at | meaning |\n| --- | --- | --- | --- | --- |\n";

/// The page's table has one row for each key, and nothing else. After a change that is meant:
/// `APTIX_RENEW=1 cargo test -p aptix-server the_reference_page_has_a_row_for_each_key`, and read what it wrote.
#[test]
fn the_reference_page_has_a_row_for_each_key() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(HEAD).expect("the page has a table of keys");
    let end = rest.find("\n\n").unwrap() + 1;
    let rows: String = KEYS.iter().map(|key| key.row() + "\n").collect();
    if std::env::var_os("APTIX_RENEW").is_some() {
        #[expect(clippy::disallowed_methods, reason = "the project's own page")]
        std::fs::write(PAGE, [before, HEAD, &rows, &rest[end..]].concat()).unwrap();
        return;
    }
    assert_eq!(&rest[..end], rows, "APTIX_RENEW=1 writes the table");
}

/// No two keys have one name or one variable, and no key is also a table.
#[test]
fn keys_are_distinct() {
    let names: BTreeSet<_> = KEYS.iter().map(|key| key.name).collect();
    let variables: BTreeSet<_> = KEYS.iter().map(aptix_server::config::Key::variable).collect();
    assert_eq!((names.len(), variables.len()), (KEYS.len(), KEYS.len()));
    for name in &names {
        let table = format!("{name}.");
        assert!(!names.iter().any(|other| other.starts_with(&table)), "{name} is a key and a table");
        assert!(!name.starts_with("workspaces"), "{name}: tables of workspaces have ids for keys");
    }
    for variable in &variables {
        let of_service = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT_"].iter().any(|part| variable.contains(part));
        assert!(!of_service, "{variable} may be set by Kubernetes");
    }
}

/// `check-config` with a file of this text: its exit code, stdout and stderr.
fn check(text: &str, arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let file = config_file(text);
    let output = Command::new(env!("CARGO_BIN_EXE_aptix-server"))
        .args(["check-config", "--config", file.path().to_str().unwrap()])
        .args(arguments)
        .env_remove("APTIX_LOG")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn config_file(text: &str) -> NamedTempFile {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.as_file().write_all(text.as_bytes()).unwrap();
    file
}

/// What `check-config` prints is a configuration that has the same values, each with its origin.
#[test]
fn check_config_prints_what_takes_effect_and_where_it_comes_from() {
    let text = "calls = 12\nlisten = '0.0.0.0:1'\n[workspaces.\"a.b\"]\napproval = 'always'\n";
    let (code, printed, _) = check(text, &[], &[("APTIX_SERVER_LISTEN", "127.0.0.1:2")]);
    assert_eq!(code, Some(0));
    for line in [
        "calls = 12 # ",
        "listen = \"127.0.0.1:2\" # environment APTIX_SERVER_LISTEN",
        "calls_per_caller = 9 # default",
    ] {
        assert!(printed.contains(line), "{line} in {printed}");
    }
    let value = |line: &str| line.split_once(" # ").map(|(value, _)| value.to_owned());
    let values = |text: &str| text.lines().filter_map(value).collect::<Vec<_>>();
    let (code, again, faults) = check(&printed, &[], &[]);
    assert_eq!((code, values(&again)), (Some(0), values(&printed)), "{faults}");
    let (_, object, _) = check(text, &["--json"], &[]);
    let object: serde_json::Value = serde_json::from_str(&object).unwrap();
    let calls = object["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == "calls").unwrap();
    assert_eq!((&calls["value"], &calls["changesAt"]), (&12.into(), &"restart".into()));
}

/// Everything that is wrong is named at once, with exit code 1; wrong usage has 2.
#[test]
fn check_config_names_every_fault() {
    let (code, printed, faults) = check("lisen = 1\ncalls = 0\n", &[], &[("APTIX_SERVER_CALS", "1")]);
    assert_eq!((code, printed.as_str()), (Some(1), ""));
    for fault in ["listen is one", "calls is 0, expected 1 to 1,000,000", "APTIX_SERVER_CALLS does"] {
        assert!(faults.contains(fault), "{fault} in {faults}");
    }
    assert_eq!(faults.lines().count(), 3, "{faults}");
    let (code, object, _) = check("calls = 0\n", &["--json"], &[]);
    let object: serde_json::Value = serde_json::from_str(&object).unwrap();
    assert_eq!((code, object["faults"].as_array().unwrap().len()), (Some(1), 1));
    assert_eq!(check("", &["--nothing"], &[]).0, Some(2));
    // Keys that are good by themselves, and no server starts with.
    let (code, _, faults) = check("metrics = '0.0.0.0:1'\n[tls]\nkey = 'k'\n", &[], &[]);
    assert_eq!((code, faults.lines().count()), (Some(1), 2), "{faults}");
    assert!(faults.contains("tls.certificate") && faults.contains("metrics_beyond_loopback"), "{faults}");
    let (code, _, faults) = check("[tls]\nkey = '/none'\ncertificate = '/none'\n", &[], &[]);
    assert!(code == Some(1) && faults.contains("/none"), "{faults}");
}

/// A store is `embedded` or the address of a database, whose password no output has: not what takes effect, and no fault, whichever
/// source has it.
#[test]
fn check_config_shows_no_password_of_a_database() {
    let (code, printed, faults) = check("", &[], &[]);
    assert!(code == Some(0) && printed.contains("store = \"embedded\" # default"), "{printed}{faults}");
    for text in [
        "postgres://u:first-part@h",
        "postgres://u:first-part@other-part@h/d",
        "mysql://u:first-part@h/d",
        "postgres://u@h/d?password=first-part&other-part=1",
    ] {
        let file = format!("calls = 0\nstore = '{text}'\n");
        for (file, variables) in [(file.as_str(), &[][..]), ("calls = 0\n", &[("APTIX_SERVER_STORE", text)][..])] {
            for arguments in [&[][..], &["--json"]] {
                let (code, printed, faults) = check(file, arguments, variables);
                let said = format!("{printed}{faults}");
                assert!(code == Some(1) && said.contains("store cannot be used: expected "), "{said}");
                assert!(!said.contains("-part"), "{said}");
            }
        }
    }
    let (code, printed, faults) = check("store = 3\n", &[], &[]);
    assert!(code == Some(1) && faults.contains("a value of another kind"), "{printed}{faults}");
    let address = "postgres://u:first-part@h/d?connect_timeout=3";
    let (code, printed, faults) = check("", &[], &[("APTIX_SERVER_STORE", address)]);
    if cfg!(feature = "postgres") {
        let line = "store = \"postgres://u:***@h/d?connect_timeout=3\" # environment APTIX_SERVER_STORE";
        assert!(code == Some(0) && printed.contains(line), "{printed}{faults}");
    } else {
        assert!(code == Some(1) && faults.contains("without support for PostgreSQL"), "{printed}{faults}");
    }
    assert!(!printed.contains("-part") && !faults.contains("-part"), "{printed}{faults}");
}

/// Limits of retention that contradict each other are refused, where they are set and where a workspace inherits one of them.
#[test]
fn check_config_refuses_limits_that_contradict_each_other() {
    let day = 24 * 3600;
    let cases = [
        (
            "content_seconds = 90\nrecord_seconds = 80\nrecord_least_seconds = 0\n",
            "3: retention.record_seconds is 80, expected at least 90, the value of retention.content_seconds",
        ),
        (
            "record_seconds = 80\n",
            "2: retention.record_seconds is 80, expected at least 604800, the value of retention.record_least_seconds",
        ),
        (
            "content_batches = 3\nrecord_events = 2\n",
            "3: retention.record_events is 2, expected at least 3, the value of retention.content_batches",
        ),
        (
            "record_events = 2\n[workspaces.w.retention]\ncontent_batches = 3\n",
            "4: workspaces.\"w\".retention.record_events is 2, expected at least 3, the value of retention.content_batches",
        ),
    ];
    for (text, expected) in cases {
        let (code, _, faults) = check(&format!("[retention]\n{text}"), &[], &[]);
        assert!(code == Some(1) && faults.trim_end().ends_with(expected) && faults.lines().count() == 1, "{faults}");
    }
    let text = format!("[retention]\ncontent_seconds = {}\nrecord_seconds = {}\n", 30 * day, 365 * day);
    let (code, printed, faults) = check(&text, &[], &[("APTIX_SERVER_RETENTION_RECORD_LEAST_SECONDS", "3600")]);
    assert_eq!((code, faults.as_str()), (Some(0), ""));
    assert!(printed.contains("retention.record_least_seconds = 3600 # environment"), "{printed}");
}

/// A program with a configuration file, and the socket of its service manager.
struct Managed {
    program: Program,
    config: NamedTempFile,
    manager: UnixDatagram,
    log: NamedTempFile,
    _dir: TempDir,
}

impl Managed {
    fn start(text: &str) -> Self {
        let (dir, config, log) = (tempfile::tempdir().unwrap(), config_file(text), NamedTempFile::new().unwrap());
        let socket = dir.path().join("notify");
        let manager = UnixDatagram::bind(&socket).unwrap();
        manager.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
        command.args(["--listen", "127.0.0.1:0", "--config"]).arg(config.path());
        command.arg("--data-dir").arg(dir.path().join("data")).env("NOTIFY_SOCKET", socket).env_remove("APTIX_LOG");
        command.stdout(Stdio::piped()).stderr(log.reopen().unwrap());
        let managed = Self { program: Program::spawn(command), config, manager, log, _dir: dir };
        assert_eq!(managed.reported(), "READY=1");
        managed
    }

    /// The next state that the service manager is sent.
    fn reported(&self) -> String {
        let mut bytes = [0; 200];
        let count = self.manager.recv(&mut bytes).expect("the service manager hears of it");
        String::from_utf8(bytes[..count].to_owned()).unwrap()
    }

    /// Puts another configuration in place, and waits until the server has read it; answers what was logged meanwhile.
    fn reload(&self, text: &str) -> String {
        let before = self.log().len();
        let mut file = self.config.as_file();
        file.set_len(0).unwrap();
        file.rewind().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        self.program.signal("-HUP");
        let reloading = self.reported();
        assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
        assert_eq!(self.reported(), "READY=1");
        self.log()[before..].to_owned()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }
}

/// SIGHUP changes what may change while the server runs, or nothing: a file with faults keeps the old configuration whole, and keys
/// that wait for a restart are named.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_configuration_takes_effect_whole_or_not_at_all() {
    let server = Managed::start("approval = 'never'\nlog = 'info'\n");
    let endpoint = Endpoint::new(format!("http://{}", server.program.address)).unwrap();
    let mut client = BatchServiceClient::new(endpoint.connect().await.unwrap());
    let mut count = 0;
    let mut state = async || {
        count += 1;
        let request = submit("w", &format!("r{count}"), vec![create_text(&format!("a{count}"), "text")]);
        client.submit_batch(request).await.unwrap().into_inner().batch.unwrap().state()
    };
    assert_eq!(state().await, v1::BatchState::Approved);
    let logged = server.reload("approval = 'always'\nlog = 'info'\n");
    assert!(logged.contains("the configuration was read again") && !logged.contains("takes effect"), "{logged}");
    assert_eq!(state().await, v1::BatchState::PendingApproval);
    let logged = server.reload("approval = 'never'\nlog = 'error'\ncalls = 0\nlisen = 1\n");
    for fault in ["calls is 0", "listen is one", "stays as it is"] {
        assert!(logged.contains(fault), "{fault} in {logged}");
    }
    assert_eq!(state().await, v1::BatchState::PendingApproval);
    let logged = server.reload("[workspaces.w]\napproval = 'never'\n[workspaces.v]\n");
    assert!(logged.contains("was read again"), "the former log level holds: {logged}");
    assert_eq!(state().await, v1::BatchState::Approved);
    let logged = server.reload("approval = 'always'\ncalls = 7\nconnections = 9\nlog = 'warn'\n");
    for key in ["key=\"calls\"", "key=\"connections\"", "at the next start"] {
        assert!(logged.contains(key), "{key} in {logged}");
    }
    assert!(!logged.contains("was read again"), "the new log level holds: {logged}");
    assert_eq!(state().await, v1::BatchState::PendingApproval);
    #[expect(clippy::disallowed_methods, reason = "a test's own file")]
    std::fs::remove_file(server.config.path()).unwrap();
    assert!(server.reload("").contains("failed to read"));
    assert_eq!(state().await, v1::BatchState::PendingApproval);
    server.program.signal("-TERM");
    assert_eq!(server.reported(), "STOPPING=1");
    assert_eq!(server.program.end(), Some(0));
}
