//! What `deploy/` has for operators: every option, key and variable that its files name exists.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use aptix_server::config::{KEYS, Key};

use crate::process::Program;
use crate::skip::skip;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn text(file: &str) -> String {
    std::fs::read_to_string(deploy().join(file)).unwrap()
}

const SEVERAL: &str = "several/compose.yaml";
const BALANCER: &str = "several/haproxy.cfg";
const FILES: [&str; 5] = ["Dockerfile", "compose.yaml", "systemd/aptix-server.service", "server.toml", SEVERAL];

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_aptix-server"))
}

/// The words of each call of the program in a text: an exec line of systemd, a list of Docker, a line for a shell.
fn calls(text: &str) -> Vec<Vec<String>> {
    let words = |line: &str| {
        let words = line.split(|it: char| it.is_whitespace() || "[]\",=".contains(it)).filter(|word| !word.is_empty());
        let mut words = words.skip_while(|word| *word != "aptix-server" && !word.ends_with("/aptix-server"));
        words.next().map(|_| words.map(str::to_owned).collect())
    };
    // `docker compose run SERVICE` takes the place of the program's name.
    let named =
        |line: &str| line.replace("run --rm server1 ", "aptix-server ").replace("run --rm server ", "aptix-server ");
    text.lines().filter_map(|line| words(&named(line))).collect()
}

#[test]
fn every_option_that_the_files_give_exists() {
    let mut options = 0;
    for file in FILES {
        for call in calls(&text(file)) {
            let is_name = |word: &&String| word.starts_with(|first: char| first.is_ascii_lowercase());
            let commands: Vec<_> = call.iter().take_while(is_name).collect();
            let output = program().args(&commands).arg("--help").output().unwrap();
            let help = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{file}: {call:?}");
            for option in call.iter().filter(|word| word.starts_with("--")) {
                options += 1;
                assert!(help.contains(&format!("{option} ")), "{file}: {commands:?} has no {option}");
            }
        }
    }
    assert!(options >= 5, "{options} options were found");
}

#[test]
fn every_variable_that_the_files_set_is_that_of_a_key() {
    let mut found = 0;
    for file in FILES {
        let text = text(file);
        for (start, _) in text.match_indices("APTIX_SERVER_") {
            let end = text[start..].find(|it: char| !it.is_ascii_uppercase() && it != '_').unwrap();
            let variable = &text[start..start + end];
            assert!(KEYS.iter().map(Key::variable).any(|known| known == variable), "{file}: {variable}");
            found += 1;
        }
    }
    assert!(found >= 4, "{found} variables were found");
}

#[test]
fn the_configuration_of_the_service_has_no_fault() {
    let output = program().args(["check-config", "--config"]).arg(deploy().join("server.toml")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The names of the servers that share a database.
#[cfg(feature = "postgres")]
fn servers(text: &str) -> Vec<&str> {
    let names = text.lines().filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    names.filter(|name| name.starts_with("server")).collect()
}

/// Runs the first command of the compose file in a directory, which makes a certificate; `None`, after announcing that the test is skipped,
/// where what it takes is missing.
fn prepared() -> Option<tempfile::TempDir> {
    if Command::new("openssl").arg("version").output().is_err() {
        skip("there is no openssl");
        return None;
    }
    let text = text(SEVERAL);
    let command = text.lines().find_map(|line| line.strip_prefix("#   ")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    succeeded(&Command::new("sh").args(["-c", command]).current_dir(&dir).output().unwrap());
    Some(dir)
}

fn succeeded(output: &Output) {
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{texts:?}");
}

/// The value that a server is started with.
#[cfg(feature = "postgres")]
fn filled(value: &str, dir: &Path) -> String {
    let value = value.trim().trim_matches('"').replace("/tls/", &format!("{}/tls/", dir.display()));
    let password = std::fs::read_to_string(dir.join(".env")).unwrap();
    let (_, password) = password.trim().split_once('=').unwrap();
    match (value.find("${APTIX_DATABASE_PASSWORD"), value.find('}')) {
        (Some(start), Some(end)) => format!("{}{password}{}", &value[..start], &value[end + 1..]),
        _ => value,
    }
}

/// Each server is named by its own address, the balancer and the certificate.
#[test]
#[cfg(feature = "postgres")]
fn the_configuration_of_each_of_several_servers_has_no_fault() {
    let Some(dir) = prepared() else { return };
    let text = text(SEVERAL);
    let (names, balancer) = (servers(&text), self::text(BALANCER));
    assert_eq!(names.len(), 3, "{names:?}");
    let variables = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "));
    let variables = variables.filter(|(name, _)| name.trim().starts_with("APTIX_SERVER_"));
    let (addresses, shared): (Vec<_>, Vec<_>) = variables.partition(|(name, _)| name.ends_with("FLEET_ADDRESS"));
    assert_eq!(addresses.len(), names.len());
    assert!(shared.len() >= 5, "{shared:?}");
    for (name, (variable, address)) in names.into_iter().zip(addresses) {
        assert_eq!(filled(address, dir.path()), format!("https://{name}:7420"));
        assert!(text.contains(&format!("DNS:{name}")) && balancer.contains(&format!(" {name}:7420 ")), "{name}");
        let mut check = program();
        check.arg("check-config").env(variable.trim(), filled(address, dir.path()));
        check.envs(shared.iter().map(|(name, value)| (name.trim(), filled(value, dir.path()))));
        succeeded(&check.output().unwrap());
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a file of the test's own directory")]
fn haproxy_accepts_the_configuration_of_the_balancer() {
    let haproxy = |more: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("PATH=$PATH:/usr/sbin; exec haproxy {more} \"$0\"")]);
        command
    };
    if !haproxy("-v").output().unwrap().status.success() {
        skip("there is no haproxy");
        return;
    }
    let Some(dir) = prepared() else { return };
    let path = dir.path().join("haproxy.cfg");
    let configuration = text(BALANCER).replace("/tls/", &format!("{}/tls/", dir.path().display()));
    std::fs::write(&path, configuration).unwrap();
    succeeded(&haproxy("-c -f").arg(&path).output().unwrap());
}

/// The bytes by which the balancer asks whether a server serves are a call, and those that it waits for are the answer.
#[test]
fn the_balancer_asks_for_the_health_of_a_server() {
    let text = text(BALANCER);
    let bytes = |before: &str| {
        let digits: String = text.lines().filter_map(|line| line.trim().strip_prefix(before)).collect();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(byte).collect::<Vec<_>>()
    };
    let (sent, expected) = (bytes("tcp-check send-binary "), bytes("tcp-check expect binary "));
    assert!(!sent.is_empty() && !expected.is_empty());
    let dir = tempfile::tempdir().unwrap();
    let server = Program::start(dir.path(), &[]);
    let mut connection = TcpStream::connect(&server.address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    connection.write_all(&sent).unwrap();
    let (mut answer, mut piece) = (Vec::new(), [0; 1024]);
    while !answer.windows(expected.len()).any(|bytes| bytes == expected) {
        let read = connection.read(&mut piece).unwrap();
        assert!(read > 0, "{answer:?}");
        answer.extend_from_slice(&piece[..read]);
    }
}
